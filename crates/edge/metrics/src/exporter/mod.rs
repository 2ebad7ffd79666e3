//! What GPU exporters say, whatever their generation and vendor: which device a series is about, who held
//! it, and how busy it was.
//!
//! | module | what |
//! |---|---|
//! | `origin` | the labels of a series: node, device, slice, holder |
//! | `measure` | which series are asked for, and what their numbers mean |
//! | `observation` | all series of a period, device by device |
//! | `history` | the same as device histories for the ledger |

mod history;
mod measure;
mod observation;
mod origin;

pub use history::{ObservedDevice, ObservedTime};
pub use measure::{Measure, mean_over_steps, measures};
pub use observation::{Observation, Refused};
pub use origin::{Holder, Origin, PodLabels, Slice, host};

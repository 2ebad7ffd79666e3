//! What GPU exporters say, whatever their generation and vendor: which device a series is about, who held
//! it, and how busy it was.
//!
//! | module | what |
//! |---|---|
//! | `origin` | the labels of a series: node, device, slice, holder |
//! | `measure` | which series are asked for, and what their numbers mean |
//! | `observation` | all series of a period, device by device |
//! | `history` | the same as device histories for the ledger |
//! | `open_time` | how far active time may be from the truth |

mod history;
mod measure;
mod observation;
mod open_time;
mod origin;

pub use history::{Misplaced, ObservedDevice, ObservedTime};
pub use measure::{Measure, mean_over_steps, measures, peaks_of_mixed_steps};
pub use observation::{Observation, Refused};
pub use open_time::OpenTime;
pub use origin::{Holder, Origin, PodLabels, Slice, host};

//! What GPU exporters say, whatever their generation and vendor: which device a series is about,
//! who held it, and how busy it was.
//!
//! | module | what |
//! |---|---|
//! | `origin` | the labels of a series: node, device, slice, holder |
//! | `pod_labels` | which labels name the holder, by scrape job |
//! | `place` | where a device is on its node, and which pod uses it now |
//! | `measure` | which series are asked for, and what their numbers mean |
//! | `observation` | all series of a period, device by device |
//! | `history` | the same as device histories for the ledger |
//! | `own_time` | time that is not of the holder whose name it has |
//! | `node_cut` | how the devices of a node are cut into what it offers |
//! | `unmeasured` | devices that a node has and no exporter speaks of |
//! | `open_time` | how far active time may be from the truth |

mod history;
mod measure;
mod node_cut;
mod observation;
mod open_time;
mod origin;
mod own_time;
mod place;
mod pod_labels;
mod unmeasured;

pub use dovetail_account::signal::dcgm;
pub use history::{HolderDoubt, Misplaced, ObservedDevice, ObservedTime};
pub use measure::{SeriesMeasure, mean_over_steps, measures, peaks_of_mixed_steps};
pub use observation::{Observation, RefusedSeries};
pub use open_time::OpenTime;
pub use origin::{DeviceHolder, MigSlice, SeriesOrigin, host};
pub use place::{DevicePlace, PodFigure, places, pod_figures, sampled};
pub use pod_labels::PodLabels;
pub use unmeasured::UnmeasuredNode;

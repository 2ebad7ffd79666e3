//! The GPUs of a node as its device plugins offer them: the one reading of whole GPUs, MIG
//! instances, replicas and the devices of every vendor, for the scheduler, the audit and bills.
//!
//! | module | what |
//! |---|---|
//! | `count` | how many physical GPUs there are, and who says so |
//! | `units` | what plugins offer of them, unit by unit |
//! | `model` | the model, by label or instance type |
//! | `table` | by which MIG table the GPUs are cut |
//! | `mig` | which GPU an instance lies on, its share, and what a layout leaves over |
//! | `share` | replicas, HAMi, devices under several names |
//! | `other_names` | resources that may be GPUs under names that are not counted |

mod count;
mod mig;
mod model;
mod other_names;
mod share;
mod table;
mod units;

pub use count::{CountSource, GpuCount};
pub use mig::KnownLayouts;
pub use model::{model_label, model_of_product, sized_model};
pub use other_names::named_like_gpus;
pub use share::{counted_as, is_of_shares, slice_of};
pub use units::{
    GpuUnits, MOST_UNITS, NodeGpus, discovered_gpus, node_gpus, node_gpus_like, offered,
};

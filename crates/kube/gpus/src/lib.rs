//! The GPUs of a node as its device plugins offer them: the one reading of whole GPUs, MIG
//! instances, replicas and the devices of every vendor, for the scheduler, the audit and bills.
//!
//! | module | what |
//! |---|---|
//! | `count` | how many physical GPUs there are, and who says so |
//! | `units` | what plugins offer of them, unit by unit |
//! | `mig` | which GPU an instance lies on, its share, and what a layout leaves over |
//! | `share` | replicas, HAMi, devices under several names |

mod count;
mod mig;
mod share;
mod units;

pub use count::{CountSource, GpuCount};
pub use mig::KnownLayouts;
pub use share::{counted_as, is_of_shares, slice_of};
pub use units::{
    GpuUnits, MOST_UNITS, NodeGpus, discovered_gpus, model_label, model_of_product, node_gpus,
    node_gpus_like, offered, sized_model,
};

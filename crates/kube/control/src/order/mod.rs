//! Orders about pods and PersistentVolumeClaims other than binds: pods that are evicted, nodes that
//! are freed for others, nodes chosen for claims.

mod attempts;
mod eviction;
mod kinds;
mod orders;
#[cfg(test)]
mod played;
mod requests;
mod sequence;
mod step;
mod step_log;
mod together;

pub use eviction::{EvictionCause, EvictionDecision, NotEvicted};
pub use kinds::{OrderEnd, OrderReport, PodOrder};
pub(crate) use orders::Orders;
pub use step_log::{StepNews, Went};

//! Orders about pods and PersistentVolumeClaims other than binds: pods that are evicted, nodes that
//! are freed for others, nodes chosen for claims.

mod attempts;
mod kinds;
mod orders;
#[cfg(test)]
mod played;
mod requests;
mod step;
mod stop;
mod together;
mod told;
mod turns;

pub use kinds::{Order, OrderEnd, OrderReport};
pub(crate) use orders::Orders;
pub use stop::{Kept, Stop, StopDecision};
pub use told::{StepNews, Went};

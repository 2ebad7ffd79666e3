//! Sending decided binds and orders, and learning what became of each.
//!
//! A [`Binder`] takes decisions, keeps a bounded number of requests in flight, and reports exactly one
//! [`Outcome`](dovetail_control::bind::Outcome) per decision. It repeats no write: what failed goes back to whoever
//! decides. Where the answer leaves open whether the write took effect, the binder waits until the request can no longer
//! take effect, then looks at the pod. [`Orders`] stops pods, says for which pods room is made, and for which nodes
//! claims are to get their volumes.

mod ask;
mod binder;
mod mark;
mod nominate;
mod orders;
mod steps;
mod turns;

pub use binder::{Binder, BinderSettings};
pub use orders::Orders;

//! Every check: what it looks for, why that costs, what it shows and what mends it.

mod autoscaling;
mod capacity;
mod entry;
mod governance;
mod idle;
mod models;
mod platform;
mod reach;
mod request;
mod scheduling;
mod sharing;
mod spot;
mod visibility;

pub use entry::{Check, FixKind, Layer, Severity, Worth};
pub(crate) use platform::example;
pub use reach::Reach;

/// Checks by id.
pub const CATALOGUE: [&[Check]; 10] = [
    request::CHECKS,
    scheduling::CHECKS,
    sharing::CHECKS,
    idle::CHECKS,
    governance::CHECKS,
    autoscaling::CHECKS,
    spot::CHECKS,
    capacity::CHECKS,
    visibility::CHECKS,
    models::CHECKS,
];

/// The check with an id, whatever its case.
pub fn check(id: &str) -> Option<&'static Check> {
    CATALOGUE.into_iter().flatten().find(|check| check.id.eq_ignore_ascii_case(id))
}

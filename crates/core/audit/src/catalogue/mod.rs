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
pub(crate) use platform::{GKE, example};
pub use reach::Reach;

/// How every example drains a node: without the flag, kubectl refuses on nodes with pods of
/// DaemonSets, and the device plugin is one.
pub(crate) const DRAIN: &str = "kubectl drain NODE --ignore-daemonsets";

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_that_drains_a_node_leaves_the_pods_of_daemon_sets() {
        let drains = |check: &&Check| check.fix_example.contains("kubectl drain");
        let draining: Vec<&Check> = CATALOGUE.into_iter().flatten().filter(drains).collect();
        assert!(draining.len() > 2, "{draining:?}");
        for check in draining {
            let of_one = check.fix_example.replace(" NODES", " NODE");
            assert!(of_one.starts_with(DRAIN), "{}: {}", check.id, check.fix_example);
        }
    }
}

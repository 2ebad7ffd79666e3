//! What pods request of nodes beside GPUs, and how many more pods nodes have room for.

use std::collections::BTreeMap;

use dovetail_facts::{Facts, Workload};
use dovetail_model::Resources;

use super::resource_cluster::resources;

/// How many pods that request so much a node has room for beside what is used of it: by CPU,
/// memory, disk and extended resources. `i64::MAX` if they request nothing.
pub(super) fn rooms(has: &Resources, asks: &Resources, used: Option<&Resources>) -> i64 {
    let fitting = |asked: i64, has: i64, used: i64| match asked {
        ..=0 => i64::MAX,
        _ => has.saturating_sub(used).max(0) / asked,
    };
    let of =
        |amount: fn(&Resources) -> i64| fitting(amount(asks), amount(has), used.map_or(0, amount));
    let count = |of: &Resources, name: &str| of.extended.get(name).copied().unwrap_or(0);
    let extended = asks.extended.iter().map(|(name, asked)| {
        fitting(*asked, count(has, name), used.map_or(0, |used| count(used, name)))
    });
    let plain = [of(|of| of.cpu_milli), of(|of| of.memory_bytes), of(|of| of.ephemeral_bytes)];
    plain.into_iter().chain(extended).min().unwrap_or(i64::MAX)
}

/// What pods of some workloads request of the nodes on which they are, by node.
pub(super) fn requests_by_node(
    facts: &Facts,
    counts: impl Fn(&Workload) -> bool,
) -> BTreeMap<&str, Resources> {
    let mut requests: BTreeMap<&str, Resources> = BTreeMap::new();
    for workload in facts.workloads.iter().filter(|workload| counts(workload)) {
        let of_pod = resources(&workload.template, "");
        for node in workload.pods.iter().filter_map(|pod| pod.node.as_deref()) {
            requests.entry(node).or_default().add_times(&of_pod, 1);
        }
    }
    requests
}

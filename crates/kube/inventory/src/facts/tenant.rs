//! Who stands on which node with how much CPU and memory: what a bill is split by.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::is_gpu_resource;
use dovetail_objects::labels::FRACTION;

use super::inventory::Inventory;

/// A pod on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    pub namespace: String,
    /// Name.
    pub pod: String,
    /// The node it is bound to.
    pub node: String,
    /// Place of its workload in [`dovetail_facts::Facts::workloads`].
    pub workload: usize,
    /// Thousandths of a vCPU kept for it.
    pub cpu_milli: u64,
    /// Bytes of memory kept for it.
    pub memory_bytes: u64,
    /// Whether it holds anything of a GPU.
    pub has_gpus: bool,
    /// Its labels, as far as asked for.
    pub labels: BTreeMap<String, String>,
}

/// All pods on nodes; `of_group` has the workload of each group of pods.
pub(super) fn tenants(
    inventory: &Inventory,
    of_group: &[usize],
    labels: &BTreeSet<String>,
) -> Vec<Tenant> {
    let amount = |amount: i64| u64::try_from(amount).unwrap_or(0);
    let placed = inventory.pods.list.iter().filter(|record| !record.pod.node.is_empty());
    let tenant = placed.map(|record| {
        let (meta, holds) = (&record.pod.meta, record.pod.holds());
        let kept = labels.iter().filter_map(|key| {
            let value = meta.labels.get(key)?;
            Some((key.clone(), value.to_owned()))
        });
        Tenant {
            namespace: meta.namespace.to_string(),
            pod: meta.name.to_string(),
            node: record.pod.node.to_string(),
            workload: of_group[record.group],
            cpu_milli: amount(holds.cpu_milli),
            memory_bytes: amount(holds.memory_bytes),
            has_gpus: holds.extended.iter().any(|(name, n)| *n > 0 && is_gpu_resource(name))
                || FRACTION.iter().any(|key| meta.annotations.get(key).is_some()),
            labels: kept.collect(),
        }
    });
    tenant.collect()
}

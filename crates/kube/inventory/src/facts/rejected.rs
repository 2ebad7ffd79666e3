//! Whether the API server would let pods in that are like those that are there: a LimitRange or a
//! quota may be younger than they are, and then a pod that is evicted has no successor.

use dovetail_facts::{Container, Workload};
use dovetail_objects::Pod;

use super::inventory::Inventory;
use super::limit_range::{LimitRange, TemplateAmounts};
use super::unmade::quota::QuotaRoom;
use super::unmade::replaced::Replaced;

/// Notes for each workload why new pods of it would be rejected; `of_group` has the workload of
/// each group of pods.
pub(super) fn note_rejected(inventory: &Inventory, workloads: &mut [Workload], of_group: &[usize]) {
    let cluster = &inventory.cluster;
    for (group, workload) in inventory.pods.groups.iter().zip(of_group) {
        let pod = &inventory.pods.list[group.first].pod;
        let namespace = &*pod.meta.namespace;
        let ranges = cluster.limit_ranges.get(namespace).map(Vec::as_slice).unwrap_or_default();
        let quotas = cluster.quota_rooms.get(namespace).map(Vec::as_slice).unwrap_or_default();
        if ranges.is_empty() && quotas.is_empty() {
            continue;
        }
        let workload = &mut workloads[*workload];
        if workload.rejected_by.is_none() {
            workload.rejected_by = reason(pod, &workload.template.containers, (ranges, quotas));
        }
    }
}

fn reason(
    pod: &Pod,
    containers: &[Container],
    (ranges, quotas): (&[LimitRange], &[QuotaRoom]),
) -> Option<String> {
    let amounts = TemplateAmounts::of(containers, ranges);
    let by_range = ranges.iter().find_map(|range| range.rejects(&amounts));
    by_range.or_else(|| {
        let again = Replaced::by_its_like(pod, amounts);
        quotas
            .iter()
            .find_map(|quota| quota.requires(&again).or_else(|| Some(quota.rejects(&again)?.words)))
    })
}

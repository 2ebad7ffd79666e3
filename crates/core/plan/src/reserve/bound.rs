//! What bounds the lending of room: until when a job is expected to have left, and how much may be
//! lent. Of a job in room that is reserved, what it has on the nodes of the reservation counts, on
//! each of them no more than is reserved there: what it has elsewhere is in nobody's way.

use std::collections::BTreeMap;

use dovetail_model::{HoldingId, Job, NodeId, Owner};
use dovetail_order::estimate::bucket_ms;
use dovetail_state::State;

use crate::gang::Gang;

/// GPUs by node, in milli-GPU.
pub(super) type OnNodes = BTreeMap<NodeId, i64>;

/// When a job that starts now is expected to have ended (p90).
pub(super) fn expected_end_ms(job: &Job, now_ms: u64) -> Option<u64> {
    job.estimate.map(|estimate| now_ms.saturating_add(bucket_ms(estimate.p90_ms)))
}

/// What may be lent, in milli-GPU: so many percent of what the lender has.
pub(super) fn most_lent_milli(own_milli: i64, percent: u32) -> i64 {
    own_milli * i64::from(percent) / 100
}

/// Whether no more is lent, in milli-GPU, than may be.
pub(super) fn is_within_share(lent_milli: i64, own_milli: i64, percent: u32) -> bool {
    lent_milli <= most_lent_milli(own_milli, percent)
}

/// GPUs of pods of a gang, each with its pod set and its node.
pub(super) fn gpus_of(
    state: &State,
    gang: &Gang,
    pods: impl Iterator<Item = (u16, NodeId)>,
) -> OnNodes {
    let mut on = OnNodes::new();
    for (pod_set, node) in pods {
        if let Some(set) = gang.sets.get(usize::from(pod_set)) {
            *on.entry(node).or_default() += state.shapes.get(set.shape).gpu_milli;
        }
    }
    on
}

/// GPUs of the pods of a gang that hold something.
pub(super) fn held_gpus(state: &State, gang: &Gang, holdings: &[HoldingId]) -> OnNodes {
    let held = holdings.iter().map(|id| state.holdings.get(*id));
    let pods = held.filter_map(|held| match &held.owner {
        Owner::Pod(pod) => Some((pod.pod_set, held.node)),
        _ => None,
    });
    gpus_of(state, gang, pods)
}

/// GPUs that a job with these has of what is reserved, in milli-GPU.
pub(super) fn inside(gpus: &OnNodes, reserved: &OnNodes) -> i64 {
    let of_reserved = |(node, milli): (&NodeId, &i64)| {
        let most_milli = reserved.get(node).copied().unwrap_or(0);
        (*milli).min(most_milli)
    };
    gpus.iter().map(of_reserved).sum()
}

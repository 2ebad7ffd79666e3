//! What bounds the lending of room: until when a job is expected to have left, and how much may be
//! lent.

use std::collections::BTreeMap;

use dovetail_model::{Job, NodeId};
use dovetail_order::estimate::bucket_ms;

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

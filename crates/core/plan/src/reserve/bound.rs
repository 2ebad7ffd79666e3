//! What bounds the lending of room: until when a job is expected to have left, and how much may be
//! lent.

use dovetail_model::Job;
use dovetail_order::estimate::bucket_ms;

/// When a job that starts now is expected to have ended (p90).
pub(super) fn expected_end_ms(job: &Job, now_ms: u64) -> Option<u64> {
    job.estimate.map(|estimate| now_ms.saturating_add(bucket_ms(estimate.p90_ms)))
}

/// Whether what is lent, in milli-GPU, is no more than so many percent of what the lender has.
pub(super) fn is_within_share(lent_milli: i64, own_milli: i64, percent: u32) -> bool {
    lent_milli * 100 <= own_milli * i64::from(percent)
}

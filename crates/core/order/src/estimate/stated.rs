//! Run times that users state, corrected by how many times as long such jobs ran.
//!
//! Ratios are counted in the buckets of run times, as if all had stated one and the same time. As
//! long as nothing is known, jobs end when they say; what jobs of the owner did counts more than
//! what all did.

use dovetail_model::Estimate;
use dovetail_model::job::EstimateSource;

use super::buckets;
use super::survival::Survival;

/// The bucket of jobs that take as long as they say.
const AS_STATED: usize = 48;

fn as_stated_ms() -> u64 {
    buckets::upper_ms(AS_STATED)
}

/// What a run counts as whose job stated so much.
pub(super) fn ratio(ran_ms: u64, stated_ms: u64) -> u64 {
    scaled(ran_ms, as_stated_ms(), stated_ms)
}

/// How long a job runs that stated so much until it counts as this; `None` if that is never.
pub(super) fn reaches_ms(ratio: u64, stated_ms: u64) -> Option<u64> {
    let ran_ms = u128::from(ratio) * u128::from(stated_ms.max(1));
    u64::try_from(ran_ms.div_ceil(u128::from(as_stated_ms()))).ok()
}

fn scaled(ms: u64, by: u64, of: u64) -> u64 {
    u64::try_from(u128::from(ms) * u128::from(by) / u128::from(of.max(1))).unwrap_or(u64::MAX)
}

/// Chances to end, by the part of the stated run time.
pub(super) struct Ratios(pub(super) Survival);

impl Ratios {
    /// All end when they say.
    pub(super) fn as_stated() -> Survival {
        Survival::prior().all_ending_in(AS_STATED)
    }

    /// What is expected of a job that states so much.
    pub(super) fn corrected(&self, stated_ms: u64) -> Estimate {
        let of = |share: f64| scaled(self.0.quantile_ms(share, 0), stated_ms, as_stated_ms());
        Estimate { p50_ms: of(0.5), p90_ms: of(0.9), source: EstimateSource::User }
    }

    /// How long half of those run that stated so much and have run for so long.
    pub(super) fn median_beyond_ms(&self, stated_ms: u64, age_ms: u64) -> u64 {
        let ratio = self.0.quantile_ms(0.5, ratio(age_ms, stated_ms));
        scaled(ratio, stated_ms, as_stated_ms())
    }
}

//! Chances to end: for each bucket of run times, the share of the runs that get there and end in
//! it.

use dovetail_model::RunTimeCounts;

use super::RUN_WEIGHT;
use super::buckets::{self, BUCKETS};
use super::chances;

/// A wider group counts as much as so many runs of a narrower one.
const WIDER_RUNS: f64 = 4.0;
/// Run time that half of all jobs end by, as long as nothing is known: an hour.
const PRIOR_P50_MS: u64 = 3_600_000;

/// Chance to end in each bucket, of a run that gets there.
#[derive(Clone, Debug, PartialEq)]
pub struct Survival([f64; BUCKETS]);

impl Survival {
    /// As long as nothing is known: of runs longer than t, half end by 2 t + an hour. That is what
    /// is left of a run time with survival 1 / (1 + t / hour).
    pub(super) fn prior() -> Self {
        let left = |ms: u64| 1.0 / (1.0 + ms as f64 / PRIOR_P50_MS as f64);
        let mut before = 1.0;
        let mut chances = [1.0; BUCKETS];
        for (bucket, chance) in chances.iter_mut().enumerate().take(BUCKETS - 1) {
            let after = left(buckets::upper_ms(bucket));
            *chance = 1.0 - after / before;
            before = after;
        }
        Self(chances)
    }

    /// Nothing ends before this bucket, and all that gets there ends in it.
    pub(super) fn all_ending_in(mut self, bucket: usize) -> Self {
        self.0[..bucket].fill(0.0);
        self.0[bucket] = 1.0;
        self
    }

    /// The chances of a narrower group: those of this one, as if they were known from
    /// [`WIDER_RUNS`] runs, together with its own runs.
    pub(super) fn narrowed(mut self, counts: &RunTimeCounts) -> Self {
        let runs = |weight: u32| f64::from(weight) / f64::from(RUN_WEIGHT);
        let mut known = counts.buckets.iter().rev().peekable();
        let jobs = (0..BUCKETS).rev().map(|bucket| {
            let here = known.next_if(|(number, ..)| usize::from(*number) == bucket);
            here.map_or((0.0, 0.0), |(_, ended, running)| (runs(*ended), runs(*running)))
        });
        chances::narrow(&mut self.0, WIDER_RUNS, jobs);
        self
    }

    /// The run time that a share of those end by that have run for `age_ms`: more than that.
    pub fn quantile_ms(&self, share: f64, age_ms: u64) -> u64 {
        let mut left = 1.0;
        for bucket in buckets::of(age_ms)..BUCKETS {
            left *= 1.0 - self.0[bucket];
            let upper_ms = buckets::upper_ms(bucket);
            if left <= 1.0 - share && upper_ms > age_ms {
                return upper_ms;
            }
        }
        buckets::upper_ms(BUCKETS - 1).max(age_ms.saturating_add(1))
    }

    /// The same between the ends of buckets, as if ends were spread evenly over each.
    pub fn drawn_ms(&self, share: f64, age_ms: u64) -> u64 {
        let mut left = 1.0;
        let mut from_ms = age_ms;
        for bucket in buckets::of(age_ms)..BUCKETS {
            let upper_ms = buckets::upper_ms(bucket).max(from_ms);
            let after = left * (1.0 - self.0[bucket]);
            if after <= 1.0 - share && upper_ms > age_ms {
                let part = (left - (1.0 - share)) / (left - after);
                let ms = from_ms as f64 + part * (upper_ms - from_ms) as f64;
                return (ms as u64).max(age_ms.saturating_add(1));
            }
            (left, from_ms) = (after, upper_ms);
        }
        from_ms.max(age_ms.saturating_add(1))
    }
}

//! What users say their jobs will take.
//!
//! Shape: users mostly say too much. The ratio of run time to estimate is about uniform over
//! (0, 1) (A. Mu'alem and D. Feitelson, "Utilization, Predictability, Workloads, and User Runtime
//! Estimates in Scheduling the IBM SP2 with Backfilling", IEEE TPDS 2001), and nearly all estimates
//! are a few round values (D. Tsafrir, Y. Etsion, D. Feitelson, "Modeling User Runtime Estimates",
//! JSSPP 2005). The shares below are choices: no GPU trace here publishes estimates.

use super::random::{Purpose, Random};

/// Share of the jobs that come with an estimate (choice).
pub(super) const ESTIMATED: f64 = 0.8;
/// Share of the estimates that are too low (choice; batch systems that kill at the limit have
/// none).
pub(super) const TOO_LOW: f64 = 0.1;
/// Least ratio of run time to estimate (choice).
const LEAST_RATIO: f64 = 0.05;
/// Estimates that people give, in min: up to 30 days.
const ROUND_MINUTES: [u64; 19] = [
    5, 10, 15, 30, 60, 120, 180, 240, 360, 480, 720, 1440, 2880, 4320, 7200, 10_080, 14_400,
    20_160, 43_200,
];

/// Draws the estimate of each job.
pub(super) struct Estimates(Random);

impl Estimates {
    pub(super) fn new(seed: u64) -> Self {
        Self(Random::new(seed, Purpose::Estimates))
    }

    /// An estimate in s for a job planned to run so many s.
    pub(super) fn draw(&mut self, planned_s: f64) -> Option<u64> {
        // Both draws are made for every job, so that one job's luck does not shift the next's.
        let (known, low, ratio) = (self.0.uniform(), self.0.uniform(), self.0.uniform());
        if known > ESTIMATED {
            return None;
        }
        if low <= TOO_LOW {
            return Some(((planned_s * (0.5 + 0.5 * ratio)) as u64).max(1));
        }
        let said_s = planned_s / (LEAST_RATIO + (1.0 - LEAST_RATIO) * ratio);
        let round = ROUND_MINUTES.iter().map(|minutes| minutes * 60);
        let longest = ROUND_MINUTES[ROUND_MINUTES.len() - 1] * 60;
        // Beyond the longest round value people keep to it, unless the job is longer still.
        Some(
            round
                .into_iter()
                .find(|s| *s as f64 >= said_s)
                .unwrap_or(longest.max(planned_s as u64 + 1)),
        )
    }
}

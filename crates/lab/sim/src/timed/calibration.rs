//! How good the expected run times were with which jobs started.

use std::collections::{BTreeMap, VecDeque};

use dovetail_model::Estimate;
use dovetail_model::job::EstimateSource;
use serde::{Deserialize, Serialize};

/// Run times that the median of a queue is taken of.
const RECENT: usize = 32;

/// How good the estimates of one source were. Losses are mean pinball losses per job: for the
/// quantile q and the error e = run time - estimate, max(q e, (q - 1) e).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Jobs that started with such an estimate.
    pub jobs: u64,
    /// Share of them that ran no longer than the expected median.
    pub within_p50: f64,
    /// Share of them that ran no longer than the expected 90th percentile.
    pub within_p90: f64,
    /// Mean loss of the median, in seconds.
    pub p50_loss_s: f64,
    /// Mean loss of the 90th percentile, in seconds.
    pub p90_loss_s: f64,
    /// Mean loss of the median if the median of the 32 newest runs of the queue had been expected
    /// instead, over the jobs for which there is one; `None` if there is none.
    pub recent_median_loss_s: Option<f64>,
    /// [`Calibration::p50_loss_s`] over the same jobs.
    pub p50_loss_beside_s: Option<f64>,
}

/// Sums of which a [`Calibration`] is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CalibrationSums {
    jobs: u64,
    within_p50: u64,
    within_p90: u64,
    /// Losses in thousandths of ms.
    p50_loss: u128,
    p90_loss: u128,
    beside: u64,
    recent_loss: u128,
    p50_loss_beside: u128,
}

/// Estimates held against run times, by source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Calibrations {
    sums: Vec<(EstimateSource, CalibrationSums)>,
    /// The newest run times of each queue.
    recent: BTreeMap<String, VecDeque<u64>>,
}

impl Calibrations {
    /// A job started with an estimate; how long it will run is known here alone.
    pub(crate) fn started(&mut self, queue: &str, estimate: Estimate, run_ms: u64) {
        let place = self.sums.iter().position(|(source, _)| *source == estimate.source);
        let place = place.unwrap_or_else(|| {
            self.sums.push((estimate.source, CalibrationSums::default()));
            self.sums.len() - 1
        });
        let sums = &mut self.sums[place].1;
        let p50_loss = loss(500, run_ms, estimate.p50_ms);
        sums.jobs += 1;
        sums.within_p50 += u64::from(run_ms <= estimate.p50_ms);
        sums.within_p90 += u64::from(run_ms <= estimate.p90_ms);
        sums.p50_loss += p50_loss;
        sums.p90_loss += loss(900, run_ms, estimate.p90_ms);
        if let Some(recent_ms) = self.recent.get(queue).and_then(median) {
            sums.beside += 1;
            sums.recent_loss += loss(500, run_ms, recent_ms);
            sums.p50_loss_beside += p50_loss;
        }
    }

    /// A job of a queue ended after so long.
    pub(crate) fn ended(&mut self, queue: &str, run_ms: u64) {
        let recent = self.recent.entry(queue.to_owned()).or_default();
        recent.push_back(run_ms);
        if recent.len() > RECENT {
            recent.pop_front();
        }
    }

    /// The figures by source.
    pub(crate) fn figures(&self) -> BTreeMap<&'static str, Calibration> {
        let mean_s = |sum: u128, jobs: u64| sum as f64 / jobs as f64 / 1e6;
        let of = |sums: &CalibrationSums| Calibration {
            jobs: sums.jobs,
            within_p50: sums.within_p50 as f64 / sums.jobs as f64,
            within_p90: sums.within_p90 as f64 / sums.jobs as f64,
            p50_loss_s: mean_s(sums.p50_loss, sums.jobs),
            p90_loss_s: mean_s(sums.p90_loss, sums.jobs),
            recent_median_loss_s: (sums.beside > 0).then(|| mean_s(sums.recent_loss, sums.beside)),
            p50_loss_beside_s: (sums.beside > 0).then(|| mean_s(sums.p50_loss_beside, sums.beside)),
        };
        let name = |source: EstimateSource| match source {
            EstimateSource::User => "given",
            EstimateSource::Limit => "limit",
            EstimateSource::History => "learned",
            EstimateSource::Default => "default",
        };
        self.sums.iter().map(|(source, sums)| (name(*source), of(sums))).collect()
    }
}

/// The pinball loss of a quantile in thousandths, times a thousand.
pub(super) fn loss(quantile: u128, run_ms: u64, estimate_ms: u64) -> u128 {
    match run_ms.checked_sub(estimate_ms) {
        Some(over_ms) => quantile * u128::from(over_ms),
        None => (1_000 - quantile) * u128::from(estimate_ms - run_ms),
    }
}

pub(super) fn median(recent: &VecDeque<u64>) -> Option<u64> {
    let mut sorted: Vec<u64> = recent.iter().copied().collect();
    sorted.sort_unstable();
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_those_of_the_definition() {
        // 10 s late at the median: half of it. 10 s early at the 90th percentile: a tenth.
        assert_eq!(loss(500, 30_000, 20_000), 5_000_000);
        assert_eq!(loss(900, 20_000, 30_000), 1_000_000);
    }
}

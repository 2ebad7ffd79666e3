//! What earlier forecasts say of new ones.
//!
//! A play knows no job that comes later and goes first, and it draws run times one by one, so
//! starts tend to come later than it says. By how much is learned: for each forecast, the time
//! until the start over the time that was expected. Of a job that is still pending, only a lower
//! limit of this ratio is known. Without such jobs the ratios would be too small, because the
//! forecasts that went most wrong come true last; so quantiles are those of the product-limit
//! estimate, which counts these jobs for as long as they were seen (E. L. Kaplan, P. Meier:
//! Nonparametric estimation from incomplete observations, 1958).
//!
//! The median of the ratios over the newest forecasts of about the same length corrects the next
//! median, and the 90th percentile of the ratios to the expected 90th percentile corrects that one.
//! Where all came true to the millisecond, nothing changes.

use std::collections::BTreeMap;

use dovetail_model::JobId;

/// Forecasts that are remembered of each length.
const REMEMBERED: usize = 400;
/// With fewer of one length that came true, nothing is corrected.
const FEWEST: usize = 20;

/// An expected time until a start, in ms: its median and its 90th percentile.
pub type ExpectedWait = [Option<u64>; 2];

/// The newest forecasts, by the octave of the time expected.
#[derive(Clone, Debug, Default)]
pub struct PastForecasts {
    by_length: BTreeMap<u32, BTreeMap<u64, PastForecast>>,
    /// The forecasts of pending jobs.
    pending: BTreeMap<JobId, (u32, u64)>,
    made: u64,
}

/// One forecast, and what came of it.
#[derive(Clone, Copy, Debug)]
struct PastForecast {
    made_ms: u64,
    p50_ms: u64,
    p90_ms: Option<u64>,
    until: Until,
}

/// How long after a forecast its job was seen.
#[derive(Clone, Copy, Debug)]
enum Until {
    Started(u64),
    /// It left without a start.
    Left(u64),
    Pending,
}

impl PastForecasts {
    /// A forecast of a pending job, as the plays say it. An unknown one says nothing.
    pub fn made(&mut self, job: JobId, expected_ms: ExpectedWait, now_ms: u64) {
        let [Some(p50_ms), p90_ms] = expected_ms else { return };
        self.left(job, now_ms);
        let length = length(p50_ms);
        let newest = self.by_length.entry(length).or_default();
        if newest.len() == REMEMBERED {
            newest.pop_first();
        }
        let until = Until::Pending;
        newest.insert(self.made, PastForecast { made_ms: now_ms, p50_ms, p90_ms, until });
        self.pending.insert(job, (length, self.made));
        self.made += 1;
    }

    /// A job starts.
    pub fn started(&mut self, job: JobId, now_ms: u64) {
        self.ends(job, now_ms, Until::Started);
    }

    /// A job leaves without a start.
    pub fn left(&mut self, job: JobId, now_ms: u64) {
        self.ends(job, now_ms, Until::Left);
    }

    fn ends(&mut self, job: JobId, now_ms: u64, how: impl Fn(u64) -> Until) {
        let Some((length, number)) = self.pending.remove(&job) else { return };
        let Some(past) = self.by_length.get_mut(&length).and_then(|of| of.get_mut(&number)) else {
            return;
        };
        past.until = how(now_ms.saturating_sub(past.made_ms));
    }

    /// Expected times, corrected by what came of earlier ones.
    pub fn corrected(&self, expected_ms: ExpectedWait, now_ms: u64) -> ExpectedWait {
        let [Some(p50_ms), p90_ms] = expected_ms else { return expected_ms };
        let Some(past) = self.of_about(length(p50_ms)) else { return expected_ms };
        let to_median = past.values().map(|past| past.ratio(Some(past.p50_ms), now_ms));
        let to_p90 = past.values().map(|past| past.ratio(past.p90_ms, now_ms));
        let times = |ms: u64, factor: f64| (ms as f64 * factor) as u64;
        let p50_ms = times(p50_ms, quantile(to_median.collect(), 0.5));
        let p90_ms = p90_ms.map(|ms| times(ms, quantile(to_p90.collect(), 0.9)).max(p50_ms));
        [Some(p50_ms), p90_ms]
    }

    /// The forecasts of a length, or of the nearest one of which enough came true.
    fn of_about(&self, length: u32) -> Option<&BTreeMap<u64, PastForecast>> {
        let came_true = |past: &&PastForecast| matches!(past.until, Until::Started(_));
        let enough = self
            .by_length
            .iter()
            .filter(|(_, of)| of.values().filter(came_true).take(FEWEST).count() == FEWEST);
        enough.min_by_key(|(other, _)| other.abs_diff(length)).map(|(_, of)| of)
    }
}

impl PastForecast {
    /// The time seen over a time expected, and whether it ended with the start.
    fn ratio(&self, expected_ms: Option<u64>, now_ms: u64) -> (f64, bool) {
        let (seen_ms, has_started) = match self.until {
            Until::Started(ms) => (ms, true),
            Until::Left(ms) => (ms, false),
            Until::Pending => (now_ms.saturating_sub(self.made_ms), false),
        };
        let over = |expected_ms: u64| seen_ms.max(1) as f64 / expected_ms.max(1) as f64;
        (expected_ms.map_or(1.0, over), has_started)
    }
}

/// A quantile of ratios of which some are only known to be greater: the least one at which the
/// product-limit estimate of the share that is greater falls to the rest. If it does not fall that
/// far, the greatest of all.
fn quantile(mut ratios: Vec<(f64, bool)>, share: f64) -> f64 {
    ratios.sort_unstable_by(|(one, _), (other, _)| one.total_cmp(other));
    let mut greater = 1.0;
    let all = ratios.len();
    for (at, (ratio, has_started)) in ratios.iter().enumerate() {
        if *has_started {
            greater *= 1.0 - 1.0 / (all - at) as f64;
            // Products of fractions may come to a hair more than what they are of.
            if greater <= 1.0 - share + 1e-9 {
                return *ratio;
            }
        }
    }
    ratios.last().map_or(1.0, |(ratio, _)| *ratio)
}

fn length(ms: u64) -> u32 {
    ms.max(1_000).ilog2()
}

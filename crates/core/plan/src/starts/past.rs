//! What earlier forecasts say of new ones.
//!
//! A play knows no job that comes later and goes first, and it draws run times of different bursts
//! apart from each other, so starts tend to come later than it says. By how much is learned: for
//! each forecast, the time until the start over the time that was expected. Of a job that is still
//! pending, only a lower limit of this ratio is known. Without such jobs the ratios would be too
//! small, because the forecasts that went most wrong come true last; so quantiles are those of the
//! product-limit estimate, which counts these jobs for as long as they were seen (E. L. Kaplan, P.
//! Meier: Nonparametric estimation from incomplete observations, 1958).
//!
//! The median of the ratios over the newest forecasts of about the same length corrects the next
//! median, if less than a fifth of these forecasts, or more than four fifths, came true by their
//! median. Jobs of one burst start together, so that a few hundred forecasts may be no more than a
//! few results; by as many, a median that is right would be moved at random. For the same reason
//! the 90th percentile of the ratios to the expected 90th percentile only ever makes that one
//! later. Where all came true to the millisecond, nothing changes.

use std::collections::BTreeMap;

use dovetail_model::JobId;

use super::corrections::{AS_EXPECTED, ExpectedWait, OctaveCorrection, StartCorrections, octave};

/// Forecasts that are remembered of each length.
const REMEMBERED: usize = 400;
/// With fewer of one length that came true, nothing is corrected.
const FEWEST: usize = 20;
/// Medians by which at least this share of the forecasts came true, and at most the rest of it, are
/// not corrected.
const FEW: f64 = 0.2;

/// The newest forecasts, by the octave of the time expected.
#[derive(Clone, Debug, Default)]
pub struct PastForecasts {
    by_octave: BTreeMap<u32, BTreeMap<u64, PastForecast>>,
    /// Octave and number of the forecast of each.
    pending: BTreeMap<JobId, (u32, u64)>,
    made: u64,
    /// What was learned before from forecasts that are not among these.
    earlier: StartCorrections,
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
    /// Goes on with what was learned from earlier forecasts.
    pub fn after(earlier: StartCorrections) -> Self {
        Self { earlier, ..Self::default() }
    }

    /// Takes in forecasts of pending jobs that are made together, as the plays say them, and
    /// returns them corrected: all by what came of earlier ones.
    pub fn forecast(
        &mut self,
        played_ms: Vec<(JobId, ExpectedWait)>,
        now_ms: u64,
    ) -> Vec<(JobId, ExpectedWait)> {
        let corrections = self.corrections(now_ms);
        let corrected = |(job, played_ms)| {
            self.made(job, played_ms, now_ms);
            (job, corrections.corrected(played_ms))
        };
        played_ms.into_iter().map(corrected).collect()
    }

    /// A forecast of a pending job, as the plays say it. An unknown one says nothing.
    fn made(&mut self, job: JobId, expected_ms: ExpectedWait, now_ms: u64) {
        let [Some(p50_ms), p90_ms] = expected_ms else { return };
        self.left(job, now_ms);
        let octave = octave(p50_ms);
        let newest = self.by_octave.entry(octave).or_default();
        if newest.len() == REMEMBERED {
            newest.pop_first();
        }
        let until = Until::Pending;
        newest.insert(self.made, PastForecast { made_ms: now_ms, p50_ms, p90_ms, until });
        self.pending.insert(job, (octave, self.made));
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
        let Some((octave, number)) = self.pending.remove(&job) else { return };
        let Some(past) = self.by_octave.get_mut(&octave).and_then(|of| of.get_mut(&number)) else {
            return;
        };
        past.until = how(now_ms.saturating_sub(past.made_ms));
    }

    /// What corrects forecasts from now on: for each octave of which enough came true what came of
    /// them, for others what was learned before.
    pub fn corrections(&self, now_ms: u64) -> StartCorrections {
        let earlier = self.earlier.0.iter().map(|by| (by.octave, *by));
        let mut corrections: BTreeMap<u32, OctaveCorrection> = earlier.collect();
        let came_true = |past: &&PastForecast| matches!(past.until, Until::Started(_));
        for (octave, past) in &self.by_octave {
            if past.values().filter(came_true).take(FEWEST).count() < FEWEST {
                continue;
            }
            let ratios = |expected_ms: fn(&PastForecast) -> Option<u64>| {
                let ratio = |past: &PastForecast| past.ratio(expected_ms(past), now_ms);
                let mut ratios: Vec<(u64, bool)> = past.values().map(ratio).collect();
                ratios.sort_unstable();
                ratios
            };
            let to_p50 = ratios(|past| Some(past.p50_ms));
            let is_early = quantile(&to_p50, FEW) > AS_EXPECTED;
            let is_late = quantile(&to_p50, 1.0 - FEW) < AS_EXPECTED;
            let p50_permille =
                if is_early || is_late { quantile(&to_p50, 0.5) } else { AS_EXPECTED };
            let p90_permille = quantile(&ratios(|past| past.p90_ms), 0.9).max(AS_EXPECTED);
            let octave = *octave;
            corrections.insert(octave, OctaveCorrection { octave, p50_permille, p90_permille });
        }
        StartCorrections(corrections.into_values().collect())
    }
}

impl PastForecast {
    /// The time seen over a time expected, in thousandths, and whether it ended with the start.
    fn ratio(&self, expected_ms: Option<u64>, now_ms: u64) -> (u64, bool) {
        let (seen_ms, has_started) = match self.until {
            Until::Started(ms) => (ms, true),
            Until::Left(ms) => (ms, false),
            Until::Pending => (now_ms.saturating_sub(self.made_ms), false),
        };
        let over = |expected_ms: u64| {
            let permille = u128::from(seen_ms.max(1)) * 1_000 / u128::from(expected_ms.max(1));
            u64::try_from(permille).unwrap_or(u64::MAX)
        };
        (expected_ms.map_or(AS_EXPECTED, over), has_started)
    }
}

/// A quantile of sorted ratios of which some are only known to be greater: the least one at which
/// the product-limit estimate of the share that is greater falls to the rest. If it does not fall
/// that far, the greatest of all.
fn quantile(ratios: &[(u64, bool)], share: f64) -> u64 {
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
    ratios.last().map_or(AS_EXPECTED, |(ratio, _)| *ratio)
}

//! What earlier forecasts say of new ones.
//!
//! A play knows no job that comes later and goes first, so starts tend to come later than it says.
//! By how much is learned: for each forecast that came true, the time until the start over the time
//! that was expected. The median of these ratios over the newest forecasts of about the same length
//! corrects the next median, and their 90th percentile over the expected 90th percentile the next
//! 90th percentile. Where all came true to the millisecond, nothing changes.

use std::collections::{BTreeMap, VecDeque};

/// Forecasts that are remembered of each length.
const REMEMBERED: usize = 200;
/// With fewer of one length, nothing is corrected.
const FEWEST: usize = 20;

/// Ratios of the newest forecasts that came true, by the octave of the time expected.
#[derive(Clone, Debug, Default)]
pub struct PastForecasts {
    by_length: BTreeMap<u32, VecDeque<[f64; 2]>>,
}

/// An expected time until a start, in ms: its median and its 90th percentile.
type Expected = [Option<u64>; 2];

impl PastForecasts {
    /// A job started so long after a forecast had expected these times. An unknown one says
    /// nothing.
    pub fn came_true(&mut self, expected_ms: Expected, after_ms: u64) {
        let [Some(p50_ms), p90_ms] = expected_ms else { return };
        let ratio = |expected_ms: u64| after_ms.max(1) as f64 / expected_ms.max(1) as f64;
        let ratios = self.by_length.entry(length(p50_ms)).or_default();
        if ratios.len() == REMEMBERED {
            ratios.pop_front();
        }
        ratios.push_back([ratio(p50_ms), p90_ms.map_or(1.0, ratio)]);
    }

    /// Expected times, corrected by what came of earlier ones.
    pub fn corrected(&self, expected_ms: Expected) -> Expected {
        let [Some(p50_ms), _] = expected_ms else { return expected_ms };
        let Some(ratios) = self.of_about(length(p50_ms)) else { return expected_ms };
        let by = |which: usize, percent: usize| {
            let mut sorted: Vec<f64> = ratios.iter().map(|ratios| ratios[which]).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
        };
        let times = |ms: Option<u64>, factor: f64| ms.map(|ms| (ms as f64 * factor) as u64);
        let p50_ms = times(expected_ms[0], by(0, 50));
        let p90_ms = times(expected_ms[1], by(1, 90));
        [p50_ms, p90_ms.max(p50_ms.filter(|_| p90_ms.is_some()))]
    }

    /// The forecasts of a length, or of the nearest one of which enough came true.
    fn of_about(&self, length: u32) -> Option<&VecDeque<[f64; 2]>> {
        let enough = self.by_length.iter().filter(|(_, ratios)| ratios.len() >= FEWEST);
        enough.min_by_key(|(other, _)| other.abs_diff(length)).map(|(_, ratios)| ratios)
    }
}

fn length(ms: u64) -> u32 {
    ms.max(1_000).ilog2()
}

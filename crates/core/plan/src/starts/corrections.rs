//! Factors by which expected starts are corrected.

use serde::{Deserialize, Serialize};

/// A factor of one, in thousandths.
pub(super) const AS_EXPECTED: u64 = 1_000;

/// An expected time until a start, in ms: its median and its 90th percentile. `None` is unknown.
pub type ExpectedWait = [Option<u64>; 2];

/// How much later starts come than forecasts say, by the time that is expected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartCorrections(pub Vec<OctaveCorrection>);

/// What corrects the forecasts whose median is within one octave of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OctaveCorrection {
    /// The octave: medians of at least 2^octave ms and less than twice of it.
    pub octave: u32,
    /// The factor of the median, in thousandths.
    pub p50_permille: u64,
    /// The factor of the 90th percentile, in thousandths.
    pub p90_permille: u64,
}

impl StartCorrections {
    /// Expected times, corrected by the factors of their octave, or of the nearest one that has
    /// any.
    pub fn corrected(&self, expected_ms: ExpectedWait) -> ExpectedWait {
        let [Some(p50_ms), p90_ms] = expected_ms else { return expected_ms };
        let octave = octave(p50_ms);
        let Some(by) = self.0.iter().min_by_key(|by| by.octave.abs_diff(octave)) else {
            return expected_ms;
        };
        // What an earlier version has stored may make it earlier, and the median with it.
        let p90_ms = p90_ms.map(|ms| times(ms, by.p90_permille.max(AS_EXPECTED)));
        let p50_ms = times(p50_ms, by.p50_permille);
        [Some(p90_ms.map_or(p50_ms, |p90_ms| p50_ms.min(p90_ms))), p90_ms]
    }
}

/// The octave of a median; below a second there is one.
pub(super) fn octave(p50_ms: u64) -> u32 {
    p50_ms.max(1_000).ilog2()
}

fn times(ms: u64, permille: u64) -> u64 {
    u64::try_from(u128::from(ms) * u128::from(permille) / 1_000).unwrap_or(u64::MAX)
}

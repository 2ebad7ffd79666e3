//! Presets of order `dovetail`, and their weights.

use serde::{Deserialize, Serialize};

/// Weights of the terms of a standing, and whether running jobs make place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turns {
    /// Weight of the GPU-time that is expected until a job ends, in thousandths.
    pub size: u32,
    /// GPU-seconds that a second of waiting makes up for, in thousandths.
    pub age: u32,
    /// Whether a job that waits may preempt one of equal priority whose standing is worse.
    pub preempts: bool,
    /// How many times better its standing must be, in hundredths.
    pub advantage: u32,
}

/// Presets by name, the default first, each with what it is for.
pub const PRESETS: [(&str, &str, Turns); 3] = [
    (
        "fair",
        "submission order, jobs that are expected to be short a little earlier",
        Turns { size: 10, age: 1_000, preempts: false, advantage: 300 },
    ),
    (
        "throughput",
        "little expected GPU-time first; running jobs are left alone",
        Turns { size: 1_000, age: 10, preempts: false, advantage: 300 },
    ),
    (
        "latency",
        "little expected GPU-time first; running jobs make place for much shorter ones",
        Turns { size: 1_000, age: 10, preempts: true, advantage: 300 },
    ),
];

impl Default for Turns {
    fn default() -> Self {
        PRESETS[0].2
    }
}

impl Turns {
    /// The preset of a name.
    pub fn preset(name: &str) -> Option<Self> {
        let preset = PRESETS.iter().find(|(known, ..)| *known == name);
        preset.map(|(.., turns)| *turns)
    }

    /// A standing, in GPU-ms: of a job that is expected to run for so long, on so many GPUs, and
    /// was submitted then.
    pub(super) fn standing(&self, expected_ms: u64, gpu_milli: i64, submit_ms: u64) -> u64 {
        // A job without GPUs counts as a thousandth of one: it is in nobody's way.
        let gpu_milli = u128::from(gpu_milli.max(1).unsigned_abs());
        let size = u128::from(expected_ms) * gpu_milli * u128::from(self.size) / 1_000_000;
        let age = u128::from(submit_ms) * u128::from(self.age) / 1_000;
        u64::try_from(size + age).unwrap_or(u64::MAX)
    }

    /// The standing from which on a job that runs may be preempted for another.
    pub(super) fn may_be_taken_from(&self, standing: u64) -> u64 {
        let least = u128::from(standing) * u128::from(self.advantage.max(100)) / 100;
        u64::try_from(least).unwrap_or(u64::MAX)
    }
}

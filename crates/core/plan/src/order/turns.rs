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
        "little expected GPU-time first; running jobs are preempted for much shorter ones",
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
        u64::try_from(size + self.age(submit_ms)).unwrap_or(u64::MAX)
    }

    /// The standing from which on a job that runs may be preempted for one of this standing that
    /// was submitted then. Its size counts alone: the clock on which it was submitted began at any
    /// time.
    pub(crate) fn may_be_taken_from(&self, standing: u64, submit_ms: u64) -> u64 {
        let size = u128::from(standing).saturating_sub(self.age(submit_ms));
        let better = size * u128::from(self.advantage.max(100) - 100) / 100;
        u64::try_from(u128::from(standing) + better).unwrap_or(u64::MAX)
    }

    fn age(&self, submit_ms: u64) -> u128 {
        u128::from(submit_ms) * u128::from(self.age) / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_be_preempted_does_not_depend_on_where_the_clock_begins() {
        let turns = Turns::preset("latency").expect("a preset");
        let hour_ms = 3_600_000;
        for origin_ms in [0, 1_800_000_000_000] {
            // One GPU for an hour, submitted a day after the running job.
            let submit_ms = origin_ms + 24 * hour_ms;
            let waits = turns.standing(hour_ms, 1_000, submit_ms);
            let bar = turns.may_be_taken_from(waits, submit_ms);
            let runs = |hours: u64| turns.standing(hours * hour_ms, 1_000, origin_ms);
            // Three hours, and 0.01 GPU-hours for each hour of age.
            assert!(runs(3) < bar && runs(4) > bar, "{origin_ms}: {bar}");
        }
    }
}

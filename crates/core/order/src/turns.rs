//! Presets of order `dovetail`, and their weights.

use serde::{Deserialize, Serialize};

/// Weights of the terms of a standing, who goes by queues, and whether running jobs make place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turns {
    /// Weight of the GPU-time that is expected until a job ends, in thousandths.
    pub size: u32,
    /// Weight of the run time that is expected until a job ends, whatever its size, in thousandths:
    /// a second counts as a GPU-second.
    #[serde(skip_serializing_if = "is_zero")]
    pub run_time: u32,
    /// GPU-seconds that a second of waiting makes up for, in thousandths.
    pub age: u32,
    /// Whether a job that waits may take the place of jobs of equal priority that run.
    pub preempts: bool,
    /// How many times as many jobs must be expected to end per time then, in hundredths.
    pub advantage: u32,
    /// Which queue goes first.
    #[serde(skip_serializing_if = "QueueTurns::is_none")]
    pub queues: QueueTurns,
    /// After so long, what a queue has used counts half, where the queue says nothing else; 0
    /// counts only what it holds. In seconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub half_life_s: u32,
    /// Whether a queue gets back what it is guaranteed from those that hold more than theirs.
    #[serde(skip_serializing_if = "is_not")]
    pub reclaims: bool,
    /// So long after its submission a job has got back the quota of its queue: until then it waits
    /// for the next checkpoints of those who give it back, where less is lost in sum. In seconds; 0
    /// waits for none.
    #[serde(skip_serializing_if = "is_zero")]
    pub reclaim_within_s: u32,
    /// A job that was preempted is left alone for so long at most before it is preempted again for
    /// the quota of a queue. In seconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub respite_s: u32,
    /// Whether nobody, priority included, takes what a queue holds within its quota.
    #[serde(skip_serializing_if = "is_not")]
    pub protects_guarantees: bool,
}

// The form that serde asks for.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_not(value: &bool) -> bool {
    !value
}

// The form that serde asks for.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// Which queue goes first among jobs of equal priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueTurns {
    /// None: jobs of all queues stand in one line.
    #[default]
    None,
    /// Who holds less than its quota, then who has used least for its weight, level by level
    /// (Slurm's Fair Tree).
    FairTree,
    /// Who has least of what NVIDIA's KAI Scheduler would give it, before priority; a job that must
    /// not be preempted starts within quotas alone.
    Kai,
}

impl QueueTurns {
    // The form that serde asks for.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

const DAY_S: u32 = 24 * 3_600;
const WEEK_S: u32 = 7 * DAY_S;

/// A queue gets back what it is guaranteed within five minutes.
const RECLAIM_WITHIN_S: u32 = 300;

/// Presets by name, the default first, each with what it is for.
pub const PRESETS: [(&str, &str, Turns); 5] = [
    (
        "fair",
        "Queue with the lowest usage relative to its weight first; within a queue, submission \
         order, short jobs slightly earlier",
        Turns {
            queues: QueueTurns::FairTree,
            half_life_s: WEEK_S,
            reclaims: true,
            reclaim_within_s: RECLAIM_WITHIN_S,
            respite_s: DAY_S,
            protects_guarantees: true,
            ..Turns::LINE
        },
    ),
    (
        "throughput",
        "Smallest expected GPU time first; running jobs are not preempted",
        Turns { size: 1_000, age: 10, ..Turns::LINE },
    ),
    (
        "latency",
        "Smallest expected GPU time first; running jobs are preempted for much shorter ones",
        Turns { size: 1_000, age: 10, preempts: true, ..Turns::LINE },
    ),
    (
        "cost",
        "Shortest expected run time first, regardless of GPUs",
        Turns { size: 0, run_time: 1_000, age: 10, ..Turns::LINE },
    ),
    (
        "kai",
        "Queues in the order and with the shares of NVIDIA's KAI Scheduler; within a queue, \
         priority, then submission order",
        Turns {
            size: 0,
            queues: QueueTurns::Kai,
            reclaims: true,
            reclaim_within_s: RECLAIM_WITHIN_S,
            respite_s: DAY_S,
            protects_guarantees: true,
            ..Turns::LINE
        },
    ),
];

impl Default for Turns {
    /// What an engine is told that is told nothing: no preset, as it would change what earlier
    /// recordings decide.
    fn default() -> Self {
        Self::LINE
    }
}

impl Turns {
    /// One line in submission order, jobs that are expected to be short a little earlier.
    pub const LINE: Self = Self {
        size: 10,
        run_time: 0,
        age: 1_000,
        preempts: false,
        advantage: 300,
        queues: QueueTurns::None,
        half_life_s: 0,
        reclaims: false,
        reclaim_within_s: 0,
        respite_s: 0,
        protects_guarantees: false,
    };

    /// The preset of a name.
    pub fn preset(name: &str) -> Option<Self> {
        let preset = PRESETS.iter().find(|(known, ..)| *known == name);
        preset.map(|(.., turns)| *turns)
    }

    /// Half-life of what queues have used, in ms.
    pub fn half_life_ms(&self) -> u64 {
        u64::from(self.half_life_s) * 1_000
    }

    /// See [`Self::respite_s`], in ms.
    pub(super) fn respite_ms(&self) -> u64 {
        u64::from(self.respite_s) * 1_000
    }

    /// A standing, in GPU-ms: of a job that is expected to run for so long, on so many GPUs, and
    /// was submitted then.
    pub(super) fn standing(&self, expected_ms: u64, gpu_milli: i64, submit_ms: u64) -> u64 {
        let [size, run_time] = self.expected(expected_ms, gpu_milli);
        u64::try_from(size + run_time + self.age(submit_ms)).unwrap_or(u64::MAX)
    }

    /// The terms for the GPU-time and the run time that are expected, in GPU-ms.
    pub(super) fn expected(&self, expected_ms: u64, gpu_milli: i64) -> [u128; 2] {
        // A job without GPUs counts as a thousandth of one: it is in nobody's way.
        let gpu_milli = u128::from(gpu_milli.max(1).unsigned_abs());
        let size = u128::from(expected_ms) * gpu_milli * u128::from(self.size) / 1_000_000;
        [size, u128::from(expected_ms) * u128::from(self.run_time) / 1_000]
    }

    /// Whether jobs of this rate may take the place of others of that rate ([`crate::rates`]).
    pub(super) fn is_worth(&self, gained: u128, given: u128) -> bool {
        given.saturating_mul(u128::from(self.advantage.max(100))) < gained.saturating_mul(100)
    }

    /// What is expected of a standing beside its age, as of a job that was submitted then. The
    /// clock on which it was submitted began at any time.
    pub fn size_of(&self, standing: u64, submit_ms: u64) -> u64 {
        let size = u128::from(standing).saturating_sub(self.age(submit_ms));
        u64::try_from(size).unwrap_or(u64::MAX)
    }

    /// The term for so much time, in GPU-ms.
    pub(super) fn age(&self, submit_ms: u64) -> u128 {
        u128::from(submit_ms) * u128::from(self.age) / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expected_does_not_depend_on_where_the_clock_begins() {
        let turns = Turns::preset("latency").expect("a preset");
        let hour_ms = 3_600_000;
        for origin_ms in [0, 1_800_000_000_000] {
            // One GPU for an hour, submitted a day after a job that runs for four more.
            let submit_ms = origin_ms + 24 * hour_ms;
            let waits = turns.standing(hour_ms, 1_000, submit_ms);
            let runs = turns.standing(4 * hour_ms, 1_000, origin_ms);
            let size = |standing: u64| turns.size_of(standing, submit_ms);
            // 0.01 GPU-hours for each hour of age.
            let older_ms = 24 * hour_ms / 100;
            assert_eq!((size(waits), size(runs)), (hour_ms, 4 * hour_ms - older_ms), "{origin_ms}");
        }
    }
}

//! What a job has behind it that was preempted, or lost with a node, and runs again.

use serde::{Deserialize, Serialize};

/// Earlier attempts of a job, summed up. One that runs for the first time has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    /// Attempts that ended before the job was done.
    pub attempts: u32,
    /// How many of them ended by a preemption.
    pub preemptions: u32,
    /// GPU-time that they held, in milli-GPU × ms.
    pub attained_gpu_milli_ms: u64,
    /// Run time that their checkpoints keep: the next attempt goes on from there.
    pub saved_ms: u64,
    /// When the last of them ended.
    pub last_end_ms: u64,
}

impl History {
    /// Whether no attempt came before.
    pub fn is_empty(&self) -> bool {
        self.attempts == 0
    }
}

/// How a job ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HowEnded {
    /// It did its work, or nothing is known of how it ended.
    #[default]
    Completed,
    /// It ended with an error, or its user stopped it.
    Failed,
    /// It was preempted, and is to run again.
    Preempted,
    /// It was lost with a node, and is to run again.
    Lost,
}

impl HowEnded {
    /// Whether the job is to run again.
    pub fn runs_again(self) -> bool {
        matches!(self, Self::Preempted | Self::Lost)
    }

    /// Whether it did its work: what events say where they say nothing.
    // The form that serde asks for.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    pub fn is_completed(&self) -> bool {
        *self == Self::Completed
    }
}

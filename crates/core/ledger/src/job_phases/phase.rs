//! What a member of a job did with the time for which it held a device.

use serde::{Deserialize, Serialize};

/// Number of phases.
pub const PHASES: usize = 14;

/// What some allocated time was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Its container ran, and that of another rank did not.
    GangWait,
    /// From the binding of its pod until its container ran, and from there to the first work on the device.
    ImageAndStart,
    /// The device was idle while CPUs decoded, or disk or network read.
    DataLoading,
    /// It waited in a collective for a slower member: kernels spin, so that it looks busy.
    Synchronisation,
    /// The device and its host were idle for less than [`super::PhaseRule::pause_ms`].
    ShortGap,
    /// The device and its host were idle for longer.
    LongPause,
    /// The job waited for a checkpoint to be written.
    CheckpointSave,
    /// A new attempt read a checkpoint before its first work.
    CheckpointRestore,
    /// Since the last checkpoint before a failure, an eviction or a preemption: it was done for nothing.
    Repeated,
    /// No member worked, some spun, nothing was read or written, for [`super::PhaseRule::hang_ms`] or longer.
    Hang,
    /// The device worked. Transfers that are part of each iteration are in it.
    Compute,
    /// Held after the last work.
    Tail,
    /// The device was busy; nothing that was measured tells working from waiting.
    BusyNotSeparable,
    /// Nobody knows.
    Unknown,
}

impl Phase {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; PHASES] = [
        Self::GangWait,
        Self::ImageAndStart,
        Self::DataLoading,
        Self::Synchronisation,
        Self::ShortGap,
        Self::LongPause,
        Self::CheckpointSave,
        Self::CheckpointRestore,
        Self::Repeated,
        Self::Hang,
        Self::Compute,
        Self::Tail,
        Self::BusyNotSeparable,
        Self::Unknown,
    ];

    /// Name in every output.
    pub fn name(self) -> &'static str {
        match self {
            Self::GangWait => "gang_wait",
            Self::ImageAndStart => "image_and_start",
            Self::DataLoading => "data_loading",
            Self::Synchronisation => "synchronisation",
            Self::ShortGap => "short_gap",
            Self::LongPause => "long_pause",
            Self::CheckpointSave => "checkpoint_save",
            Self::CheckpointRestore => "checkpoint_restore",
            Self::Repeated => "repeated",
            Self::Hang => "hang",
            Self::Compute => "compute",
            Self::Tail => "tail",
            Self::BusyNotSeparable => "busy_not_separable",
            Self::Unknown => "unknown",
        }
    }
}

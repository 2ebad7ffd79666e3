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
    /// From the binding of its pod until its container ran, and from there to the first work on the
    /// device.
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
    /// Since the last checkpoint before a failure, an eviction or a preemption: it was done for
    /// nothing.
    Repeated,
    /// No member worked, some spun, nothing was read or written, for [`super::PhaseRule::hang_ms`]
    /// or longer.
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

    /// What would make it less; `None` for what is no waste.
    pub fn remedy(self) -> Option<&'static str> {
        Some(match self {
            Self::GangWait => {
                "start the pods of the job together, as one gang, so that none occupies a GPU while others wait"
            }
            Self::ImageAndStart => {
                "pull the image in advance or shrink it, keep weights on a local volume, and do the setup before GPUs \
                 are allocated"
            }
            Self::DataLoading => {
                "give the data loader more CPUs or workers, prefetch, or keep the data closer or in a format that \
                 decodes faster"
            }
            Self::Synchronisation => {
                "check the pod that the others wait for (slow GPU, node or disk), balance the batches, or use fewer \
                 pods"
            }
            Self::ShortGap => {
                "overlap evaluation, logging and checkpoints with training, or share the GPU"
            }
            Self::LongPause => {
                "stop or suspend it when it is idle, or share the GPU; for a notebook, use a culler"
            }
            Self::CheckpointSave => {
                "save asynchronously, in shards, to faster storage, or less often"
            }
            Self::CheckpointRestore => "keep a copy near the GPUs, and restore in shards",
            Self::Repeated => {
                "save more often before the usual end of an attempt, and save on SIGTERM"
            }
            Self::Hang => {
                "set a timeout on collectives, and a watchdog that restarts the job from its checkpoint"
            }
            Self::Tail => {
                "terminate the pods when the work finishes: no helper container that keeps \
                 running, no copying of results on GPU nodes"
            }
            Self::BusyNotSeparable => {
                "configure the exporter to collect DCGM_FI_PROF_PIPE_TENSOR_ACTIVE and \
                 DCGM_FI_PROF_DRAM_ACTIVE, which distinguish work from waiting"
            }
            Self::Unknown => {
                "scrape every node's exporter, and CPU, disk and network of its pods (cAdvisor), which show what \
                 a GPU waits for"
            }
            Self::Compute => return None,
        })
    }
}

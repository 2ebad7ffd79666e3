//! What is known of one job.

use thiserror::Error;

use dovetail_account::device_time::Span;

/// A job: its members, and the grid on which their devices and hosts were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobRecord {
    /// Begin of the first sample, in ms since 1970.
    pub from_ms: u64,
    /// Distance of samples, the same for all members. A sample is the mean over its step.
    pub step_ms: u64,
    /// Number of ranks that work together. Each has a member at a time.
    pub ranks: u32,
    /// Devices with what held them.
    pub members: Vec<Member>,
    /// When checkpoints were complete, where somebody told, ascending.
    pub checkpoints_ms: Vec<u64>,
}

/// One device held by one pod of the job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Name for messages, for example `team/train-3 gpu 0`.
    pub name: String,
    /// Which rank of the job it was, below [`JobRecord::ranks`]. A pod that is replaced leaves its
    /// rank to the next.
    pub rank: u32,
    /// How much of the device it held.
    pub gpu_milli: i64,
    /// From the binding of the pod until it was gone.
    pub held: Span,
    /// When its container ran, ascending, within `held`.
    pub runs: Vec<ContainerRun>,
    /// Its container ran already before it is known: its first run is the rest of one, without a
    /// start.
    pub ran_before: bool,
    /// Samples from [`JobRecord::from_ms`] on.
    pub samples: Vec<DeviceSample>,
}

/// One run of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContainerRun {
    /// From its start to its end, or to the end of what is known.
    pub span: Span,
    pub end: RunEnd,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// It did what it was for.
    Completed,
    /// It failed, or was evicted or preempted: what it had not saved was lost.
    Lost,
    /// It has not ended, or nobody knows how.
    Open,
}

/// What was read of one device and its host in one step; `None` where nothing was.
///
/// What is read of a pod as a whole (CPU, disk, network) is divided by the number of its devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceSample {
    /// Whether the device computed for one of several that had it: what was read of it says nothing
    /// of this member then, and no sample is missing.
    pub is_of_several: bool,
    /// Time in which the compute engine was active, in millionths of a percent, as all shares here.
    pub engine_micro_percent: Option<u32>,
    /// Time in which any kernel ran.
    pub util_micro_percent: Option<u32>,
    /// Multiprocessors with work.
    pub sm_micro_percent: Option<u32>,
    /// Time in which tensor cores worked.
    pub tensor_micro_percent: Option<u32>,
    /// Time in which memory was read or written.
    pub dram_micro_percent: Option<u32>,
    /// Sent and received over NVLink, in bytes per second.
    pub nvlink_bytes_per_s: Option<u64>,
    pub power_milliwatts: Option<u32>,
    pub memory_bytes: Option<u64>,
    /// CPUs busy, in thousandths.
    pub cpu_milli: Option<u64>,
    /// Time in which a disk of its host was busy, where the host is its own.
    pub disk_busy_micro_percent: Option<u32>,
    /// Read from disks, in bytes per second.
    pub read_bytes_per_s: Option<u64>,
    /// Written to disks, in bytes per second.
    pub written_bytes_per_s: Option<u64>,
    /// Received from the network, in bytes per second.
    pub received_bytes_per_s: Option<u64>,
    /// Sent to the network, in bytes per second.
    pub sent_bytes_per_s: Option<u64>,
}

/// Why a record cannot be split.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JobRecordError {
    /// Nothing has a length.
    #[error("the sample interval is zero: pass the step at which the series were read")]
    NoStep,
    /// More than a cluster has samples of.
    #[error("{member}: its period is {steps} steps long: use longer steps")]
    TooLong {
        member: String,
        /// Steps that it would be.
        steps: u64,
    },
    /// A rank that the job does not have.
    #[error("{member}: is rank {rank} of a job of {ranks}: ranks count from 0")]
    Rank { member: String, rank: u32, ranks: u32 },
    /// A time that ends before it begins.
    #[error(
        "{member}: {what} ends before it starts, lies outside the time in which the member had \
         GPUs, or overlaps another"
    )]
    Times { member: String, what: &'static str },
}

/// Steps for which one member can be read: a year at 15 s.
const MAX_STEPS: u64 = 2_200_000;

impl JobRecord {
    /// Checks what everything else relies on.
    pub(super) fn check(&self) -> Result<(), JobRecordError> {
        if self.step_ms == 0 {
            return Err(JobRecordError::NoStep);
        }
        self.members.iter().try_for_each(|member| self.check_member(member))
    }

    fn check_member(&self, member: &Member) -> Result<(), JobRecordError> {
        let name = || member.name.clone();
        let Span { from_ms, to_ms } = member.held;
        if from_ms > to_ms || from_ms < self.from_ms {
            return Err(JobRecordError::Times { member: name(), what: "its holding" });
        }
        let steps = (to_ms - self.from_ms) / self.step_ms;
        if steps > MAX_STEPS {
            return Err(JobRecordError::TooLong { member: name(), steps });
        }
        if member.rank >= self.ranks {
            let (rank, ranks) = (member.rank, self.ranks);
            return Err(JobRecordError::Rank { member: name(), rank, ranks });
        }
        let mut after_ms = from_ms;
        for ContainerRun { span, .. } in &member.runs {
            if span.from_ms < after_ms || span.to_ms < span.from_ms || span.to_ms > to_ms {
                return Err(JobRecordError::Times { member: name(), what: "a run" });
            }
            after_ms = span.to_ms;
        }
        Ok(())
    }
}

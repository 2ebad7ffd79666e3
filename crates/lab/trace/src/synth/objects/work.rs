//! What runs: an owner with its pods, in families of the same purpose, some with a slip.

use serde::Serialize;

/// What an owner does that wastes GPUs, or risks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Slip {
    /// Training whose pods start one by one.
    NoGang,
    /// Training with the container runtime's 64 MiB of shared memory.
    SmallSharedMemory,
    /// Training that was killed for memory three times.
    KilledForMemory,
    /// Asks for twice the GPUs that it uses.
    HalfUsed,
    /// Takes more CPU per GPU than the node's share.
    TooMuchCpu,
    /// Has held GPUs for 25 minutes and was never ready.
    SlowStart,
    /// Training that nothing says saves its progress.
    SavesNothing,
    /// Saves its progress and pays for on-demand capacity.
    CouldBeOnSpot,
    /// A server that is scaled by CPU.
    ScaledByCpu,
    /// A server without requests.
    NoRequests,
    /// A server whose disruption budget lets no pod go.
    BudgetBlocks,
    /// A server without a priority class.
    NoPriority,
    /// Needs a small part of its GPU.
    SmallLoad,
    /// Its pods must not be moved.
    HeldInPlace,
    /// A rule allows one of its pods on a node.
    OnePerNode,
    /// A container crashes again and again.
    CrashLoop,
    /// Its work is over, a helper runs on.
    HelperRunsOn,
    /// It was deleted an hour ago and is still there.
    Stuck,
    /// Holds a GPU and never used it.
    NeverUsed,
    /// A notebook that nobody touched since yesterday.
    Forgotten,
    /// Needs no GPU and runs beside them.
    BesideGpus,
    /// Sees all GPUs of its node and asked for none.
    SeesAll,
    /// A pod without an owner.
    NoOwner,
    /// Asks for more GPUs than any node has.
    TooLarge,
    /// Does not tolerate the taint of the nodes it needs.
    NoToleration,
    /// Waits for GPUs that are free in pieces.
    InPieces,
}

/// What owners are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    Train,
    Serve,
    Batch,
    Notebook,
    Bare,
    Web,
    Store,
    Agent,
}

impl Family {
    /// The kind of the object that a person edits.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Train => "PyTorchJob",
            Self::Serve | Self::Web => "Deployment",
            Self::Batch => "Job",
            Self::Notebook => "Notebook",
            Self::Bare => "Pod",
            Self::Store => "StatefulSet",
            Self::Agent => "DaemonSet",
        }
    }

    /// Its slips in turn; `None` is an owner without one.
    pub(super) fn slips(self) -> &'static [Option<Slip>] {
        match self {
            Self::Train => &[
                None,
                Some(Slip::HalfUsed),
                Some(Slip::NoGang),
                Some(Slip::SmallSharedMemory),
                Some(Slip::SlowStart),
                Some(Slip::CouldBeOnSpot),
                None,
                Some(Slip::KilledForMemory),
                None,
                None,
            ],
            Self::Serve => &[
                Some(Slip::NoRequests),
                Some(Slip::SmallLoad),
                Some(Slip::HeldInPlace),
                Some(Slip::TooMuchCpu),
                Some(Slip::OnePerNode),
                Some(Slip::ScaledByCpu),
                Some(Slip::BudgetBlocks),
                None,
                Some(Slip::NoPriority),
                None,
                None,
                None,
            ],
            Self::Batch => &[
                None,
                Some(Slip::NeverUsed),
                Some(Slip::CrashLoop),
                None,
                Some(Slip::HelperRunsOn),
                Some(Slip::Stuck),
            ],
            Self::Notebook => &[Some(Slip::Forgotten), None, None],
            Self::Bare => &[Some(Slip::NoOwner)],
            Self::Web => &[
                Some(Slip::BesideGpus),
                None,
                None,
                Some(Slip::SeesAll),
                None,
                None,
                None,
                None,
                None,
                None,
                None,
                None,
            ],
            Self::Store | Self::Agent => &[None],
        }
    }
}

/// An owner with its pods.
#[derive(Debug, Clone)]
pub(super) struct OwnedWork {
    pub(super) family: Family,
    pub(super) slip: Option<Slip>,
    pub(super) name: String,
    /// Place among the teams; those of the system are behind them.
    pub(super) namespace: usize,
    /// The pool whose nodes it is meant for.
    pub(super) pool: usize,
    /// Units of the pool's resource that a pod asks for.
    pub(super) units: u32,
    pub(super) cpu_milli: u32,
    pub(super) memory_mib: u32,
    pub(super) first_pod: u32,
    pub(super) pods: u32,
    /// Minutes since it was made.
    pub(super) age_minutes: u64,
}

impl OwnedWork {
    pub(super) fn has(&self, slip: Slip) -> bool {
        self.slip == Some(slip)
    }

    /// Letters and digits that follow from its place and stay the same.
    pub(super) fn hash(&self, length: usize) -> String {
        super::noise::letters(u64::from(self.first_pod) * 31 + self.name.len() as u64, length)
    }
}

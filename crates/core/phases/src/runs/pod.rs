//! What is known of a pod that may be part of a run.

use dovetail_model::Money;

use dovetail_account::device_time::Span;

/// A pod with what it held and cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunPod {
    pub namespace: String,
    pub name: String,
    /// What made it and ends with it: the top owner, or what a timetable started.
    pub owner: RunOwner,
    /// Identity of the owner; `None` if nobody kept it.
    pub owner_uid: Option<String>,
    /// Whether a timetable started the owner: each is a run of its own.
    pub is_by_timetable: bool,
    /// Its label `dovetail.dev/run`.
    pub run: Option<String>,
    /// Its experiment, by a label that the reader chose.
    pub experiment: Option<String>,
    /// From its first moment with devices to its last; `None` if it held none.
    pub held: Option<Span>,
    pub end: PodEnd,
    /// Device-time that it held, in milli-GPU × ms.
    pub gpu_milli_ms: i128,
    /// What all that it held cost; `None` without a price.
    pub cost: Option<Money>,
}

/// An owner in its namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunOwner {
    /// Kind; empty if nobody knows.
    pub kind: String,
    pub name: String,
}

/// How a pod ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodEnd {
    /// Nobody knows.
    #[default]
    Unknown,
    /// It has not.
    Open,
    /// With success.
    Completed,
    /// Without.
    Failed,
}

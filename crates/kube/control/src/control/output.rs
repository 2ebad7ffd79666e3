//! What a step asks for and reports, as values.

use crate::announce::WriteOutcome;
use crate::learned::{ConfigMapName, LearnedNews};
use crate::order::StepNews;
use crate::request::ApiRequest;
use crate::schedule::{GpuTime, News, PodCounts};

/// What one step asks for and reports.
#[derive(Debug, Default)]
pub struct StepOutput {
    pub requests: Vec<ApiRequest>,
    /// What happened, for logs and metrics, in order.
    pub log: Vec<LogEntry>,
    pub counts: PodCounts,
    /// Searches for pods to preempt, in this step.
    pub searches: u64,
    /// GPU-time that passed since the last step.
    pub gpu_time: GpuTime,
    /// Events that wait to be written, and those given up in this step.
    pub owed: (usize, u64),
    /// Whether a recording lacks something.
    pub is_recording_broken: bool,
    /// Everything is listed: it decides.
    pub decides: bool,
    /// Nothing about pods and claims is on its way but announcements.
    pub is_idle: bool,
    /// It was to stop, and owes nothing more.
    pub is_over: bool,
    /// For how long nothing is to be done, if nothing happens, in milliseconds.
    pub wait_ms: Option<u64>,
}

/// Something for logs and metrics.
#[derive(Debug)]
pub enum LogEntry {
    /// News of the scheduler.
    News {
        news: News,
        /// The same was reported lately.
        is_known: bool,
    },
    /// A gang stayed below its smallest size.
    GivenUp {
        /// The gang, as it is shown.
        gang: String,
        /// How many of its pods are deleted.
        placed: usize,
        /// Its smallest size.
        min: u32,
    },
    /// A write about a pod or a claim went well, or did not.
    Step(StepNews),
    Announced {
        what: Announced,
        /// What became of it.
        written: WriteOutcome,
        /// A refusal of this kind was not reported before.
        is_new: bool,
    },
    /// What was learned was read or written, or could not be.
    Learned { at: ConfigMapName, news: LearnedNews },
    /// In a dry run: a pod or gang would be pending.
    WouldBePending {
        /// A pod, or a gang.
        who: String,
        pods: usize,
        /// Why, in a word.
        reason: &'static str,
        /// Why, for people.
        message: String,
    },
}

/// What is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Announced {
    Event,
    Condition,
    QueueStatus,
    ReservationStatus,
    /// The status of a group of pods.
    GroupStatus,
    /// What preemption has cost, on an object.
    Receipt,
}

impl Announced {
    /// For people.
    pub fn shown(self) -> &'static str {
        match self {
            Self::Event => "event of a pod",
            Self::Condition => "condition of a pod",
            Self::QueueStatus => "status of a queue",
            Self::ReservationStatus => "status of a reservation",
            Self::GroupStatus => "status of a group of pods",
            Self::Receipt => "receipt of preemptions",
        }
    }
}

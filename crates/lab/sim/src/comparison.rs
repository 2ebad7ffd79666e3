//! Policies compared on the same input: the figures that reports show.

use serde::{Deserialize, Serialize};

use crate::fgd::FgdRun;
use crate::timed::{ImpossibleJob, TimedMetrics};
use crate::timeline::{Series, UsageReport};

/// A report: any number of comparisons of either protocol.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReportData {
    pub title: String,
    /// Program and version that computed it.
    pub program: String,
    /// The command that computes it again, where there is one.
    pub command: Option<String>,
    /// Comparisons on arriving pods.
    pub arrivals: Vec<ArrivalComparison>,
    /// Comparisons on jobs in time.
    pub timed: Vec<TimedComparison>,
    /// More to say about the method, a paragraph each.
    pub notes: Vec<String>,
}

/// Policies on the same arriving pods (protocol `fgd`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArrivalComparison {
    pub trace: String,
    pub nodes: u64,
    pub gpus: u64,
    /// What no policy can exceed, by seed of the order of arrival; empty if it was not computed.
    pub limits: Vec<PrefixLimit>,
    /// The policies; the first is what the others are compared with.
    pub policies: Vec<ArrivalPolicy>,
}

/// The longest prefix of the arrivals that could fit at all: whatever the policy, the first
/// rejection comes right after it at the latest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PrefixLimit {
    /// Seed of the order of arrival.
    pub seed: u64,
    /// Requested share of the cluster in the prefix, by cutting stock over devices.
    pub device_prefix_percent: f64,
    /// The same by linear program.
    pub lp_prefix_percent: f64,
}

impl PrefixLimit {
    /// The smaller bound.
    pub fn percent(&self) -> f64 {
        self.device_prefix_percent.min(self.lp_prefix_percent)
    }
}

/// One policy on arriving pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArrivalPolicy {
    pub policy: String,
    /// What a learning policy knew at the beginning, in words; `None` if it does not learn.
    pub learning_started_from: Option<String>,
    /// One run per seed, in the same order for every policy.
    pub runs: Vec<ArrivalRun>,
}

/// One run on arriving pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArrivalRun {
    /// Seed of the order of arrival.
    pub seed: u64,
    /// Allocated share of the GPUs by arrived percent, 0 to 130; `None` where nothing was measured.
    pub allocation_percent: Vec<Option<f64>>,
    /// Fragmented share of the GPUs, as above.
    pub fragmentation_percent: Vec<Option<f64>>,
    /// Arrived percent at the first rejection, the rejected pod included; `None` without one.
    pub first_rejection_percent: Option<f64>,
    /// Arrived percent before the first rejected pod: all of it without a rejection.
    pub held_percent: f64,
    /// Pods that fitted nowhere.
    pub failed_pods: u64,
    /// Pods offered.
    pub decisions: u64,
    /// Speed of deciding and committing; `None` if no time was measured.
    pub decisions_per_second: Option<f64>,
    /// Hash of everything that happened.
    pub event_log_hash: String,
}

impl ArrivalRun {
    /// The figures of a run. `held_percent`: arrived percent before the first rejected pod.
    pub fn new(seed: u64, run: &FgdRun, held_percent: f64) -> Self {
        let per_second = run.decisions as f64 * 1e9 / run.decision_ns as f64;
        Self {
            seed,
            allocation_percent: run.curves.allocation_percent.clone(),
            fragmentation_percent: run.curves.fragmentation_percent.clone(),
            first_rejection_percent: run.first_rejection_percent,
            held_percent,
            failed_pods: run.failed_pods,
            decisions: run.decisions,
            decisions_per_second: (run.decision_ns > 0).then_some(per_second),
            event_log_hash: run.event_log_hash.clone(),
        }
    }
}

/// Policies on the same jobs in time (protocol `timed`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimedComparison {
    pub trace: String,
    pub nodes: u64,
    pub gpus: u64,
    /// Mean time from submission to end that no schedule beats; `None` if it was not computed.
    pub limit_average_jct_s: Option<f64>,
    /// End of the last job that no schedule beats; `None` if it was not computed.
    pub limit_makespan_s: Option<f64>,
    /// Jobs that can never start on this cluster.
    #[serde(default)]
    pub impossible_jobs: u64,
    /// The first of them, with reasons.
    #[serde(default)]
    pub first_impossible_jobs: Vec<ImpossibleJob>,
    /// The policies; the first is what the others are compared with.
    pub policies: Vec<TimedPolicy>,
}

/// One policy on jobs in time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimedPolicy {
    /// Its name, with the order of the queue where that differs between policies.
    pub policy: String,
    /// What a learning policy knew at the beginning, in words; `None` if it does not learn.
    pub learning_started_from: Option<String>,
    /// One run per seed, in the same order for every policy. Curves show the first.
    pub runs: Vec<TimedRun>,
}

/// One run on jobs in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimedRun {
    pub seed: u64,
    /// Figures over the jobs.
    pub metrics: TimedMetrics,
    /// Where the GPU-time went; `None` for the preemptive baselines, which keep no account.
    pub account: Option<RunAccount>,
    /// Hash of everything that happened.
    pub event_log_hash: String,
}

/// What a timeline saw of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunAccount {
    /// GPU-time and money.
    pub usage: UsageReport,
    /// Capacity and queue over time.
    pub series: Series,
}

impl TimedRun {
    /// Where the GPU-time went, if there is an account.
    pub fn usage(&self) -> Option<&UsageReport> {
        self.account.as_ref().map(|account| &account.usage)
    }
}

impl TimedPolicy {
    /// The account of the first run, which curves show.
    pub fn shown(&self) -> Option<&RunAccount> {
        self.runs.first()?.account.as_ref()
    }
}

impl TimedComparison {
    /// The accounts that curves show.
    pub fn all_shown(&self) -> impl Iterator<Item = &RunAccount> {
        self.policies.iter().filter_map(TimedPolicy::shown)
    }
}

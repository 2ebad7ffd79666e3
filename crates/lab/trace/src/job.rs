//! What a trace says about one job, and the rules every job obeys.

use serde::{Deserialize, Serialize};

use crate::limits::{
    MAX_CPU_MILLI, MAX_GPUS, MAX_JOB_MEMORY_BYTES, MAX_MEMORY_BYTES, MAX_PODS, MAX_TIME_MS,
};

const MICROS_PER_MS: u64 = 1_000;

/// One job of a trace: `pod_count` identical pods that start together.
///
/// An absent `Option` means that the source does not say; it never stands for zero.
/// A request of 0 CPU or memory means that the source states none (see [`crate::KnownFields`]).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TraceJob {
    /// Name of the job, unique within its trace.
    pub id: String,
    /// Submission, in ms since the trace's own zero.
    pub submit_ms: u64,
    /// Time from start to end, in ms, when run alone on the resources asked for.
    pub duration_ms: Option<u64>,
    /// What the user or a predictor expected `duration_ms` to be, in ms.
    pub estimate_ms: Option<u64>,
    /// When the source's own scheduler started the job, in ms on the same clock as `submit_ms`.
    pub start_ms: Option<u64>,
    /// Number of identical pods, at least 1.
    pub pod_count: u32,
    /// CPU of each pod, in thousandths of a core.
    pub cpu_milli: i64,
    /// Memory of each pod, in bytes.
    pub memory_bytes: i64,
    /// GPUs of each pod.
    pub gpu_count: u32,
    /// Part of each GPU, in thousandths: 1000 is a whole GPU; 0 exactly when `gpu_count` is 0;
    /// below 1000 only when `gpu_count` is 1.
    pub gpu_milli: i64,
    /// GPU models the job may use, in the source's order; empty means any.
    pub gpu_models: Vec<String>,
    pub user: Option<String>,
    /// Queue, team or virtual cluster.
    pub queue: Option<String>,
    /// Name of the machine-learning model.
    pub model: Option<String>,
    /// Service class as the source names it (openb: `LS`, `BE`, `Burstable`, `Guaranteed`).
    pub service_class: Option<String>,
    /// Larger is more urgent; 0 when the source has no priorities.
    pub priority: i32,
    /// When the job should be done, in ms on the same clock as `submit_ms`.
    pub deadline_ms: Option<u64>,
    /// What it costs to stop the job and start it again.
    #[serde(skip_serializing_if = "StopCosts::is_unknown")]
    pub stop_costs: StopCosts,
    /// How the job ended in the source.
    pub outcome: RecordedOutcome,
    /// Where the source did not see all of it: then it ran for longer than `duration_ms`.
    pub cut: UnseenEnds,
    /// The times to the microsecond, where `submit_ms` and `duration_ms` round them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact: Option<ExactTimes>,
}

/// What it costs to stop a job and start it again. `None`: the source does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StopCosts {
    /// Work between two checkpoints, in ms.
    pub checkpoint_interval_ms: Option<u64>,
    /// Time to write a checkpoint, in ms.
    pub checkpoint_cost_ms: Option<u64>,
    /// Time from a start that is not the first to the first work, in ms.
    pub restart_cost_ms: Option<u64>,
    /// Time to save all work when the job is told to stop, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub save_on_notice_ms: Option<u64>,
}

impl StopCosts {
    /// Whether the source says nothing of them.
    // The form that serde asks for.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// The same, with what others say where it says nothing.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            checkpoint_interval_ms: self.checkpoint_interval_ms.or(others.checkpoint_interval_ms),
            checkpoint_cost_ms: self.checkpoint_cost_ms.or(others.checkpoint_cost_ms),
            restart_cost_ms: self.restart_cost_ms.or(others.restart_cost_ms),
            save_on_notice_ms: self.save_on_notice_ms.or(others.save_on_notice_ms),
        }
    }
}

/// Times to the microsecond. Published results of preemptive orders rest on them; everything else
/// counts in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ExactTimes {
    /// Submission, in microseconds since the trace's own zero.
    pub submit_us: u64,
    /// Time from start to end, in microseconds.
    pub duration_us: u64,
}

/// How a job ended in the cluster the trace was taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedOutcome {
    /// It did its work.
    Completed,
    /// It ended with an error.
    Failed,
    /// A person or the system stopped it.
    Killed,
    /// The source does not say.
    #[default]
    Unknown,
}

impl RecordedOutcome {
    /// The name used in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Killed => "killed",
            Self::Unknown => "unknown",
        }
    }
}

/// Which ends of a job its source did not see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnseenEnds {
    /// It was seen from start to end, or the source does not say.
    #[default]
    Nowhere,
    /// It may have started earlier.
    Begin,
    /// It may have ended later.
    End,
    Both,
}

impl UnseenEnds {
    pub(crate) const ALL: [Self; 4] = [Self::Nowhere, Self::Begin, Self::End, Self::Both];

    /// The name used in files; empty where nothing is cut.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nowhere => "",
            Self::Begin => "begin",
            Self::End => "end",
            Self::Both => "both",
        }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nowhere, cut) | (cut, Self::Nowhere) => cut,
            (one, other) if one == other => one,
            _ => Self::Both,
        }
    }
}

/// How a job of many GPUs divides into pods that fit nodes of a given size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodSplit {
    /// Pods that take a whole node each.
    pub full_pods: u32,
    pub full_pod_gpus: u32,
    /// GPUs of the one pod that takes what is left; 0 when nothing is left.
    pub rest_gpus: u32,
}

/// A rule of [`TraceJob`] or [`crate::TraceNode`] that is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) field: &'static str,
    pub(crate) text: String,
    pub(crate) problem: String,
    pub(crate) expected: String,
}

impl Violation {
    pub(crate) fn new(
        field: &'static str,
        text: impl ToString,
        problem: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self { field, text: text.to_string(), problem: problem.into(), expected: expected.into() }
    }
}

impl TraceJob {
    /// Submission, to the microsecond where the source says it.
    pub fn submit_us(&self) -> u64 {
        self.exact.map_or(self.submit_ms * MICROS_PER_MS, |exact| exact.submit_us)
    }

    /// Run time, to the microsecond where the source says it; `None` when it is unknown.
    pub fn duration_us(&self) -> Option<u64> {
        let exact_us = self.exact.map(|exact| exact.duration_us);
        exact_us.or(self.duration_ms.map(|ms| ms * MICROS_PER_MS))
    }

    /// GPUs of all pods together, counted as devices.
    pub fn total_gpus(&self) -> u64 {
        u64::from(self.pod_count) * u64::from(self.gpu_count)
    }

    /// GPU of all pods together, in thousandths of a device.
    pub fn total_gpu_milli(&self) -> u128 {
        u128::from(self.total_gpus()) * u128::from(self.gpu_milli.unsigned_abs())
    }

    /// GPU time of the whole job, in thousandths of a GPU times ms; `None` when the run time is
    /// unknown.
    pub fn gpu_milli_ms(&self) -> Option<u128> {
        Some(self.total_gpu_milli() * u128::from(self.duration_ms?))
    }

    /// True when the job asks for a part of one GPU.
    pub fn is_share(&self) -> bool {
        self.gpu_count == 1 && self.gpu_milli < 1000
    }

    /// Divides all GPUs of the job over nodes with `node_gpus` GPUs (at least 1): full nodes, then
    /// one rest.
    ///
    /// Job tables without a `nodes` column describe a job of 24 GPUs as one pod of 24; this gives
    /// the pods such a job needs on nodes of 8.
    pub fn split_over_nodes(&self, node_gpus: u32) -> PodSplit {
        let node_gpus = u64::from(node_gpus.max(1));
        let total = self.total_gpus();
        PodSplit {
            full_pods: (total / node_gpus) as u32,
            full_pod_gpus: node_gpus as u32,
            rest_gpus: (total % node_gpus) as u32,
        }
    }

    /// Checks every rule stated on the fields; the first broken one is returned.
    pub(crate) fn check(&self) -> Result<(), Violation> {
        if self.id.is_empty() {
            return Err(Violation::new("job_id", "", "is empty", "a name"));
        }
        self.check_times()?;
        if self.pod_count == 0 || self.pod_count > MAX_PODS {
            return Err(out_of_range("pod_count", self.pod_count, 1, MAX_PODS));
        }
        if !(0..=MAX_CPU_MILLI).contains(&self.cpu_milli) {
            return Err(out_of_range("cpu_milli", self.cpu_milli, 0, MAX_CPU_MILLI));
        }
        if !(0..=MAX_MEMORY_BYTES).contains(&self.memory_bytes) {
            return Err(out_of_range("memory_bytes", self.memory_bytes, 0, MAX_MEMORY_BYTES));
        }
        // 2^53 bytes of a million pods fit 128 bits alone.
        let memory_bytes = i128::from(self.memory_bytes) * i128::from(self.pod_count);
        if memory_bytes > i128::from(MAX_JOB_MEMORY_BYTES) {
            let problem = format!("adds up to {memory_bytes} bytes over all pods");
            let expected = format!("at most {MAX_JOB_MEMORY_BYTES} for a job");
            return Err(Violation::new("memory_bytes", self.memory_bytes, problem, expected));
        }
        self.check_gpus()
    }

    fn check_times(&self) -> Result<(), Violation> {
        let times = [
            ("submit_ms", Some(self.submit_ms)),
            ("duration_ms", self.duration_ms),
            ("estimate_ms", self.estimate_ms),
            ("start_ms", self.start_ms),
            ("deadline_ms", self.deadline_ms),
            ("checkpoint_interval_ms", self.stop_costs.checkpoint_interval_ms),
            ("checkpoint_cost_ms", self.stop_costs.checkpoint_cost_ms),
            ("restart_cost_ms", self.stop_costs.restart_cost_ms),
            ("save_on_notice_ms", self.stop_costs.save_on_notice_ms),
        ];
        if let Some(exact) = self.exact {
            let is_rounded =
                |us: u64, ms: u64| us.abs_diff(ms * MICROS_PER_MS) <= MICROS_PER_MS / 2;
            let has_submit = is_rounded(exact.submit_us, self.submit_ms);
            let runs = self.duration_ms.is_some_and(|ms| is_rounded(exact.duration_us, ms));
            if !has_submit || !runs {
                let text = format!("{} us, {} us", exact.submit_us, exact.duration_us);
                let expected = "what submit_ms and duration_ms round";
                return Err(Violation::new("exact", text, "are other times", expected));
            }
        }
        for (field, time) in times {
            if let Some(ms) = time.filter(|ms| *ms > MAX_TIME_MS) {
                return Err(out_of_range(field, ms, 0, MAX_TIME_MS));
            }
        }
        match self.start_ms {
            Some(start) if start < self.submit_ms => Err(Violation::new(
                "start_ms",
                start,
                "is before the submission",
                format!("at least submit_ms, which is {}", self.submit_ms),
            )),
            _ => Ok(()),
        }
    }

    fn check_gpus(&self) -> Result<(), Violation> {
        if self.gpu_count > MAX_GPUS {
            return Err(out_of_range("gpu_count", self.gpu_count, 0, MAX_GPUS));
        }
        if self.total_gpus() > u64::from(MAX_GPUS) {
            let problem = format!("adds up to {} GPUs over all pods", self.total_gpus());
            let expected = format!("at most {MAX_GPUS} for a job");
            return Err(Violation::new("gpu_count", self.gpu_count, problem, expected));
        }
        let expected = match self.gpu_count {
            0 if self.gpu_milli != 0 => "0, because gpu_count is 0",
            1 if !(1..=1000).contains(&self.gpu_milli) => "1 to 1000, because gpu_count is 1",
            2.. if self.gpu_milli != 1000 => {
                "1000, because only a pod with one GPU may request a part of it"
            }
            _ => return self.check_models(),
        };
        Err(Violation::new(
            "gpu_milli",
            self.gpu_milli,
            "does not match the number of GPUs",
            expected,
        ))
    }

    fn check_models(&self) -> Result<(), Violation> {
        let text = self.gpu_models.join("|");
        if self.gpu_count == 0 && !self.gpu_models.is_empty() {
            let expected = "no model, because gpu_count is 0";
            return Err(Violation::new("gpu_models", text, "needs a GPU", expected));
        }
        if self.gpu_models.iter().any(String::is_empty) {
            let expected = "GPU models joined with |";
            return Err(Violation::new("gpu_models", text, "has an empty model", expected));
        }
        Ok(())
    }
}

/// The violation of a number outside its limits.
pub(crate) fn out_of_range(
    field: &'static str,
    value: impl ToString,
    low: impl ToString,
    high: impl ToString,
) -> Violation {
    let expected = format!("a whole number from {} to {}", low.to_string(), high.to_string());
    Violation::new(field, value, "is out of range", expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(gpu_count: u32, gpu_milli: i64) -> TraceJob {
        TraceJob { id: "a".into(), pod_count: 1, gpu_count, gpu_milli, ..TraceJob::default() }
    }

    #[test]
    fn gpu_rules() {
        for (count, milli, good) in [
            (0, 0, true),
            (0, 1, false),
            (1, 0, false),
            (1, 1, true),
            (1, 1000, true),
            (1, 1001, false),
            (2, 999, false),
            (2, 1000, true),
        ] {
            assert_eq!(job(count, milli).check().is_ok(), good, "{count} GPUs of {milli}");
        }
    }

    #[test]
    fn splits_keep_every_gpu() {
        for total in 0..200 {
            let split = job(total, 1000).split_over_nodes(8);
            assert_eq!(split.full_pods * split.full_pod_gpus + split.rest_gpus, total);
            assert!(split.rest_gpus < 8);
        }
    }
}

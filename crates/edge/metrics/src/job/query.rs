//! What is asked of a server about the pods of one job.

use dovetail_account::signal::dcgm;

use crate::exporter::{PodLabels, mean_over_steps};
use crate::selector::{chunks, pattern};

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobSeries {
    /// Time in which tensor cores worked: 0 to 1.
    Tensor,
    /// The same in percent.
    TensorPercent,
    /// Bytes per second over NVLink, one way.
    Nvlink,
    /// Memory in use, in MiB.
    MemoryMebibytes,
    MemoryBytes,
    /// CPUs busy.
    Cpu,
    /// Time in which a disk was busy: 0 to 1.
    DiskBusy,
    /// Bytes per second read from disks.
    Read,
    /// Bytes per second written to disks.
    Written,
    /// Bytes per second from the network.
    Received,
    /// Bytes per second to the network.
    Sent,
    /// When the container started, in seconds since 1970.
    Started,
    /// 1 while the container ran.
    Running,
    /// A label `phase` with how the pod ended, at one moment.
    Ended,
    /// When the job's last checkpoint was complete, in seconds since 1970.
    CheckpointCounted,
    /// A label with the same as RFC 3339, at one moment.
    CheckpointNoted,
    /// A label `reason` with why the container ended before it started again, at one moment.
    EndedBefore,
}

impl JobSeries {
    /// What it is, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tensor | Self::TensorPercent => "tensor core activity",
            Self::Nvlink => "NVLink traffic",
            Self::MemoryMebibytes | Self::MemoryBytes => "GPU memory",
            Self::Cpu => "CPU usage of pods",
            Self::DiskBusy => "disk usage of nodes",
            Self::CheckpointCounted | Self::CheckpointNoted => "checkpoints that the job reports",
            Self::Read | Self::Written => "disk usage of pods",
            Self::Received | Self::Sent => "network traffic of pods",
            Self::Started | Self::Running => "container starts",
            Self::Ended | Self::EndedBefore => "container exits",
        }
    }
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobQuery {
    /// What the answer is.
    pub series: JobSeries,
    /// PromQL.
    pub query: String,
    /// Asked at the end of the period alone, and not for each step.
    pub is_instant: bool,
}

/// Series of devices: name and meaning.
const DEVICE: [(&str, JobSeries); 7] = [
    (dcgm::TENSOR_ACTIVE, JobSeries::Tensor),
    ("gpu_prof_tensor_active_percent", JobSeries::TensorPercent),
    (dcgm::NVLINK_SENT, JobSeries::Nvlink),
    (dcgm::NVLINK_RECEIVED, JobSeries::Nvlink),
    (dcgm::MEMORY_USED, JobSeries::MemoryMebibytes),
    ("gpu_used_vram", JobSeries::MemoryMebibytes),
    ("xpum_memory_used_bytes", JobSeries::MemoryBytes),
];

/// Counters of cAdvisor: name, what else is asked of its labels, and meaning. Pods have rows of
/// their own beside those of their containers, but for the network, which they share.
const HOST: [(&str, &str, JobSeries); 5] = [
    ("container_cpu_usage_seconds_total", OF_CONTAINERS, JobSeries::Cpu),
    ("container_fs_reads_bytes_total", OF_CONTAINERS, JobSeries::Read),
    ("container_fs_writes_bytes_total", OF_CONTAINERS, JobSeries::Written),
    ("container_network_receive_bytes_total", NO_LOOPBACK, JobSeries::Received),
    ("container_network_transmit_bytes_total", NO_LOOPBACK, JobSeries::Sent),
];
const OF_CONTAINERS: &str = r#",container!="",container!="POD""#;
const NO_LOOPBACK: &str = r#",interface!="lo""#;

/// A gauge of the job itself.
const CHECKPOINT: &str = "dovetail_last_checkpoint_timestamp_seconds";
/// The annotation `dovetail.dev/last-checkpoint`, as kube-state-metrics writes it.
pub(super) const NOTE: &str = "annotation_dovetail_dev_last_checkpoint";
const NOTED: &str = r#",annotation_dovetail_dev_last_checkpoint!="""#;

/// Where no two samples lie within a step, the last two of so many ms make the rate.
const FEWEST_SAMPLES_MS: u64 = 150_000;

/// Everything that is asked about pods of a namespace, for steps of so many ms over a window of so
/// many. `pods` says which labels of devices name their holders.
pub fn job_queries(
    pods: &PodLabels,
    namespace: &str,
    names: &[&str],
    step_ms: u64,
    window_ms: u64,
) -> Vec<JobQuery> {
    let mut queries = Vec::new();
    for names in chunks(names) {
        let names = names.join("|");
        let of = |labels: [&str; 2]| {
            let [space, pod] = labels;
            format!("{space}=~\"{}\",{pod}=~\"{names}\"", pattern(namespace))
        };
        // Jobs of scrapes may name holders differently; a series is in one of the answers, or it is
        // the same one.
        for (name, series) in DEVICE {
            let means = pods.names().into_iter().map(|[space, pod, _]| {
                mean_over_steps(&format!("{name}{{{}}}", of([space, pod])), step_ms)
            });
            let query = means.collect::<Vec<_>>().join(" or ");
            queries.push(JobQuery { series, query, is_instant: false });
        }
        // A server that does not honour labels has renamed them.
        let both = [of(["namespace", "pod"]), of(["exported_namespace", "exported_pod"])];
        queries.extend(HOST.map(|(name, more, series)| {
            let query = rate(name, &both, more, step_ms);
            JobQuery { series, query, is_instant: false }
        }));
        let events = [
            ("kube_pod_container_state_started", JobSeries::Started, ""),
            ("kube_pod_container_status_running", JobSeries::Running, ""),
            ("kube_pod_status_phase", JobSeries::Ended, r#",phase=~"Succeeded|Failed""#),
            ("kube_pod_container_status_last_terminated_reason", JobSeries::EndedBefore, ""),
            (CHECKPOINT, JobSeries::CheckpointCounted, ""),
            ("kube_pod_annotations", JobSeries::CheckpointNoted, NOTED),
        ];
        queries.extend(events.map(|(name, series, more)| {
            let is_instant = matches!(
                series,
                JobSeries::Ended | JobSeries::EndedBefore | JobSeries::CheckpointNoted
            );
            let window_ms = if is_instant { window_ms } else { step_ms };
            let over = |selector: &String| {
                format!("max_over_time({name}{{{selector}{more}}}[{}ms])", before(window_ms))
            };
            let query = both.each_ref().map(over).join(" or ");
            JobQuery { series, query, is_instant }
        }));
    }
    queries
}

/// What tensor cores of all devices did, whoever held them.
pub fn tensor_queries(step_ms: u64) -> Vec<JobQuery> {
    let is_tensor = |series| matches!(series, JobSeries::Tensor | JobSeries::TensorPercent);
    let of_tensor = DEVICE.into_iter().filter(|(_, series)| is_tensor(*series));
    let query = |(name, series)| JobQuery {
        series,
        query: mean_over_steps(name, step_ms),
        is_instant: false,
    };
    of_tensor.map(query).collect()
}

/// A window that is open at its begin; see [`mean_over_steps`].
fn before(window_ms: u64) -> u64 {
    window_ms.saturating_sub(1).max(1)
}

/// The sum of a counter's rates by pod.
fn rate(name: &str, selectors: &[String; 2], more: &str, step_ms: u64) -> String {
    let all =
        selectors.each_ref().map(|selector| rates(name, &format!("{selector}{more}"), step_ms));
    format!("sum by (namespace, pod, exported_namespace, exported_pod) ({})", all.join(" or "))
}

/// The rates of a counter over a step, or between the last two samples where a step has fewer.
pub(super) fn rates(name: &str, selector: &str, step_ms: u64) -> String {
    let longer_ms = FEWEST_SAMPLES_MS.max(2 * step_ms);
    format!("rate({name}{{{selector}}}[{step_ms}ms]) or irate({name}{{{selector}}}[{longer_ms}ms])")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prometheus::Labels;

    #[test]
    fn names_never_leave_their_quotes_and_questions_stay_short() {
        let hostile = "a\"} or up{x=\"";
        let names: Vec<String> = (0..500).map(|number| format!("train-worker-{number}")).collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.push(hostile);
        let labels = |job: &str, pod: &str| {
            let pairs = [("job", job), (pod, "p")].map(|(k, v)| (k.to_owned(), v.to_owned()));
            Labels::from(pairs)
        };
        let of_jobs = [labels("a", "exported_pod"), labels("b", "pod"), labels("c", "pod_name")];
        let pods = PodLabels::of(&of_jobs);
        let queries = job_queries(&pods, "ml\\", &names, 60_000, 3_600_000);
        for JobQuery { query, .. } in &queries {
            assert!(query.len() < 6_000, "{}", query.len());
            assert!(!query.contains("up{"), "{query}");
            // Quotes come in pairs around patterns alone.
            for quoted in query.split('"').skip(1).step_by(2) {
                let is_plain =
                    |letter: char| letter.is_ascii_alphanumeric() || "-.|".contains(letter);
                assert!(quoted.chars().all(is_plain), "{quoted}");
            }
        }
        let asked = |name: &str| queries.iter().any(|query| query.query.contains(name));
        assert!(names[..500].iter().all(|name| asked(name)));
    }
}

//! When pods with GPUs and Jobs were made, and when pods got their node.

use std::collections::{BTreeMap, BTreeSet};

use super::read::text;
use crate::prometheus::Series;

/// Times of objects by namespace and name, in ms since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubeTimes {
    /// Pods that ask for GPUs.
    pub pods: BTreeMap<(String, String), PodTimes>,
    pub jobs_created_ms: BTreeMap<(String, String), u64>,
    /// Pods that have no node at the end of the window.
    pub waiting: BTreeSet<(String, String)>,
}

/// Times of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodTimes {
    /// When it was made; `None` if nobody kept it.
    pub created_ms: Option<u64>,
    /// When it got its node; `None` if it has none, or if nobody kept it.
    pub placed_ms: Option<u64>,
}

/// One kind of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeSeries {
    PodCreated,
    /// When pods got their node.
    PodPlaced,
    PodPending,
    JobCreated,
}

/// How kube-state-metrics writes resources of devices.
const GPU_RESOURCES: &str =
    "nvidia_com_.*|amd_com_.*|gpu_intel_com_.*|habana_ai_.*|google_com_tpu|aws_amazon_com_neuron.*";

impl TimeSeries {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::PodCreated, Self::PodPlaced, Self::PodPending, Self::JobCreated];

    /// The series.
    pub fn series(self) -> &'static str {
        match self {
            Self::PodCreated => "kube_pod_created",
            Self::PodPlaced => "kube_pod_status_scheduled_time",
            Self::PodPending => "kube_pod_status_phase",
            Self::JobCreated => "kube_job_created",
        }
    }

    /// The query for what was last seen in a window before its moment; of pods, for those that ask
    /// for GPUs.
    pub fn query(self, window_ms: u64) -> String {
        let window_ms = window_ms.max(1);
        let with_gpus = format!(
            "and on (namespace, pod) \
             last_over_time(kube_pod_container_resource_requests{{resource=~\"{GPU_RESOURCES}\"}}[{window_ms}ms])"
        );
        let series = self.series();
        match self {
            Self::PodPending => format!("({series}{{phase=\"Pending\"}} == 1) {with_gpus}"),
            Self::JobCreated => format!("last_over_time({series}[{window_ms}ms])"),
            _ => format!("last_over_time({series}[{window_ms}ms]) {with_gpus}"),
        }
    }
}

impl KubeTimes {
    /// Takes the answer to a query; what names nothing, and what is no time, is left out.
    pub fn take(&mut self, kind: TimeSeries, series: Vec<Series>) {
        for Series { labels, samples } in series {
            let Some(sample) = samples.last() else { continue };
            let name = if kind == TimeSeries::JobCreated { "job_name" } else { "pod" };
            let Some(key) = text(&labels, "namespace").zip(text(&labels, name)) else { continue };
            if kind == TimeSeries::PodPending {
                self.waiting.insert(key);
                continue;
            }
            // Years 1970 to 10000.
            if !(1.0..253_402_300_800.0).contains(&sample.value) {
                continue;
            }
            let at_ms = (sample.value * 1000.0) as u64;
            match kind {
                TimeSeries::PodCreated => {
                    self.pods.entry(key).or_default().created_ms = Some(at_ms);
                }
                TimeSeries::PodPlaced => {
                    self.pods.entry(key).or_default().placed_ms = Some(at_ms);
                }
                _ => {
                    self.jobs_created_ms.insert(key, at_ms);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prometheus::SeriesSample;

    #[test]
    fn times_are_those_of_objects_and_nonsense_is_none() {
        let one = |pairs: &[(&str, &str)], value: f64| {
            let labels =
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            vec![Series {
                labels: labels.collect(),
                samples: vec![SeriesSample { at_ms: 0, value }],
            }]
        };
        let mut times = KubeTimes::default();
        let pod = [("namespace", "ml"), ("pod", "a")];
        times.take(TimeSeries::PodCreated, one(&pod, 1_795_176_000.0));
        times.take(TimeSeries::PodPlaced, one(&pod, f64::NAN));
        times.take(TimeSeries::PodPending, one(&pod, 1.0));
        // Prometheus has put its own labels over the exporter's.
        let moved = [("namespace", "monitoring"), ("exported_namespace", "ml"), ("job_name", "j")];
        times.take(TimeSeries::JobCreated, one(&moved, 1_795_175_000.5));
        times.take(TimeSeries::JobCreated, one(&[("namespace", "ml")], 1.0));
        let key = |name: &str| ("ml".to_owned(), name.to_owned());
        let wanted = PodTimes { created_ms: Some(1_795_176_000_000), placed_ms: None };
        assert_eq!(times.pods, BTreeMap::from([(key("a"), wanted)]));
        assert_eq!(times.jobs_created_ms, BTreeMap::from([(key("j"), 1_795_175_000_500)]));
        assert_eq!(times.waiting, BTreeSet::from([key("a")]));
    }
}

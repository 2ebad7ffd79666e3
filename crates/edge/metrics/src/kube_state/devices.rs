//! How many GPUs and the like nodes have and pods ask for, over time: what is known of devices that
//! no exporter measures.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::Span;

use super::read::text;
use crate::prometheus::{Labels, Series};
use crate::selector::chunks;

/// Resources of devices, as kube-state-metrics writes them. What is no device of its own (memory
/// and cores of GPUs, a second name of a chip) is not among them.
const RESOURCES: &str = "nvidia_com_gpu|nvidia_com_gpu_shared|nvidia_com_mig_.+|amd_com_gpu|gpu_intel_com_i915|\
                         gpu_intel_com_xe|habana_ai_gaudi|google_com_tpu|aws_amazon_com_neuron";

/// No node has more; a number above it is a slip.
const MOST_DEVICES: f64 = 4096.0;

/// How many of something there were, for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedSpan {
    pub span: Span,
    pub count: u32,
}

/// Namespace, name and resource.
pub type PodResource = (String, String, String);

/// Samples by time.
type Samples = BTreeMap<u64, u32>;

/// What nodes have, and what pods that are not over ask for on them.
#[derive(Clone, Debug, Default)]
pub struct DeviceAmounts {
    nodes: BTreeMap<(String, String), Samples>,
    pods: BTreeMap<(String, PodResource), Samples>,
    /// When anything was said of any node.
    heard: BTreeSet<u64>,
}

/// How samples become time.
#[derive(Clone, Copy, Debug)]
pub struct SampleTime {
    /// Distance of two samples; one stands for so long.
    pub step_ms: u64,
    /// Two samples further apart have a gap between them.
    pub longest_ms: u64,
    /// Nothing is known later.
    pub until_ms: u64,
}

/// The query for what nodes have of devices, at each step. Capacity has those that are ill, too;
/// where it is not kept, what is allocatable stands for it.
pub fn devices_of_nodes(step_ms: u64) -> String {
    let of = |series: &str| {
        format!("max_over_time({series}{{resource=~\"{RESOURCES}\"}}[{}ms])", before(step_ms))
    };
    let (capacity, allocatable) =
        (of("kube_node_status_capacity"), of("kube_node_status_allocatable"));
    format!("max by (node, exported_node, resource) ({capacity} or {allocatable})")
}

/// The queries for what pods of these nodes ask for, at each step: those that have a node and are
/// not over. Where two servers say the same of a container it counts once.
pub fn devices_of_pods(nodes: &[&str], step_ms: u64) -> Vec<String> {
    const POD: &str = "namespace, exported_namespace, pod, exported_pod";
    let window_ms = before(step_ms);
    let phases = format!(
        "max_over_time(kube_pod_status_phase{{phase=~\"Pending|Running\"}}[{window_ms}ms])"
    );
    let query = |names: Vec<String>| {
        let names = names.join("|");
        let of = |label: &str| {
            format!(
                "max_over_time(kube_pod_container_resource_requests{{resource=~\"{RESOURCES}\",{label}=~\"{names}\"}}\
                 [{window_ms}ms])"
            )
        };
        let [own, moved] = ["node", "exported_node"].map(of);
        format!(
            "sum by ({POD}, node, exported_node, resource) (max by ({POD}, node, exported_node, container, \
             exported_container, resource) ({own} or {moved}) * on ({POD}) group_left () max by ({POD}) ({phases} == \
             1))"
        )
    };
    chunks(nodes).into_iter().map(query).collect()
}

/// The query that tells whether anybody keeps what pods ask for: without it nobody knows that a
/// device is free.
pub fn any_request(window_ms: u64) -> String {
    format!("count(last_over_time(kube_pod_container_resource_requests[{}ms]))", window_ms.max(1))
}

/// A window that is open at its begin, as that of exporters' samples.
fn before(step_ms: u64) -> u64 {
    step_ms.saturating_sub(1).max(1)
}

impl DeviceAmounts {
    /// Takes an answer to [`devices_of_nodes`].
    pub fn take_nodes(&mut self, series: Vec<Series>) {
        for Series { labels, samples } in series {
            let Some(key) = text(&labels, "node").zip(text(&labels, "resource")) else { continue };
            let samples = samples.iter().filter_map(|sample| of_sample(sample.at_ms, sample.value));
            let amounts = self.nodes.entry(key).or_default();
            for (at_ms, count) in samples {
                self.heard.insert(at_ms);
                amounts.insert(at_ms, count);
            }
        }
    }

    /// Takes an answer to one of [`devices_of_pods`].
    pub fn take_pods(&mut self, series: Vec<Series>) {
        for Series { labels, samples } in series {
            let Some((node, key)) = text(&labels, "node").zip(pod_resource(&labels)) else {
                continue;
            };
            let samples = samples.iter().filter_map(|sample| of_sample(sample.at_ms, sample.value));
            self.pods.entry((node, key)).or_default().extend(samples);
        }
    }

    /// Names of the nodes that have any.
    pub fn nodes(&self) -> BTreeSet<&str> {
        let some =
            self.nodes.iter().filter(|(_, samples)| samples.values().any(|count| *count > 0));
        some.map(|((node, _), _)| node.as_str()).collect()
    }

    /// What a node had, by resource.
    pub fn of_node(&self, node: &str, time: SampleTime) -> BTreeMap<&str, Vec<CountedSpan>> {
        let own = self.nodes.iter().filter(|((name, _), _)| name == node);
        own.map(|((_, resource), samples)| (resource.as_str(), self.amounts(samples, time)))
            .collect()
    }

    /// What pods asked for on a node.
    pub fn of_pods(
        &self,
        node: &str,
        time: SampleTime,
    ) -> BTreeMap<&PodResource, Vec<CountedSpan>> {
        let own = self.pods.iter().filter(|((name, _), _)| name == node);
        own.map(|((_, pod), samples)| (pod, self.amounts(samples, time))).collect()
    }

    /// Samples as time. Where none came for long, what was before was there meanwhile only if
    /// nothing was heard of any node: else it was gone.
    fn amounts(&self, samples: &Samples, time: SampleTime) -> Vec<CountedSpan> {
        let mut found: Vec<CountedSpan> = Vec::new();
        let mut before_ms = 0;
        for (at_ms, count) in samples {
            let end_ms = at_ms.saturating_add(time.step_ms).min(time.until_ms);
            if let Some(last) = found.last_mut() {
                let is_near = at_ms - before_ms <= time.longest_ms;
                if is_near || self.heard.range(last.span.to_ms..*at_ms).next().is_none() {
                    last.span.to_ms = *at_ms;
                }
                if last.span.to_ms == *at_ms && last.count == *count {
                    last.span.to_ms = end_ms;
                    before_ms = *at_ms;
                    continue;
                }
            }
            before_ms = *at_ms;
            found
                .push(CountedSpan { span: Span { from_ms: *at_ms, to_ms: end_ms }, count: *count });
        }
        found.retain(|amount| amount.count > 0 && amount.span.from_ms < amount.span.to_ms);
        found
    }
}

fn pod_resource(labels: &Labels) -> Option<PodResource> {
    Some((text(labels, "namespace")?, text(labels, "pod")?, text(labels, "resource")?))
}

/// A moment and a number of devices; nothing where it is none.
fn of_sample(at_ms: i64, value: f64) -> Option<(u64, u32)> {
    let at_ms = u64::try_from(at_ms).ok()?;
    (value.is_finite() && value >= 0.0).then(|| (at_ms, value.min(MOST_DEVICES) as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prometheus::SeriesSample;

    const TIME: SampleTime = SampleTime { step_ms: 10, longest_ms: 30, until_ms: 1000 };

    fn series(pairs: &[(&str, &str)], samples: &[(i64, f64)]) -> Vec<Series> {
        let labels = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let samples =
            samples.iter().map(|(at_ms, value)| SeriesSample { at_ms: *at_ms, value: *value });
        vec![Series { labels: labels.collect(), samples: samples.collect() }]
    }

    fn spans(amounts: &[CountedSpan]) -> Vec<(u64, u64, u32)> {
        amounts.iter().map(|one| (one.span.from_ms, one.span.to_ms, one.count)).collect()
    }

    /// `a` is silent from 30 to 100 while `b` is heard: it was gone. From 110 to 200 nobody is
    /// heard.
    #[test]
    fn a_node_is_gone_only_while_others_are_heard() {
        let mut amounts = DeviceAmounts::default();
        let of = |node| [("node", node), ("resource", "nvidia_com_gpu")];
        let a =
            [(0, 8.0), (10, 8.0), (20, 8.0), (100, 8.0), (200, 8.0), (210, 7.0), (220, f64::NAN)];
        amounts.take_nodes(series(&of("a"), &a));
        let b: Vec<(i64, f64)> = (0..=10).map(|place| (place * 10, 1.0)).collect();
        amounts.take_nodes(series(&of("b"), &b));
        assert_eq!(amounts.nodes(), BTreeSet::from(["a", "b"]));
        let found = amounts.of_node("a", TIME);
        assert_eq!(spans(&found["nvidia_com_gpu"]), [(0, 30, 8), (100, 210, 8), (210, 220, 7)]);
        let found = amounts.of_node("b", SampleTime { until_ms: 105, ..TIME });
        assert_eq!(spans(&found["nvidia_com_gpu"]), [(0, 105, 1)]);
        // Prometheus put its own labels over those of the exporter.
        let moved = [("node", "m"), ("exported_node", "a"), ("namespace", "monitoring")];
        let pod = [("exported_namespace", "ml"), ("pod", "kube-state"), ("exported_pod", "p")];
        let labels = [&moved[..], &pod[..], &[("resource", "nvidia_com_gpu")][..]].concat();
        amounts.take_pods(series(&labels, &[(0, 2.0), (10, 2.0)]));
        let of_pods = amounts.of_pods("a", TIME);
        let key = ("ml".to_owned(), "p".to_owned(), "nvidia_com_gpu".to_owned());
        assert_eq!(spans(&of_pods[&key]), [(0, 20, 2)]);
    }
}

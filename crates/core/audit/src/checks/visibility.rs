//! VIS: what nobody sees.

use std::collections::BTreeSet;

use dovetail_account::signal::Signal;
use dovetail_units::duration::duration_at_least;

use super::{Run, View, node_ref, pods_of};
use crate::catalogue::Check;
use crate::finding::Finding;

pub(super) const RUNS: &[Run] = &[
    ("VIS-01", nobody_measures),
    ("VIS-02", contradicted),
    ("VIS-03", coarse),
    ("VIS-04", nobody_advises),
    ("VIS-05", misplaced),
];

const MINUTE_MS: u64 = 60_000;

/// An exporter that is known, by the resources of its vendor's devices.
struct Exporter {
    resources: &'static str,
    /// What is said of a node where none runs.
    missing: &'static str,
    /// How it gets there.
    install: &'static str,
}

/// Of TPUs, Neuron chips and Gaudis nobody reads what they did, so nothing is asked for.
const EXPORTERS: [Exporter; 3] = [
    Exporter {
        resources: "nvidia.com/",
        missing: "no dcgm-exporter on",
        install: "env: [{name: DCGM_EXPORTER_KUBERNETES, value: \"true\"}]  # of the DaemonSet of NVIDIA's dcgm-exporter \
                  (part of the GPU Operator), with a toleration for these nodes",
    },
    Exporter {
        resources: "amd.com/",
        missing: "no device-metrics-exporter on",
        install: "metricsExporter: {enable: true}  # of the DeviceConfig of AMD's GPU Operator, or the chart of \
                  device-metrics-exporter alone, with a toleration for these nodes",
    },
    Exporter {
        resources: "gpu.intel.com/",
        missing: "no XPU Manager on",
        install: "a DaemonSet of Intel's XPU Manager that requests gpu.intel.com/i915_monitoring or \
                  gpu.intel.com/xe_monitoring  # with a toleration for these nodes",
    },
];

fn nobody_measures(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let exporters = view.facts.workloads.iter().filter(|workload| workload.exports_gpu_metrics);
    let pods = exporters.flat_map(|workload| &workload.pods);
    let mut measured: BTreeSet<&str> = pods.filter_map(|pod| pod.node.as_deref()).collect();
    // An exporter need not be a pod that anybody recognises: what was measured has one.
    let used = view.facts.workloads.iter().flat_map(|workload| &workload.pods);
    let used = used.filter(|pod| !pod.uses.is_empty());
    measured.extend(used.filter_map(|pod| pod.node.as_deref()));
    for node in view.gpu_nodes() {
        let has = |of: &Exporter| node.gpus.keys().any(|name| name.starts_with(of.resources));
        if let Some(Exporter { missing, install, .. }) = EXPORTERS.iter().find(|of| has(of))
            && !measured.contains(&*node.node.name)
        {
            let finding = Finding::new(check, &node.pool).with(missing, &node.node.name);
            found.push(finding.for_example(*install).affecting([node_ref(node)]));
        }
    }
}

/// Counters that stay at zero while kernels run or power is drawn.
fn contradicted(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let accident_ms = view.facts.thresholds.contradicted_minutes * MINUTE_MS;
    for workload in view.gpu_workloads() {
        for (pod, node) in view.placed(workload) {
            let dead = pod.uses.iter().filter(|used| used.contradicted_ms > accident_ms);
            for used in dead {
                let length = duration_at_least(used.contradicted_ms);
                let which = format!("GPU {} of {} for {length}", used.gpu, node.node.name);
                let finding = Finding::new(check, &node.pool).with("signals contradict", which);
                found.push(finding.affecting([node_ref(node)]));
            }
        }
    }
}

/// Samples that name a pod on a node where it is not, or with more GPUs than it has.
fn misplaced(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let accident_ms = view.facts.thresholds.contradicted_minutes * MINUTE_MS;
    for workload in view.gpu_workloads() {
        for (pod, node) in view.placed(workload) {
            let wrong = pod.uses.iter().filter(|used| used.misplaced_ms > accident_ms);
            for used in wrong {
                let length = duration_at_least(used.misplaced_ms);
                let (namespace, name) = (&workload.owner.namespace, &pod.name);
                let what = format!(
                    "GPU {} for {length}, which {namespace}/{name} on {} cannot have used",
                    used.gpu, node.node.name
                );
                let finding = Finding::new(check, &workload.owner).with("measured", what);
                found.push(finding.affecting([node_ref(node)]));
            }
        }
    }
}

/// Signals that say that a GPU is busy as soon as anything runs on it.
fn coarse(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for workload in view.gpu_workloads() {
        for (pod, node) in view.placed(workload) {
            let best = pod.uses.iter().filter_map(|used| used.signal).min();
            if let Some(signal @ (Signal::GrEngineActive | Signal::GpuUtil)) = best {
                let finding = Finding::new(check, &node.pool).with("best signal", signal.name());
                found.push(finding.affecting([node_ref(node)]));
            }
        }
    }
}

fn nobody_advises(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let Some(advice) = &view.facts.advice else { return };
    for workload in view.gpu_workloads() {
        // Kinds of which a recommender knows how to find the pods.
        let is_known =
            ["Deployment", "StatefulSet", "CronJob"].contains(&workload.owner.kind.as_str());
        if is_known && !advice.contains_key(&workload.owner) {
            let finding = Finding::new(check, &workload.owner).with("VerticalPodAutoscalers", 0);
            found.push(finding.affecting(pods_of(workload)));
        }
    }
}

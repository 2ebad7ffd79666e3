//! VIS: what nobody sees.

use std::collections::BTreeSet;

use super::{Run, View, node_ref};
use crate::catalogue::Check;
use crate::facts::Node;
use crate::finding::Finding;

pub(super) const RUNS: &[Run] = &[("VIS-01", nobody_measures)];

/// Resources of devices whose exporters are known.
const MEASURABLE: [&str; 3] = ["nvidia.com/", "amd.com/", "gpu.intel.com/"];

fn nobody_measures(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let exporters = view.facts.workloads.iter().filter(|workload| workload.exports_gpu_metrics);
    let pods = exporters.flat_map(|workload| &workload.pods);
    let measured: BTreeSet<&str> = pods.filter_map(|pod| pod.node.as_deref()).collect();
    let measurable = |node: &&Node| {
        node.gpus.keys().any(|resource| MEASURABLE.iter().any(|group| resource.starts_with(group)))
    };
    for node in view.gpu_nodes().filter(measurable) {
        if !measured.contains(&*node.node.name) {
            let finding = Finding::new(check, &node.pool).with("no exporter on", &node.node.name);
            found.push(finding.affecting([node_ref(node)]));
        }
    }
}

//! Disk, network and CPUs of whole nodes, from node_exporter: what a pod reads over its node (a
//! network file system, a network of the host) is in no counter of the pod. Asked for nodes alone
//! whose GPUs the job has for itself.

use std::collections::{BTreeMap, BTreeSet};

use super::query::{JobQuery, JobSeries, rates};
use super::readings::{JobReadings, is_reading};
use crate::exporter::host;
use crate::prometheus::{Labels, Series};
use crate::selector::pattern;

/// Series that say which node an exporter is of.
pub const NODE_NAMES: [&str; 2] = ["kube_node_info", "node_uname_info"];

/// Counters of node_exporter: name, what else is asked of their labels, what is made of a node's,
/// and meaning. Disks of disks (dm, md) and networks of pods would count twice.
const COUNTERS: [(&str, &str, &str, JobSeries); 6] = [
    ("node_cpu_seconds_total", r#",mode!~"idle|iowait|steal""#, "sum", JobSeries::Cpu),
    ("node_disk_io_time_seconds_total", DISKS, "max", JobSeries::DiskBusy),
    ("node_disk_read_bytes_total", DISKS, "sum", JobSeries::Read),
    ("node_disk_written_bytes_total", DISKS, "sum", JobSeries::Written),
    ("node_network_receive_bytes_total", NETWORKS, "sum", JobSeries::Received),
    ("node_network_transmit_bytes_total", NETWORKS, "sum", JobSeries::Sent),
];
const DISKS: &str = r#",device!~"(dm-|fd|loop|md|ram|sr|zram).*""#;
const NETWORKS: &str = r#",device!~"(bond|br-|cali|cilium|cni|docker|dummy|flannel|kube|lo|lxc|tun|veth|virbr|vxlan).*""#;

/// Exporters of nodes by the label `instance`, with the node of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeNames(BTreeMap<String, String>);

impl NodeNames {
    /// Which of the exporters are of these nodes, by the answers to [`NODE_NAMES`]: a label `node`,
    /// the address of the node as the API server has it, or the name that its kernel has.
    pub fn of(series: &[Series], nodes: &BTreeSet<&str>) -> Self {
        let text = |labels: &Labels, name: &str| {
            labels.get(name).filter(|value| !value.is_empty()).cloned()
        };
        let by_address: BTreeMap<String, String> = series
            .iter()
            .filter_map(|series| {
                Some((text(&series.labels, "internal_ip")?, text(&series.labels, "node")?))
            })
            .collect();
        let named = series.iter().filter_map(|series| {
            let labels = &series.labels;
            let (instance, kernel) = (text(labels, "instance")?, text(labels, "nodename")?);
            let candidates = [
                text(labels, "node"),
                by_address.get(host(&instance)).cloned(),
                Some(kernel),
                Some(host(&instance).to_owned()),
            ];
            let node = candidates.into_iter().flatten().find(|name| nodes.contains(&**name))?;
            Some((instance, node))
        });
        Self(named.collect())
    }
}

/// Everything that is asked about some nodes, for steps of so many ms.
pub fn node_queries(names: &NodeNames, step_ms: u64) -> Vec<JobQuery> {
    let mut queries = Vec::new();
    for instances in names.0.keys().collect::<Vec<_>>().chunks(MOST_INSTANCES) {
        let instances: Vec<String> = instances.iter().map(|name| pattern(name)).collect();
        let instances = instances.join("|");
        queries.extend(COUNTERS.map(|(name, more, sum, series)| {
            let selector = format!("instance=~\"{instances}\"{more}");
            let query = format!("{sum} by (instance) ({})", rates(name, &selector, step_ms));
            JobQuery { series, query, is_instant: false }
        }));
    }
    queries
}

/// Nodes in one question: between here and a server stand proxies that refuse long lines.
const MOST_INSTANCES: usize = 20;

impl JobReadings {
    /// Takes an answer to [`node_queries`]; numbers that are none are left out.
    pub fn take_nodes(&mut self, kind: JobSeries, names: &NodeNames, series: Vec<Series>) {
        for Series { labels, samples } in series {
            let node = labels.get("instance").and_then(|instance| names.0.get(instance));
            let Some(node) = node else { continue };
            let readings = self.nodes.entry(node.clone()).or_default();
            for sample in samples.iter().filter(|sample| is_reading(sample.value)) {
                // Two exporters of one node say the same.
                let value = readings.entry((kind, sample.at_ms)).or_insert(0.0);
                *value = value.max(sample.value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exporter_is_of_a_node_by_label_address_or_kernel() {
        let series = |pairs: &[(&str, &str)]| {
            let labels = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            Series { labels: labels.collect(), samples: Vec::new() }
        };
        let answers = [
            series(&[("node", "n1"), ("internal_ip", "10.0.0.1"), ("instance", "ksm:8080")]),
            series(&[("instance", "10.0.0.1:9100"), ("nodename", "ip-10-0-0-1")]),
            series(&[("instance", "10.0.0.2:9100"), ("nodename", "n2")]),
            series(&[("instance", "x:1"), ("nodename", "y"), ("node", "n3")]),
            series(&[("instance", "n4"), ("nodename", "z")]),
            series(&[("instance", "10.0.0.9:9100"), ("nodename", "n9")]),
        ];
        let found = NodeNames::of(&answers, &BTreeSet::from(["n1", "n2", "n3", "n4"]));
        let wanted =
            [("10.0.0.1:9100", "n1"), ("10.0.0.2:9100", "n2"), ("n4", "n4"), ("x:1", "n3")];
        let wanted = wanted.map(|(instance, node)| (instance.to_owned(), node.to_owned()));
        assert_eq!(found, NodeNames(wanted.into()));
        let hostile = NodeNames([("a\"} or up{x=\"".to_owned(), "n1".to_owned())].into());
        assert!(node_queries(&hostile, 60_000).iter().all(|asked| !asked.query.contains("up{")));
    }
}

//! Series of kube-state-metrics as objects.

use std::collections::{BTreeMap, BTreeSet};

use super::lives::PodLife;
use crate::prometheus::{Labels, Series, own_label};

/// What is known of objects. Names are as in the API, labels as in Prometheus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubeState {
    /// Pods by namespace and name.
    pub pods: BTreeMap<(String, String), KubePod>,
    pub nodes: BTreeMap<String, KubeNode>,
    pub namespaces: BTreeMap<String, Labels>,
    /// Pods that asked for more than CPU, memory and storage; empty where nobody keeps what pods
    /// ask for.
    pub askers: BTreeSet<(String, String)>,
    /// Nodes that were several machines: each with when it began, ascending.
    pub machines: BTreeMap<String, Vec<(u64, KubeNode)>>,
    /// Pods by their names and uids while they are read, and those that had one name, in their
    /// order.
    pub(super) of_uids: BTreeMap<(String, String), BTreeMap<String, KubePod>>,
    pub(super) lives: BTreeMap<(String, String), Vec<PodLife>>,
    /// Owners of ReplicaSets and Jobs by kind, namespace and name.
    pub(super) owners: BTreeMap<(&'static str, String, String), Owner>,
    /// Pods of which nothing was said in the time, as they were before.
    pub(super) earlier_pods: BTreeMap<(String, String), KubePod>,
    /// Nodes, likewise.
    pub(super) earlier_nodes: BTreeMap<String, KubeNode>,
}

/// Kind and name.
pub type Owner = (String, String);

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubePod {
    /// The node it stood on.
    pub node: String,
    /// All nodes that a pod of this name stood on.
    pub nodes: BTreeSet<String>,
    /// Kind and name of the nearest owner; none for a pod of its own.
    pub owner: Option<(String, String)>,
    /// Labels that were allowed, by their names in Prometheus.
    pub labels: Labels,
    /// Whether it ended well; `None` if it has not ended, or if nobody knows.
    pub has_succeeded: Option<bool>,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubeNode {
    pub provider_id: String,
    /// Labels that were allowed, by their names in Prometheus.
    pub labels: Labels,
    /// Thousandths of a vCPU that pods could have.
    pub cpu_milli: u64,
    /// Bytes of memory that pods could have.
    pub memory_bytes: u64,
    /// Whether it has a resource of a GPU or the like, even of none that works.
    pub has_devices: bool,
    /// Whether it offers any of these to pods.
    pub offers_devices: bool,
    /// Its address in the cluster.
    pub internal_ip: String,
    /// Identities that a node of this name had: by the provider, and of the machine. Several are
    /// several machines.
    pub identities: BTreeSet<(String, String)>,
}

/// What was kept for a pod: the sum over the steps.
#[derive(Clone, Debug, PartialEq)]
pub struct PodSum {
    pub namespace: String,
    pub pod: String,
    /// Its uid, where the series has one.
    pub uid: Option<String>,
    pub node: String,
    /// In cores or bytes × steps.
    pub sum: f64,
}

/// One kind of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KubeTable {
    /// Pods with nodes and owners.
    PodInfo,
    PodLabels,
    ReplicaSetOwner,
    JobOwner,
    NamespaceLabels,
    /// Nodes with their provider's identity.
    NodeInfo,
    NodeLabels,
    NodeAllocatable,
}

impl KubeTable {
    /// All tables.
    pub const ALL: [Self; 8] = [
        Self::PodInfo,
        Self::PodLabels,
        Self::ReplicaSetOwner,
        Self::JobOwner,
        Self::NamespaceLabels,
        Self::NodeInfo,
        Self::NodeLabels,
        Self::NodeAllocatable,
    ];

    pub(super) fn is_of_nodes(self) -> bool {
        matches!(self, Self::NodeInfo | Self::NodeLabels | Self::NodeAllocatable)
    }

    /// The series.
    pub fn series(self) -> &'static str {
        match self {
            Self::PodInfo => "kube_pod_info",
            Self::PodLabels => "kube_pod_labels",
            Self::ReplicaSetOwner => "kube_replicaset_owner",
            Self::JobOwner => "kube_job_owner",
            Self::NamespaceLabels => "kube_namespace_labels",
            Self::NodeInfo => "kube_node_info",
            Self::NodeLabels => "kube_node_labels",
            Self::NodeAllocatable => "kube_node_status_allocatable",
        }
    }
}

impl KubeState {
    /// Takes the series of a table; those that name nothing are left out.
    pub fn take(&mut self, table: KubeTable, series: Vec<Series>) {
        for Series { labels, samples } in series {
            let value = samples.last().map_or(0.0, |sample| sample.value);
            self.take_one(table, &labels, value);
        }
    }

    /// Whether anything was there.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty() && self.nodes.is_empty()
    }

    /// Whether nodes are known with what they offer, and none of them has a GPU.
    pub fn offers_no_gpus(&self) -> bool {
        let is_known = |node: &KubeNode| node.cpu_milli > 0 && !node.has_devices;
        !self.nodes.is_empty() && self.nodes.values().all(is_known)
    }

    /// Kind and name of a pod's top owner; none where nobody knows the pod, the pod itself where it
    /// has none. `turn` is which of the pods of its name it is.
    pub fn top_owner(&self, namespace: &str, pod: &str, turn: u32) -> Option<(String, String)> {
        let known = self.pod_in_turn(namespace, pod, turn)?;
        let mut owner = known.owner.clone().unwrap_or_else(|| ("Pod".to_owned(), pod.to_owned()));
        // ReplicaSet to Deployment, Job to CronJob; what operators put on top has no series.
        for kind in ["ReplicaSet", "Job"] {
            let key = (kind, namespace.to_owned(), owner.1.clone());
            if owner.0 == kind
                && let Some(above) = self.owners.get(&key)
            {
                owner.clone_from(above);
            }
        }
        Some(owner)
    }

    /// What a run of this pod would be told by, as kind and name: its top owner, but of what a
    /// timetable made that itself; and whether it did.
    pub fn run_owner(&self, namespace: &str, pod: &str, turn: u32) -> Option<(Owner, bool)> {
        let top = self.top_owner(namespace, pod, turn)?;
        let known = self.pod_in_turn(namespace, pod, turn)?;
        match (&known.owner, top.0.as_str()) {
            (Some(nearest), "CronJob") if *nearest != top => Some((nearest.clone(), true)),
            _ => Some((top, false)),
        }
    }

    /// Takes the answer to [`super::pod_ends`]: of pods that are known.
    pub fn take_ends(&mut self, series: Vec<Series>) {
        for Series { labels, .. } in series {
            let Some(key) = text(&labels, "namespace").zip(text(&labels, "pod")) else { continue };
            let has_succeeded = match text(&labels, "phase").as_deref() {
                Some("Succeeded") => true,
                Some("Failed") => false,
                _ => continue,
            };
            let uid = text(&labels, "uid");
            let mut lives = self.lives.get_mut(&key).into_iter().flatten();
            let pod = match lives.find(|life| Some(&life.uid) == uid.as_ref()) {
                Some(life) => Some(&mut life.pod),
                None => self.pods.get_mut(&key),
            };
            if let Some(pod) = pod {
                pod.has_succeeded = Some(has_succeeded);
            }
        }
    }

    /// Takes the answer to [`super::asked_for_devices`].
    pub fn take_askers(&mut self, series: Vec<Series>) {
        let keys = series.iter().filter_map(|series| {
            text(&series.labels, "namespace").zip(text(&series.labels, "pod"))
        });
        self.askers.extend(keys);
    }

    /// Whether a pod was on a node that offers devices and asked for none.
    pub fn asks_for_none(&self, node: &str, namespace: &str, pod: &str) -> bool {
        let key = (namespace.to_owned(), pod.to_owned());
        let is_there = self.pods.get(&key).is_some_and(|pod| pod.nodes.contains(node));
        let offers = self.nodes.get(node).is_some_and(|node| node.offers_devices);
        is_there && offers && !self.askers.is_empty() && !self.askers.contains(&key)
    }

    /// Whether every node has one of what a pod is of.
    pub fn is_of_every_node(&self, namespace: &str, pod: &str) -> bool {
        let known = self.pods.get(&(namespace.to_owned(), pod.to_owned()));
        let owner = known.and_then(|pod| pod.owner.as_ref());
        owner.is_some_and(|(kind, _)| kind == "DaemonSet")
    }

    pub(super) fn take_one(&mut self, table: KubeTable, labels: &Labels, value: f64) {
        let text = |name: &str| text(labels, name);
        let of_pod = || Some((text("namespace")?, text("pod")?));
        match table {
            KubeTable::PodInfo => {
                let Some(key) = of_pod() else { return };
                let of_uid = text("uid").map(|uid| {
                    self.of_uids.entry(key.clone()).or_default().entry(uid).or_default()
                });
                for pod in of_uid.into_iter().chain([self.pods.entry(key).or_default()]) {
                    pod.owner = text("created_by_kind").zip(text("created_by_name"));
                    pod.node = text("node").unwrap_or_default();
                    pod.nodes.extend(text("node"));
                }
            }
            KubeTable::PodLabels => {
                let Some(key) = of_pod() else { return };
                // Its own alone; what one pod has need not be kept twice.
                let of_uid = self.of_uids.get_mut(&key).filter(|of_uid| of_uid.len() > 1);
                let of_uid = of_uid.zip(text("uid")).and_then(|(of, uid)| of.get_mut(&uid));
                if let Some(pod) = of_uid {
                    pod.labels.extend(object_labels(labels));
                }
                self.pods.entry(key).or_default().labels.extend(object_labels(labels));
            }
            KubeTable::ReplicaSetOwner => self.owner("ReplicaSet", "replicaset", labels),
            KubeTable::JobOwner => self.owner("Job", "job_name", labels),
            KubeTable::NamespaceLabels => {
                let Some(name) = text("namespace") else { return };
                self.namespaces.entry(name).or_default().extend(object_labels(labels));
            }
            KubeTable::NodeInfo | KubeTable::NodeLabels | KubeTable::NodeAllocatable => {
                let Some(name) = text("node") else { return };
                let node = self.nodes.entry(name).or_default();
                let resource = text("resource");
                match (table, resource.as_deref()) {
                    (KubeTable::NodeInfo, _) => {
                        node.provider_id = text("provider_id").unwrap_or_default();
                        node.internal_ip = text("internal_ip").unwrap_or_default();
                        let machine = text("system_uuid").unwrap_or_default();
                        node.identities.insert((node.provider_id.clone(), machine));
                    }
                    (KubeTable::NodeLabels, _) => node.labels.extend(object_labels(labels)),
                    (_, Some("cpu")) => node.cpu_milli = amount(value * 1000.0),
                    (_, Some("memory")) => node.memory_bytes = amount(value),
                    (_, Some(resource)) if is_device(resource) => {
                        node.has_devices = true;
                        node.offers_devices |= value > 0.0;
                    }
                    _ => {}
                }
            }
        }
    }

    fn owner(&mut self, kind: &'static str, name: &str, labels: &Labels) {
        let owner = text(labels, "owner_kind").zip(text(labels, "owner_name"));
        if let (Some(namespace), Some(name), Some(owner)) =
            (text(labels, "namespace"), text(labels, name), owner)
        {
            self.owners.insert((kind, namespace, name), owner);
        }
    }
}

impl PodSum {
    /// Reads the answer of [`super::kept_over`]; numbers that nobody can keep are left out.
    pub fn read(series: Vec<Series>) -> Vec<Self> {
        let kept = series.into_iter().filter_map(|series| {
            let sum = series.samples.last()?.value;
            let text = |name: &str| text(&series.labels, name);
            let (namespace, pod, node) = (text("namespace")?, text("pod")?, text("node")?);
            let uid = text("uid");
            (sum.is_finite() && sum > 0.0).then_some(Self { namespace, pod, uid, node, sum })
        });
        kept.collect()
    }
}

/// A label of a series, the exporter's own before what Prometheus put over it; kube-state-metrics
/// writes `<none>` for nothing.
pub(super) fn text(labels: &Labels, name: &str) -> Option<String> {
    own_label(labels, name).filter(|value| value != "<none>")
}

fn object_labels(labels: &Labels) -> impl Iterator<Item = (String, String)> {
    let own = labels.iter().filter(|(name, _)| name.starts_with("label_"));
    own.map(|(name, value)| (name.clone(), value.clone()))
}

/// Whether a resource, as kube-state-metrics writes it, is one of GPUs and the like.
fn is_device(resource: &str) -> bool {
    const OF_VENDORS: [&str; 6] = [
        "nvidia_com_",
        "amd_com_",
        "gpu_intel_com_",
        "habana_ai_",
        "google_com_tpu",
        "aws_amazon_com_neuron",
    ];
    OF_VENDORS.iter().any(|vendor| resource.starts_with(vendor))
}

/// A number of things; what is none is nothing.
fn amount(value: f64) -> u64 {
    // Beyond 2^60 there is no node, and casts stop at the end of the range.
    if value.is_finite() && value > 0.0 { (value as u64).min(1 << 60) } else { 0 }
}

/// The value of a label by the name that it has in the API (`kueue.x-k8s.io/queue-name`); none
/// where it is not there or empty.
pub fn label(labels: &Labels, key: &str) -> Option<String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric();
    let name: String =
        key.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    labels.get(&format!("label_{name}")).filter(|value| !value.is_empty()).cloned()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::prometheus::SeriesSample;

    /// One series with one sample.
    pub(in crate::kube_state) fn series(pairs: &[(&str, &str)], value: f64) -> Vec<Series> {
        let labels = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        vec![Series { labels: labels.collect(), samples: vec![SeriesSample { at_ms: 0, value }] }]
    }

    #[test]
    fn a_pod_that_is_gone_still_has_its_owner_and_labels() {
        let mut state = KubeState::default();
        let pod = [("namespace", "ml"), ("pod", "serve-7d9-x"), ("node", "n1")];
        let by = [("created_by_kind", "ReplicaSet"), ("created_by_name", "serve-7d9")];
        let both: Vec<(&str, &str)> = pod.into_iter().chain(by).collect();
        state.take(KubeTable::PodInfo, series(&both, 1.0));
        assert_eq!(
            state.top_owner("ml", "serve-7d9-x", 0),
            Some(("ReplicaSet".into(), "serve-7d9".into()))
        );
        let owner = [
            ("namespace", "ml"),
            ("replicaset", "serve-7d9"),
            ("owner_kind", "Deployment"),
            ("owner_name", "serve"),
        ];
        state.take(KubeTable::ReplicaSetOwner, series(&owner, 1.0));
        assert_eq!(
            state.top_owner("ml", "serve-7d9-x", 0),
            Some(("Deployment".into(), "serve".into()))
        );
        assert_eq!(state.top_owner("other", "serve-7d9-x", 0), None);
        let labels =
            [("namespace", "ml"), ("pod", "serve-7d9-x"), ("label_kueue_x_k8s_io_queue_name", "q")];
        state.take(KubeTable::PodLabels, series(&labels, 1.0));
        let found = &state.pods[&("ml".to_owned(), "serve-7d9-x".to_owned())];
        assert_eq!(label(&found.labels, "kueue.x-k8s.io/queue-name").as_deref(), Some("q"));
        // The exporter's own label is under what Prometheus put over it, and `<none>` is nothing.
        let alone = [
            ("namespace", "monitoring"),
            ("exported_namespace", "ml"),
            ("exported_pod", "debug"),
            ("created_by_kind", "<none>"),
            ("created_by_name", "<none>"),
        ];
        state.take(KubeTable::PodInfo, series(&alone, 1.0));
        assert_eq!(state.top_owner("ml", "debug", 0), Some(("Pod".into(), "debug".into())));
    }

    #[test]
    fn nodes_offer_what_a_number_can_mean() {
        let mut state = KubeState::default();
        for (resource, value) in [("cpu", 95.5), ("memory", f64::NAN), ("pods", 110.0)] {
            let labels = [("node", "n1"), ("resource", resource)];
            state.take(KubeTable::NodeAllocatable, series(&labels, value));
        }
        state.take(
            KubeTable::NodeInfo,
            series(&[("node", "n1"), ("provider_id", "aws:///a/i-1")], 1.0),
        );
        let node = &state.nodes["n1"];
        assert_eq!((node.cpu_milli, node.memory_bytes), (95_500, 0));
        assert_eq!(node.provider_id, "aws:///a/i-1");
        assert!(state.offers_no_gpus());
        let gpus = [("node", "n1"), ("resource", "nvidia_com_gpu")];
        state.take(KubeTable::NodeAllocatable, series(&gpus, 0.0));
        assert!(!state.offers_no_gpus() && !KubeState::default().offers_no_gpus());
        let kept = [("namespace", "ml"), ("pod", "p"), ("node", "n1")];
        assert_eq!(PodSum::read(series(&kept, 8.0))[0].sum, 8.0);
        assert_eq!(PodSum::read(series(&kept, f64::INFINITY)), []);
        assert_eq!(PodSum::read(series(&kept[..2], 8.0)), []);
    }
}

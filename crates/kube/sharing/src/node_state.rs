//! What is read of a node before each step.

use std::collections::BTreeMap;

use dovetail_model::MigTable;
use dovetail_objects::Pod;
use dovetail_objects::labels::NVIDIA_STRATEGY;
use serde_json::Value;

use crate::amd::Partition;
use crate::component::Component;
use crate::config_map::Layouts;
use crate::gpu_amounts::{offers, uses_gpus};
use crate::guard::{foreign_taint, other_master};
use crate::label_owner::{label_owners, label_setters};
use crate::names::{AMD_PARTITION, RECORD, TAINT};
use crate::object_name::ObjectName;
use crate::record::Record;
use crate::replicas::Method;
use crate::side::Side;

/// A pod that uses GPUs of its node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuPod {
    /// Namespace and name.
    pub name: String,
    pub uid: String,
    /// Its deletion has begun.
    pub is_leaving: bool,
}

/// A node as the API server has it now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    pub node: String,
    pub uid: String,
    pub resource_version: String,
    /// Its taints as they are written.
    pub taints: Vec<Value>,
    /// What each component is asked for, by name.
    pub asked: BTreeMap<Component, String>,
    /// What each component reports.
    pub states: BTreeMap<Component, String>,
    /// How its pods share GPUs, by feature discovery.
    pub method: Option<Method>,
    /// How AMD's node labeller says that its GPUs are partitioned.
    pub partition: Option<String>,
    /// GPUs and instances that pods can ask for, by resource.
    pub offers: BTreeMap<String, i64>,
    /// Pods on it that use GPUs.
    pub gpu_pods: Vec<GpuPod>,
    /// Pods that the clearing taint of the component evicts and should not: their names.
    pub evicted: Vec<String>,
    /// Pods of the component's operator that it is to evict.
    pub operands: Vec<String>,
    /// Pods that it does not evict and that go on using the GPUs: their names.
    pub staying: Vec<String>,
    /// Another system that decides about its GPUs.
    pub other_master: Option<String>,
    /// Other clients that set what components are asked for, in words.
    pub label_owners: BTreeMap<Component, String>,
    /// The names of other clients that set it last, people's tools among them.
    pub label_setters: BTreeMap<Component, String>,
    /// How far its change is.
    pub record: Option<Record>,
    /// From when on its component sees both layouts of the change; `None` if one is not written.
    pub ready_ms: Option<u64>,
}

impl Seen {
    /// Reads a node and the pods on it. `table`: how its GPUs are cut.
    ///
    /// # Errors
    /// An annotation that is no record.
    pub fn read(node: &Value, pods: &[Pod], table: Option<&MigTable>) -> Result<Self, String> {
        let metadata = &node["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let label = |key: &str| metadata["labels"][key].as_str();
        let annotations: BTreeMap<String, String> =
            serde_json::from_value(metadata["annotations"].clone()).unwrap_or_default();
        let name = text(&metadata["name"]);
        let record = annotations.get(RECORD).map(|text| Record::read(text)).transpose();
        let record = record.map_err(|error| {
            format!(
                "node {name}: annotation {RECORD} is invalid ({error}); if no change is under way, \
                 remove it"
            )
        })?;
        let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        let keys = taints.iter().filter_map(|taint| taint["key"].as_str());
        let master = other_master(&annotations, label, record.as_ref())
            .or_else(|| foreign_taint(keys, record.as_ref()));
        let of = |key: Option<&str>| key.and_then(label).map(str::to_owned);
        let all = || Component::ALL.into_iter();
        Ok(Self {
            uid: text(&metadata["uid"]),
            resource_version: text(&metadata["resourceVersion"]),
            asked: all().filter_map(|by| Some((by, of(Some(by.label()))?))).collect(),
            states: all().filter_map(|by| Some((by, of(by.state_label())?))).collect(),
            method: label(NVIDIA_STRATEGY).and_then(Method::named),
            partition: of(Some(AMD_PARTITION)),
            offers: offers(&node["status"]["allocatable"], table),
            gpu_pods: pods.iter().filter(|pod| uses_gpus(pod)).map(gpu_pod).collect(),
            evicted: Vec::new(),
            operands: Vec::new(),
            staying: Vec::new(),
            other_master: master,
            label_owners: label_owners(metadata),
            label_setters: label_setters(metadata),
            record,
            ready_ms: None,
            node: name,
            taints,
        })
    }

    /// The node with what its component sees of the ConfigMap. `mount_ms`: how long a kubelet may
    /// take.
    #[must_use]
    pub fn with(self, layouts: &Layouts, mount_ms: u64) -> Self {
        let ready_ms =
            self.record.as_ref().and_then(|record| layouts.ready_ms(record.sides(), mount_ms));
        Self { ready_ms, ..self }
    }

    /// The settings that it is to have, by name.
    pub fn asked(&self, by: Component) -> Option<&str> {
        self.asked.get(&by).map(String::as_str)
    }

    /// What a component reports.
    pub(crate) fn state(&self, by: Component) -> Option<&str> {
        self.states.get(&by).map(String::as_str)
    }

    /// The client that decides about its GPUs, or about what a component is asked for, in words;
    /// `None` if there is none.
    pub(crate) fn master(&self, by: Component) -> Option<String> {
        self.other_master.as_ref().or_else(|| self.label_owners.get(&by)).cloned()
    }

    /// Whether another client has changed or removed the label since the recorded change set it.
    pub(crate) fn is_relabelled(&self, record: &Record) -> bool {
        self.asked(record.by) != record.asked.as_deref()
    }

    /// Whether everything of a layout is offered, and nothing else.
    pub fn has(&self, side: &Side) -> bool {
        // Replicas have one name whatever the method is, and so have partitions of some plugins.
        let is_method = side.replicas.is_none_or(|replicas| self.method == Some(replicas.method));
        let is_partition = side.amd.is_none_or(|amd| match &self.partition {
            Some(name) => Partition::named(name) == Some(amd.partition),
            None => amd.is_named,
        });
        self.offers == side.offers() && is_method && is_partition
    }

    /// Whether the clearing taint of a component is on the node.
    pub(crate) fn is_cleared(&self, by: Component) -> bool {
        let taint = by.clearing_taint();
        taint.is_some_and(|taint| self.taints.iter().any(|one| one["key"] == *taint.key))
    }

    /// The node as events name it.
    pub(crate) fn about(&self) -> ObjectName {
        ObjectName {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            namespace: String::new(),
            name: self.node.clone(),
            uid: self.uid.clone(),
        }
    }

    /// The pods that use its GPUs, in words.
    pub(crate) fn pod_names(&self) -> String {
        let names: Vec<&str> = self.gpu_pods.iter().map(|pod| &*pod.name).collect();
        names.join(", ")
    }

    /// Whether pods are kept away by dovetail's taint.
    pub fn is_tainted(&self) -> bool {
        self.taints.iter().any(|taint| taint["key"] == TAINT)
    }
}

pub(crate) fn gpu_pod(pod: &Pod) -> GpuPod {
    GpuPod {
        name: format!("{}/{}", pod.meta.namespace, pod.meta.name),
        uid: pod.meta.uid.to_string(),
        is_leaving: pod.meta.is_deleting(),
    }
}

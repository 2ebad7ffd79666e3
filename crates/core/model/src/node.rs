//! Nodes: what a cluster is made of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::device::Device;
use crate::ids::NodeName;
use crate::images::Images;
use crate::resources::Resources;

/// The label key that stands for a node's name (`matchFields` of a node affinity).
pub const NAME_LABEL: &str = "metadata.name";

/// A label that every node has, with an empty value: its only domain is the whole cluster.
pub const CLUSTER_LABEL: &str = "dovetail.dev/cluster";

/// Key of the taint that a pod must tolerate, with effect `NoSchedule` and no value, to go to a
/// node that is marked unschedulable.
pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// One Kubernetes node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Name, unique in the cluster.
    pub name: NodeName,
    /// What pods may hold. Devices are not counted here.
    pub allocatable: Resources,
    /// The devices, by index.
    #[serde(default)]
    pub devices: Vec<Device>,
    /// Whether it is known which pod holds which device.
    #[serde(default)]
    pub knowledge: Knowledge,
    /// Most distinct volumes that may be attached, per limit; a limit that is absent is none.
    #[serde(default)]
    pub attach_limits: BTreeMap<String, i64>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub taints: Vec<Taint>,
    /// Images that are there.
    #[serde(default, skip_serializing_if = "Images::is_empty")]
    pub images: Images,
    /// Marked unschedulable: for pods that do not tolerate [`UNSCHEDULABLE`], whatever its taints
    /// are. No [`crate::CounterScope`] leaves it out for this mark.
    #[serde(default)]
    pub unschedulable: bool,
    /// Life-cycle state that decides whether the node takes pods.
    #[serde(default)]
    pub condition: NodeAvailability,
    /// Price of the whole node in micro-USD per hour; `None` is unknown.
    #[serde(default)]
    pub price_usd_micros_per_hour: Option<i64>,
    /// Chance of an interruption within an hour, in millionths; `None` is unknown, 0 is on-demand.
    #[serde(default)]
    pub interruption_ppm_per_hour: Option<u32>,
    /// Planned maintenance.
    #[serde(default)]
    pub drain_window: Option<DrainWindow>,
}

impl Node {
    /// A ready node with `gpu_count` plain devices of one model and 110 pod slots.
    pub fn plain(
        name: &str,
        cpu_milli: i64,
        memory_bytes: i64,
        gpu_count: usize,
        model: &str,
    ) -> Self {
        Self {
            name: name.into(),
            allocatable: Resources {
                cpu_milli,
                memory_bytes,
                pod_slots: 110,
                ..Resources::default()
            },
            devices: vec![Device::plain(model, 0); gpu_count],
            knowledge: Knowledge::Assigned,
            attach_limits: BTreeMap::new(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            images: Images::default(),
            unschedulable: false,
            condition: NodeAvailability::Ready,
            price_usd_micros_per_hour: None,
            interruption_ppm_per_hour: None,
            drain_window: None,
        }
    }

    /// The taint that the mark [`Node::unschedulable`] stands for.
    pub fn mark() -> Taint {
        let effect = TaintEffect::NoSchedule;
        Taint { key: UNSCHEDULABLE.to_owned(), value: String::new(), effect }
    }

    /// Whether two descriptions of a node differ in its images and in nothing else.
    pub fn differs_only_in_images(&self, other: &Self) -> bool {
        if self.images.is_same_list(&other.images) || self.images == other.images {
            return false;
        }
        *self == Self { images: self.images.clone(), ..other.clone() }
    }

    /// The value of a label, also of [`NAME_LABEL`] and [`CLUSTER_LABEL`], which no node carries as
    /// such.
    pub fn label(&self, key: &str) -> Option<&str> {
        match key {
            NAME_LABEL => Some(&self.name),
            CLUSTER_LABEL => Some(""),
            _ => self.labels.get(key).map(String::as_str),
        }
    }
}

/// What is known about the devices of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Knowledge {
    /// It is known which pod holds which device (simulator, DRA claim, annotation).
    #[default]
    Assigned,
    /// Only the number held is known; the kubelet chooses the device.
    Counted,
}

/// Whether a node takes pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeAvailability {
    /// Ready and schedulable.
    #[default]
    Ready,
    /// Coming up: billed, not yet usable.
    Starting,
    /// Cordoned or draining: keeps what it holds, takes nothing new.
    Cordoned,
    /// Not ready: what it holds may be lost.
    NotReady,
}

/// A planned time without the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainWindow {
    /// From this time on the node takes nothing new.
    pub from_ms: u64,
    /// From this time on it is back.
    pub to_ms: u64,
}

/// A mark that keeps pods away unless they tolerate it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Taint {
    pub key: String,
    /// Value; may be empty.
    #[serde(default)]
    pub value: String,
    /// What it does.
    pub effect: TaintEffect,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaintEffect {
    /// No new pods.
    NoSchedule,
    /// Rather no new pods.
    PreferNoSchedule,
    /// No new pods, and running ones must leave.
    NoExecute,
}

impl TaintEffect {
    const NAMES: [(&str, Self); 3] = [
        ("NoSchedule", Self::NoSchedule),
        ("PreferNoSchedule", Self::PreferNoSchedule),
        ("NoExecute", Self::NoExecute),
    ];

    /// Its name in Kubernetes.
    pub fn name(self) -> &'static str {
        crate::named::name_of(&Self::NAMES, self)
    }

    /// The effect of this name; `None` where there is none.
    pub fn by_name(name: &str) -> Option<Self> {
        crate::named::by_name(&Self::NAMES, name)
    }
}

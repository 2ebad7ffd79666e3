//! What dovetail keeps of the objects it watches.
//!
//! A full pod costs tens of kilobytes once decoded. These types keep what decides where pods can
//! run and nothing else; everything that follows from one object alone (what a pod asks for over
//! all its containers, which features it needs) is worked out while it is read, so that its parts
//! need not be kept. Fields that are absent or `null` are empty. An object whose fields have
//! another shape than they should is a [`Strange`] one: it is told apart from the others, and the
//! rest of a stream goes on.

use std::sync::Arc;

mod affinity;
mod claim;
mod csi;
mod devices;
mod disruption_budget;
mod gpu_labels;
mod harmless;
mod hyper_node;
mod images;
mod in_tree;
pub mod json;
mod label_selector;
mod label_set;
pub mod labels;
mod meta;
mod namespace;
mod node;
mod owner_kind;
mod persistent_volume;
mod pod;
mod pod_group;
mod pod_json;
mod pod_preemption;
mod pod_volume;
mod priority_class;
mod queue;
mod read;
mod requests;
mod storage_class;
mod sub_group;
mod topology_labels;
mod workload;

pub use affinity::{InterPodAffinity, PodSelection, PodTerm, PreferredNode, SpreadConstraint};
pub use claim::{SELECTED_NODE, VolumeClaim};
pub use csi::{CsiDriver, CsiNode, StorageCapacity, VolumeAttachment};
pub use devices::{
    AllocatedDevice, DeviceAsked, DeviceClass, DevicePool, OfferedDevice, ResourceClaim,
    ResourceClaimTemplate, ResourceSlice,
};
pub use disruption_budget::DisruptionBudget;
pub use gpu_labels::{GpuLabels, mig_of_product};
pub use harmless::harmless;
pub use hyper_node::{HyperNode, HyperNodeMember, HyperNodeSelector};
pub use in_tree::{InTreePlugin, VolumeSource};
pub use label_selector::{LabelSelector, LabelTerm, LabelTest};
pub use label_set::Labels;
pub use meta::{Controller, Meta};
pub use namespace::Namespace;
pub use node::Node;
pub use owner_kind::{OwnerKind, owner_kind};
pub use persistent_volume::{ClaimReference, PersistentVolume};
pub use pod::{Feature, HostPort, Phase, Pod, Unscheduled};
pub use pod_group::{INITIALLY_SCHEDULED, NetworkTopology, PodGroup};
pub use pod_preemption::{DISRUPTION_TARGET, NOT_STOPPED, PREEMPTION_BY_SCHEDULER, PodPreemption};
pub use pod_volume::{Disk, PodVolume};
pub use priority_class::PriorityClass;
pub use queue::Queue;
pub use read::{Strange, read};
pub use storage_class::StorageClass;
pub use sub_group::{SubGroup, SubGroupPolicy, TopologyConstraint};
pub use topology_labels::TopologyLabels;
pub use workload::{
    HEAD_GROUP, JobSetSpec, JobSpec, LEADER, PodsMade, RaySpec, TrainingSpec, WORKERS, Workload,
    WorkloadKind, WorkloadRole, has_exclusive_domains, leaders_of,
};

/// A kind of object that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `storage.k8s.io/v1` CSIDriver.
    CsiDriver,
    /// `storage.k8s.io/v1` CSINode.
    CsiNode,
    /// `storage.k8s.io/v1` CSIStorageCapacity.
    StorageCapacity,
    /// `resource.k8s.io/v1` DeviceClass.
    DeviceClass,
    /// `v1` Namespace.
    Namespace,
    /// `v1` Node.
    Node,
    /// `v1` PersistentVolume.
    PersistentVolume,
    /// `v1` PersistentVolumeClaim.
    Claim,
    /// `v1` Pod.
    Pod,
    /// `scheduling.k8s.io/v1beta1` PodGroup.
    PodGroup,
    /// `scheduling.x-k8s.io/v1alpha1` PodGroup (scheduler-plugins).
    CoschedulingGroup,
    /// `scheduling.volcano.sh/v1beta1` PodGroup.
    VolcanoGroup,
    /// `scheduling.run.ai/v2alpha2` PodGroup (KAI).
    KaiGroup,
    /// `topology.volcano.sh/v1alpha1` HyperNode.
    HyperNode,
    /// `kueue.x-k8s.io/v1beta2` Topology.
    KueueTopology,
    /// `kai.scheduler/v1alpha1` Topology (KAI).
    KaiTopology,
    /// `dovetail.dev/v1alpha1` Queue.
    Queue,
    /// `resource.k8s.io/v1` ResourceSlice.
    ResourceSlice,
    /// `storage.k8s.io/v1` StorageClass.
    StorageClass,
    /// `storage.k8s.io/v1` VolumeAttachment.
    VolumeAttachment,
    /// Objects whose controllers make pods that start together.
    Workload(WorkloadKind),
    /// `policy/v1` PodDisruptionBudget.
    DisruptionBudget,
}

impl Kind {
    /// All kinds, in the order in which they are best read: pods last, when all they refer to is
    /// known.
    pub const ALL: [Self; 32] = [
        Self::Namespace,
        Self::DisruptionBudget,
        Self::KueueTopology,
        Self::KaiTopology,
        Self::HyperNode,
        Self::Queue,
        Self::Node,
        Self::CsiDriver,
        Self::CsiNode,
        Self::StorageClass,
        Self::StorageCapacity,
        Self::PersistentVolume,
        Self::Claim,
        Self::VolumeAttachment,
        Self::DeviceClass,
        Self::ResourceSlice,
        Self::PodGroup,
        Self::CoschedulingGroup,
        Self::VolcanoGroup,
        Self::KaiGroup,
        Self::Workload(WorkloadKind::Job),
        Self::Workload(WorkloadKind::JobSet),
        Self::Workload(WorkloadKind::LeaderWorkerSet),
        Self::Workload(WorkloadKind::PyTorchJob),
        Self::Workload(WorkloadKind::TfJob),
        Self::Workload(WorkloadKind::TrainingMpiJob),
        Self::Workload(WorkloadKind::MpiJob),
        Self::Workload(WorkloadKind::XgBoostJob),
        Self::Workload(WorkloadKind::PaddleJob),
        Self::Workload(WorkloadKind::JaxJob),
        Self::Workload(WorkloadKind::RayCluster),
        Self::Pod,
    ];

    /// The name as manifests write it, with its group where several have the same.
    pub fn name(self) -> &'static str {
        match self {
            Self::CsiDriver => "CSIDriver",
            Self::CsiNode => "CSINode",
            Self::StorageCapacity => "CSIStorageCapacity",
            Self::DeviceClass => "DeviceClass",
            Self::DisruptionBudget => "PodDisruptionBudget",
            Self::Namespace => "Namespace",
            Self::Node => "Node",
            Self::PersistentVolume => "PersistentVolume",
            Self::Claim => "PersistentVolumeClaim",
            Self::Pod => "Pod",
            Self::PodGroup => "PodGroup",
            Self::CoschedulingGroup => "PodGroup.scheduling.x-k8s.io",
            Self::VolcanoGroup => "PodGroup.scheduling.volcano.sh",
            Self::KaiGroup => "PodGroup.scheduling.run.ai",
            Self::HyperNode => "HyperNode",
            Self::KueueTopology => "Topology",
            Self::KaiTopology => "Topology.kai.scheduler",
            Self::Queue => "Queue.dovetail.dev",
            Self::ResourceSlice => "ResourceSlice",
            Self::StorageClass => "StorageClass",
            Self::VolumeAttachment => "VolumeAttachment",
            Self::Workload(kind) => kind.name(),
        }
    }
}

impl Kind {
    /// The name without a group, as an object has it in its field `kind`.
    pub fn bare_name(self) -> &'static str {
        let name = self.name();
        name.split_once('.').map_or(name, |(bare, _)| bare)
    }

    /// The API group.
    pub fn group(self) -> &'static str {
        match self {
            Self::Claim | Self::Namespace | Self::Node | Self::PersistentVolume | Self::Pod => "",
            Self::DeviceClass | Self::ResourceSlice => "resource.k8s.io",
            Self::DisruptionBudget => "policy",
            Self::PodGroup => "scheduling.k8s.io",
            Self::CoschedulingGroup => "scheduling.x-k8s.io",
            Self::VolcanoGroup => "scheduling.volcano.sh",
            Self::KaiGroup => "scheduling.run.ai",
            Self::HyperNode => "topology.volcano.sh",
            Self::KueueTopology => "kueue.x-k8s.io",
            Self::KaiTopology => "kai.scheduler",
            Self::Queue => "dovetail.dev",
            Self::Workload(kind) => kind.group(),
            Self::CsiDriver
            | Self::CsiNode
            | Self::StorageCapacity
            | Self::StorageClass
            | Self::VolumeAttachment => "storage.k8s.io",
        }
    }

    /// The version of the API group.
    pub fn version(self) -> &'static str {
        match self {
            Self::PodGroup | Self::VolcanoGroup => "v1beta1",
            Self::CoschedulingGroup | Self::HyperNode | Self::KaiTopology | Self::Queue => {
                "v1alpha1"
            }
            Self::KueueTopology => "v1beta2",
            Self::KaiGroup => "v2alpha2",
            Self::Workload(kind) => kind.version(),
            _ => "v1",
        }
    }

    /// The name of the collection in paths.
    pub fn plural(self) -> &'static str {
        match self {
            Self::CsiDriver => "csidrivers",
            Self::CsiNode => "csinodes",
            Self::StorageCapacity => "csistoragecapacities",
            Self::DeviceClass => "deviceclasses",
            Self::DisruptionBudget => "poddisruptionbudgets",
            Self::Namespace => "namespaces",
            Self::Node => "nodes",
            Self::PersistentVolume => "persistentvolumes",
            Self::Claim => "persistentvolumeclaims",
            Self::Pod => "pods",
            Self::PodGroup | Self::CoschedulingGroup | Self::VolcanoGroup | Self::KaiGroup => {
                "podgroups"
            }
            Self::HyperNode => "hypernodes",
            Self::KueueTopology | Self::KaiTopology => "topologies",
            Self::Queue => "queues",
            Self::ResourceSlice => "resourceslices",
            Self::StorageClass => "storageclasses",
            Self::VolumeAttachment => "volumeattachments",
            Self::Workload(kind) => kind.plural(),
        }
    }
}

/// An object of any watched kind, as far as it could be understood.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// A CSI driver.
    CsiDriver(CsiDriver),
    /// The CSI drivers of a node.
    CsiNode(CsiNode),
    /// Capacity of a storage class in a segment of the topology.
    StorageCapacity(StorageCapacity),
    /// A class of devices (DRA).
    DeviceClass(DeviceClass),
    /// A namespace.
    Namespace(Namespace),
    /// A node.
    Node(Box<Node>),
    /// A volume.
    PersistentVolume(Box<PersistentVolume>),
    /// A claim.
    Claim(Box<VolumeClaim>),
    /// A pod; whoever keeps it shares it.
    Pod(Arc<Pod>),
    /// Pods that start together, in the words of one of the kinds for that.
    PodGroup(Kind, Box<PodGroup>),
    /// A part of the network.
    HyperNode(HyperNode),
    /// Labels of topology levels, in the words of one of the kinds for that.
    Topology(Kind, TopologyLabels),
    /// What a team is given.
    Queue(Box<Queue>),
    /// Devices that a driver offers (DRA).
    ResourceSlice(Box<ResourceSlice>),
    /// A storage class.
    StorageClass(StorageClass),
    /// A volume attached to a node.
    VolumeAttachment(VolumeAttachment),
    /// A workload.
    Workload(WorkloadKind, Box<Workload>),
    /// How many of some pods may be stopped.
    DisruptionBudget(DisruptionBudget),
    /// An object with a field of the wrong shape.
    Strange(Kind, Box<Strange>),
}

impl Object {
    /// Reads one object from its JSON. What cannot be read as its kind becomes [`Object::Strange`].
    pub fn read(kind: Kind, json: &[u8]) -> Self {
        fn of<T: serde::de::DeserializeOwned>(
            kind: Kind,
            json: &[u8],
            object: impl FnOnce(T) -> Object,
        ) -> Object {
            match read(kind.name(), json) {
                Ok(value) => object(value),
                Err(strange) => Object::Strange(kind, strange),
            }
        }
        match kind {
            Kind::CsiDriver => of(kind, json, Self::CsiDriver),
            Kind::CsiNode => of(kind, json, Self::CsiNode),
            Kind::StorageCapacity => of(kind, json, Self::StorageCapacity),
            Kind::DeviceClass => of(kind, json, Self::DeviceClass),
            Kind::DisruptionBudget => of(kind, json, Self::DisruptionBudget),
            Kind::Namespace => of(kind, json, Self::Namespace),
            Kind::Node => of(kind, json, |node| Self::Node(Box::new(node))),
            Kind::PersistentVolume => {
                of(kind, json, |volume| Self::PersistentVolume(Box::new(volume)))
            }
            Kind::Claim => of(kind, json, |claim| Self::Claim(Box::new(claim))),
            Kind::Pod => of(kind, json, |pod| Self::Pod(Arc::new(pod))),
            Kind::PodGroup | Kind::CoschedulingGroup | Kind::VolcanoGroup | Kind::KaiGroup => {
                of(kind, json, |group| Self::PodGroup(kind, Box::new(group)))
            }
            Kind::HyperNode => of(kind, json, Self::HyperNode),
            Kind::KueueTopology | Kind::KaiTopology => {
                of(kind, json, |labels| Self::Topology(kind, labels))
            }
            Kind::Queue => of(kind, json, |queue| Self::Queue(Box::new(queue))),
            Kind::ResourceSlice => of(kind, json, |slice| Self::ResourceSlice(Box::new(slice))),
            Kind::StorageClass => of(kind, json, Self::StorageClass),
            Kind::VolumeAttachment => of(kind, json, Self::VolumeAttachment),
            Kind::Workload(of_kind) => match workload::read(of_kind, json) {
                Ok(workload) => Self::Workload(of_kind, Box::new(workload)),
                Err(strange) => Self::Strange(kind, strange),
            },
        }
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::CsiDriver(_) => Kind::CsiDriver,
            Self::CsiNode(_) => Kind::CsiNode,
            Self::StorageCapacity(_) => Kind::StorageCapacity,
            Self::DeviceClass(_) => Kind::DeviceClass,
            Self::DisruptionBudget(_) => Kind::DisruptionBudget,
            Self::Namespace(_) => Kind::Namespace,
            Self::Node(_) => Kind::Node,
            Self::PersistentVolume(_) => Kind::PersistentVolume,
            Self::Claim(_) => Kind::Claim,
            Self::Pod(_) => Kind::Pod,
            Self::HyperNode(_) => Kind::HyperNode,
            Self::Queue(_) => Kind::Queue,
            Self::ResourceSlice(_) => Kind::ResourceSlice,
            Self::StorageClass(_) => Kind::StorageClass,
            Self::VolumeAttachment(_) => Kind::VolumeAttachment,
            Self::Workload(kind, _) => Kind::Workload(*kind),
            Self::PodGroup(kind, _) | Self::Topology(kind, _) | Self::Strange(kind, _) => *kind,
        }
    }

    /// Name, namespace and what else every object has.
    pub fn meta(&self) -> &Meta {
        match self {
            Self::CsiDriver(object) => &object.meta,
            Self::CsiNode(object) => &object.meta,
            Self::StorageCapacity(object) => &object.meta,
            Self::DeviceClass(object) => &object.meta,
            Self::DisruptionBudget(object) => &object.meta,
            Self::Namespace(object) => &object.meta,
            Self::Node(object) => &object.meta,
            Self::PersistentVolume(object) => &object.meta,
            Self::Claim(object) => &object.meta,
            Self::Pod(object) => &object.meta,
            Self::PodGroup(_, object) => &object.meta,
            Self::HyperNode(object) => &object.meta,
            Self::Topology(_, object) => &object.meta,
            Self::Queue(object) => &object.meta,
            Self::ResourceSlice(object) => &object.meta,
            Self::StorageClass(object) => &object.meta,
            Self::VolumeAttachment(object) => &object.meta,
            Self::Workload(_, object) => &object.meta,
            Self::Strange(_, object) => &object.meta,
        }
    }
}

//! One object of any kind that is watched.

use std::sync::Arc;

use super::{
    CsiDriver, CsiNode, DeviceClass, DeviceTaintRule, DisruptionBudget, HyperNode, Kind, Meta,
    Namespace, Node, PersistentVolume, Pod, PodGroup, Queue, Reservation, ResourceClaim,
    ResourceSlice, StorageCapacity, StorageClass, Strange, TopologyLabels, VolumeAttachment,
    VolumeClaim, WorkloadKind, WorkloadObject, read, workload,
};

/// An object of any watched kind, as far as it could be understood.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    CsiDriver(CsiDriver),
    CsiNode(CsiNode),
    /// Capacity of a storage class in a segment of the topology.
    StorageCapacity(StorageCapacity),
    /// A claim of devices (DRA).
    DeviceClaim(Box<ResourceClaim>),
    /// A class of devices (DRA).
    DeviceClass(DeviceClass),
    /// A taint of devices (DRA).
    DeviceTaintRule(DeviceTaintRule),
    Namespace(Namespace),
    Node(Box<Node>),
    PersistentVolume(Box<PersistentVolume>),
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
    /// What is reserved from one time to another.
    Reservation(Box<Reservation>),
    /// Devices that a driver offers (DRA).
    ResourceSlice(Box<ResourceSlice>),
    StorageClass(StorageClass),
    VolumeAttachment(VolumeAttachment),
    Workload(WorkloadKind, Box<WorkloadObject>),
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
            Kind::DeviceClaim => of(kind, json, |claim| Self::DeviceClaim(Box::new(claim))),
            Kind::DeviceClass => of(kind, json, Self::DeviceClass),
            Kind::DeviceTaintRule => of(kind, json, Self::DeviceTaintRule),
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
            Kind::Reservation => of(kind, json, |one| Self::Reservation(Box::new(one))),
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
            Self::DeviceClaim(_) => Kind::DeviceClaim,
            Self::DeviceClass(_) => Kind::DeviceClass,
            Self::DeviceTaintRule(_) => Kind::DeviceTaintRule,
            Self::DisruptionBudget(_) => Kind::DisruptionBudget,
            Self::Namespace(_) => Kind::Namespace,
            Self::Node(_) => Kind::Node,
            Self::PersistentVolume(_) => Kind::PersistentVolume,
            Self::Claim(_) => Kind::Claim,
            Self::Pod(_) => Kind::Pod,
            Self::HyperNode(_) => Kind::HyperNode,
            Self::Queue(_) => Kind::Queue,
            Self::Reservation(_) => Kind::Reservation,
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
            Self::DeviceClaim(object) => &object.meta,
            Self::DeviceClass(object) => &object.meta,
            Self::DeviceTaintRule(object) => &object.meta,
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
            Self::Reservation(object) => &object.meta,
            Self::ResourceSlice(object) => &object.meta,
            Self::StorageClass(object) => &object.meta,
            Self::VolumeAttachment(object) => &object.meta,
            Self::Workload(_, object) => &object.meta,
            Self::Strange(_, object) => &object.meta,
        }
    }
}

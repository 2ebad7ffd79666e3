//! The kinds that are watched: how manifests write them, and where the server keeps them.

use super::workload::WorkloadKind;

/// A kind of object that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `storage.k8s.io/v1` CSIDriver.
    CsiDriver,
    /// `storage.k8s.io/v1` CSINode.
    CsiNode,
    /// `storage.k8s.io/v1` CSIStorageCapacity.
    StorageCapacity,
    /// `resource.k8s.io/v1` ResourceClaim.
    DeviceClaim,
    /// `resource.k8s.io/v1` DeviceClass.
    DeviceClass,
    /// `resource.k8s.io/v1` DeviceTaintRule; older servers have it in another version.
    DeviceTaintRule,
    Namespace,
    Node,
    PersistentVolume,
    /// `v1` PersistentVolumeClaim.
    Claim,
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
    /// `dovetail.dev/v1alpha1` Reservation.
    Reservation,
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
    pub const ALL: [Self; 35] = [
        Self::Namespace,
        Self::DisruptionBudget,
        Self::KueueTopology,
        Self::KaiTopology,
        Self::HyperNode,
        Self::Queue,
        Self::Reservation,
        Self::Node,
        Self::CsiDriver,
        Self::CsiNode,
        Self::StorageClass,
        Self::StorageCapacity,
        Self::PersistentVolume,
        Self::Claim,
        Self::VolumeAttachment,
        Self::DeviceClass,
        Self::DeviceTaintRule,
        Self::ResourceSlice,
        Self::DeviceClaim,
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

    /// Where the server keeps it, and how manifests write it.
    fn names(self) -> KindNames {
        match self {
            Self::CsiDriver => names("CSIDriver", "storage.k8s.io", "v1", "csidrivers"),
            Self::CsiNode => names("CSINode", "storage.k8s.io", "v1", "csinodes"),
            Self::StorageCapacity => {
                names("CSIStorageCapacity", "storage.k8s.io", "v1", "csistoragecapacities")
            }
            Self::DeviceClaim => names("ResourceClaim", "resource.k8s.io", "v1", "resourceclaims"),
            Self::DeviceClass => names("DeviceClass", "resource.k8s.io", "v1", "deviceclasses"),
            Self::DeviceTaintRule => {
                names("DeviceTaintRule", "resource.k8s.io", "v1", "devicetaintrules")
            }
            Self::DisruptionBudget => {
                names("PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets")
            }
            Self::Namespace => names("Namespace", "", "v1", "namespaces"),
            Self::Node => names("Node", "", "v1", "nodes"),
            Self::PersistentVolume => names("PersistentVolume", "", "v1", "persistentvolumes"),
            Self::Claim => names("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims"),
            Self::Pod => names("Pod", "", "v1", "pods"),
            Self::PodGroup => names("PodGroup", "scheduling.k8s.io", "v1beta1", "podgroups"),
            Self::CoschedulingGroup => names(
                "PodGroup.scheduling.x-k8s.io",
                "scheduling.x-k8s.io",
                "v1alpha1",
                "podgroups",
            ),
            Self::VolcanoGroup => names(
                "PodGroup.scheduling.volcano.sh",
                "scheduling.volcano.sh",
                "v1beta1",
                "podgroups",
            ),
            Self::KaiGroup => {
                names("PodGroup.scheduling.run.ai", "scheduling.run.ai", "v2alpha2", "podgroups")
            }
            Self::HyperNode => names("HyperNode", "topology.volcano.sh", "v1alpha1", "hypernodes"),
            Self::KueueTopology => names("Topology", "kueue.x-k8s.io", "v1beta2", "topologies"),
            Self::KaiTopology => {
                names("Topology.kai.scheduler", "kai.scheduler", "v1alpha1", "topologies")
            }
            Self::Queue => names("Queue.dovetail.dev", "dovetail.dev", "v1alpha1", "queues"),
            Self::Reservation => {
                names("Reservation.dovetail.dev", "dovetail.dev", "v1alpha1", "reservations")
            }
            Self::ResourceSlice => {
                names("ResourceSlice", "resource.k8s.io", "v1", "resourceslices")
            }
            Self::StorageClass => names("StorageClass", "storage.k8s.io", "v1", "storageclasses"),
            Self::VolumeAttachment => {
                names("VolumeAttachment", "storage.k8s.io", "v1", "volumeattachments")
            }
            Self::Workload(kind) => names(kind.name(), kind.group(), kind.version(), kind.plural()),
        }
    }

    /// The name as manifests write it, with its group where several have the same.
    pub fn name(self) -> &'static str {
        self.names().kind
    }

    /// The name without a group, as an object has it in its field `kind`.
    pub fn bare_name(self) -> &'static str {
        let name = self.name();
        name.split_once('.').map_or(name, |(bare, _)| bare)
    }

    /// The API group.
    pub fn group(self) -> &'static str {
        self.names().group
    }

    /// The version of the API group.
    pub fn version(self) -> &'static str {
        self.names().version
    }

    /// Versions of older servers that have the same fields, the newest first.
    pub fn older_versions(self) -> &'static [&'static str] {
        match self {
            Self::DeviceTaintRule => &["v1beta2", "v1alpha3"],
            _ => &[],
        }
    }

    /// The name of the collection in paths.
    pub fn plural(self) -> &'static str {
        self.names().plural
    }

    /// The resource as kubectl takes it, with its group if it has one:
    /// `podgroups.scheduling.run.ai`.
    pub fn resource(self) -> String {
        match (self.plural(), self.group()) {
            (plural, "") => plural.to_owned(),
            (plural, group) => format!("{plural}.{group}"),
        }
    }

    /// The path of the list of all objects.
    pub fn list_path(self) -> String {
        let KindNames { group, version, plural, .. } = self.names();
        match group {
            "" => format!("/api/{version}/{plural}"),
            _ => format!("/apis/{group}/{version}/{plural}"),
        }
    }
}

struct KindNames {
    kind: &'static str,
    group: &'static str,
    version: &'static str,
    plural: &'static str,
}

const fn names(
    kind: &'static str,
    group: &'static str,
    version: &'static str,
    plural: &'static str,
) -> KindNames {
    KindNames { kind, group, version, plural }
}

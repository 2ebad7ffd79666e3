//! Labels and annotations, each spelled once.

/// Annotations by which a pod asks KAI for a fraction of a device.
pub const FRACTION: [&str; 2] = ["gpu-fraction", "gpu-memory"];

/// Volcano's annotations with the name of a group; the first is what its admission writes.
pub const VOLCANO_GROUP: [&str; 2] =
    ["scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"];
/// Label and annotation of a pod: its task in a job of Volcano.
pub const VOLCANO_TASK: &str = "volcano.sh/task-spec";

/// KAI's annotation with the name of a group.
pub const KAI_GROUP: &str = "pod-group-name";
/// KAI's: the node label of the level in one of whose domains all pods must be.
pub const KAI_REQUIRED: &str = "kai.scheduler/topology-required-placement";
/// KAI's: where they should be.
pub const KAI_PREFERRED: &str = "kai.scheduler/topology-preferred-placement";
/// KAI's: the node label of the level in one of whose domains the pods of a segment must be.
pub const KAI_SEGMENT_REQUIRED: &str = "kai.scheduler/segment-topology-required-placement";
/// KAI's: where they should be.
pub const KAI_SEGMENT_PREFERRED: &str = "kai.scheduler/segment-topology-preferred-placement";
/// KAI's: pods of a segment.
pub const KAI_SEGMENT_SIZE: &str = "kai.scheduler/segment-size";

/// Kueue's: how many pods a group has.
pub const KUEUE_TOTAL_COUNT: &str = "kueue.x-k8s.io/pod-group-total-count";
/// Kueue's: the node label of the level in one of whose domains the pods of a set must be.
pub const KUEUE_REQUIRED: &str = "kueue.x-k8s.io/podset-required-topology";
/// Kueue's: where they should be.
pub const KUEUE_PREFERRED: &str = "kueue.x-k8s.io/podset-preferred-topology";
/// Kueue's: the node label of the level in one of whose domains the pods of a slice must be.
pub const KUEUE_SLICE_REQUIRED: &str = "kueue.x-k8s.io/podset-slice-required-topology";
/// Kueue's: pods of a slice.
pub const KUEUE_SLICE_SIZE: &str = "kueue.x-k8s.io/podset-slice-size";
/// Kueue's: slices of slices.
pub const KUEUE_SLICE_CONSTRAINTS: &str =
    "kueue.x-k8s.io/podset-slice-required-topology-constraints";

/// Annotation of JobSets: each Job has a domain to itself.
pub const JOB_SET_EXCLUSIVE_TOPOLOGY: &str = "alpha.jobset.sigs.k8s.io/exclusive-topology";
/// Annotation of JobSets: that is done by node selectors, not by following the first pod.
pub const JOB_SET_BY_NODE_SELECTOR: &str = "alpha.jobset.sigs.k8s.io/node-selector";

/// Annotation of a LeaderWorkerSet's pod: how many its group has. During an update it differs from what the set says.
pub const LEADER_WORKER_SET_SIZE: &str = "leaderworkerset.sigs.k8s.io/size";
/// Annotation of a LeaderWorkerSet: each group has a domain to itself.
pub const LEADER_WORKER_SET_EXCLUSIVE_TOPOLOGY: &str =
    "leaderworkerset.sigs.k8s.io/exclusive-topology";

/// Annotations about gangs that are read, besides our own.
pub const OF_GANGS: [&str; 19] = [
    VOLCANO_GROUP[0],
    VOLCANO_GROUP[1],
    VOLCANO_TASK,
    KAI_GROUP,
    KUEUE_TOTAL_COUNT,
    JOB_SET_EXCLUSIVE_TOPOLOGY,
    JOB_SET_BY_NODE_SELECTOR,
    LEADER_WORKER_SET_SIZE,
    LEADER_WORKER_SET_EXCLUSIVE_TOPOLOGY,
    KUEUE_REQUIRED,
    KUEUE_PREFERRED,
    KAI_REQUIRED,
    KAI_PREFERRED,
    KUEUE_SLICE_REQUIRED,
    KUEUE_SLICE_SIZE,
    KUEUE_SLICE_CONSTRAINTS,
    KAI_SEGMENT_REQUIRED,
    KAI_SEGMENT_PREFERRED,
    KAI_SEGMENT_SIZE,
];

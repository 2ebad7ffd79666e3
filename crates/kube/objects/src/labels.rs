//! Labels, annotations and resources, each spelled once; `cargo xtask tidy labels` finds second
//! spellings.

pub use dovetail_model::labels::*;

/// Group of CustomResourceDefinitions.
pub const DEFINITIONS: &str = "apiextensions.k8s.io";

/// Annotations by which a pod asks KAI for a fraction of a device.
pub const FRACTION: [&str; 2] = ["gpu-fraction", "gpu-memory"];

/// KAI's label of pods that share a device, and of the pod that takes it off the device plugin for
/// them.
pub const KAI_DEVICE_GROUP: &str = "runai-gpu-group";

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
/// Kueue's: `true` where the pods of a group are replicas of a server (of a StatefulSet, or of a
/// LeaderWorkerSet). They are counted together, and need not run together.
pub const KUEUE_SERVING: &str = "kueue.x-k8s.io/pod-group-serving";
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

/// Annotation of a LeaderWorkerSet's pod: how many its group has. During an update it differs from
/// what the set says.
pub const LEADER_WORKER_SET_SIZE: &str = "leaderworkerset.sigs.k8s.io/size";
/// Label of a LeaderWorkerSet's pod: its number in its group; that of the leader is 0.
pub const LEADER_WORKER_SET_WORKER_INDEX: &str = "leaderworkerset.sigs.k8s.io/worker-index";
/// Annotation of a LeaderWorkerSet: each group has a domain to itself.
pub const LEADER_WORKER_SET_EXCLUSIVE_TOPOLOGY: &str =
    "leaderworkerset.sigs.k8s.io/exclusive-topology";

/// Annotations about gangs that are read, besides our own.
pub const OF_GANGS: [&str; 20] = [
    VOLCANO_GROUP[0],
    VOLCANO_GROUP[1],
    VOLCANO_TASK,
    KAI_GROUP,
    KUEUE_TOTAL_COUNT,
    KUEUE_SERVING,
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

// Labels of nodes.

/// Processor architecture.
pub const ARCHITECTURE: &str = "kubernetes.io/arch";
/// Operating system.
pub const OPERATING_SYSTEM: &str = "kubernetes.io/os";
/// Region.
pub const REGION: &str = "topology.kubernetes.io/region";
/// The same as older clusters write it.
pub const OLD_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
/// The same as older clusters write it.
pub const OLD_REGION: &str = "failure-domain.beta.kubernetes.io/region";
/// Type of the instance that a node is.
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// The same as older clusters write it.
pub const OLD_INSTANCE_TYPE: &str = "beta.kubernetes.io/instance-type";
/// How pods share a node's NVIDIA GPUs: `none`, `time-slicing` or `mps`.
pub const NVIDIA_STRATEGY: &str = "nvidia.com/gpu.sharing-strategy";
/// The same of a node on GKE.
pub const GKE_STRATEGY: &str = "cloud.google.com/gke-gpu-sharing-strategy";
/// Model of a node's AMD GPUs, as older plugins write it.
pub const AMD_OLD_PRODUCT: &str = "beta.amd.com/gpu.product-name";
/// Model of a node's accelerators on GKE.
pub const GKE_ACCELERATOR: &str = "cloud.google.com/gke-accelerator";
/// Model of a node's accelerators on EKS.
pub const AWS_ACCELERATOR: &str = "k8s.amazonaws.com/accelerator";
/// `true` on preemptible nodes of GKE.
pub const GKE_PREEMPTIBLE: &str = "cloud.google.com/gke-preemptible";
/// `true` on spot nodes of GKE.
pub const GKE_SPOT: &str = "cloud.google.com/gke-spot";
/// How a node of EKS is bought.
pub const EKS_CAPACITY_TYPE: &str = "eks.amazonaws.com/capacityType";
/// The same in lower case.
pub const EKS_CAPACITY_TYPE_LOWER: &str = "eks.amazonaws.com/capacitytype";
/// How a node of Karpenter is bought.
pub const KARPENTER_CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
/// Model of a node's GPUs, as Karpenter writes it on AWS.
pub const KARPENTER_GPU: &str = "karpenter.k8s.aws/instance-gpu-name";
/// Node label of Karpenter on AWS: how many GPUs the instance has.
pub const KARPENTER_GPU_COUNT: &str = "karpenter.k8s.aws/instance-gpu-count";
/// Node label of GKE: how many GPUs the machine has.
pub const GKE_ACCELERATOR_COUNT: &str = "cloud.google.com/gke-accelerator-count";
/// Node label of GKE: how many pods may share a GPU.
pub const GKE_SHARED_CLIENTS: &str = "cloud.google.com/gke-max-shared-clients-per-gpu";
/// How the names of what Intel's plugin offers begin, and Intel's labels of nodes.
pub const INTEL: &str = "gpu.intel.com/";
/// How labels begin that list a node's Intel GPUs by their numbers, by Intel's node labeller; a
/// list that is too long for one label goes on in another, such as `gpu-numbers2`.
pub const INTEL_NUMBERS: &str = "gpu.intel.com/gpu-numbers";
/// How labels begin that Intel's rules for Node Feature Discovery write for each PCI device, such
/// as `gpu.intel.com/device-id.0380-0bda.count`.
pub const INTEL_DEVICE: &str = "gpu.intel.com/device-id.";
/// `spot` on spot nodes of AKS.
pub const AZURE_PRIORITY: &str = "kubernetes.azure.com/scalesetpriority";

// Annotations that keep autoscalers from moving pods and nodes.

/// The cluster autoscaler's, of a pod.
pub const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
/// The cluster autoscaler's, of a node.
pub const SCALE_DOWN_DISABLED: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
/// Karpenter's, of a node, as it was once.
pub const KARPENTER_DO_NOT_CONSOLIDATE: &str = "karpenter.sh/do-not-consolidate";
/// Karpenter's, of a node or a pod.
pub const KARPENTER_DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
/// Karpenter's, of a pod, as it was once.
pub const KARPENTER_DO_NOT_EVICT: &str = "karpenter.sh/do-not-evict";

// Our own.

/// How often a workload saves its progress.
pub const CHECKPOINT_INTERVAL: &str = "dovetail.dev/checkpoint-interval";
/// How long a workload takes to save its progress.
pub const CHECKPOINT_COST: &str = "dovetail.dev/checkpoint-cost";
/// How long a workload that was stopped takes until it goes on.
pub const RESTART_COST: &str = "dovetail.dev/restart-cost";
/// How long a workload takes to save its progress once it is told to stop.
pub const SAVE_ON_NOTICE: &str = "dovetail.dev/save-on-notice";
/// When a workload last saved its progress.
pub const LAST_CHECKPOINT: &str = "dovetail.dev/last-checkpoint";
/// Classes whose pods may share the GPUs of a node, separated by commas: those that its
/// SharingPolicy names.
pub const SHARED_CLASSES: &str = "dovetail.dev/shared-classes";
/// Checks of the audit that an owner wants ignored, with reasons.
pub const IGNORE: &str = "dovetail.dev/ignore";
/// How long a workload runs at least before a queue that wants its quota back may stop it.
pub const MIN_RUNTIME: &str = "dovetail.dev/min-runtime";
/// How often a workload may be preempted for other reasons than priority.
pub const MAX_PREEMPTIONS: &str = "dovetail.dev/max-preemptions";
/// What a Job chooses in place of the eviction of all its pods: `suspend`, or anything else for
/// eviction.
pub const PREEMPTION: &str = "dovetail.dev/preemption";
/// A Job that dovetail has suspended: why, and when.
pub const SUSPENDED: &str = "dovetail.dev/suspended";
/// Receipt of preemptions: how often pods of an object were preempted.
pub const PREEMPTIONS: &str = "dovetail.dev/preemptions";
/// Receipt of preemptions: GPU-time that the preempted pods had run.
pub const ATTAINED_GPU_SECONDS: &str = "dovetail.dev/attained-gpu-seconds";
/// Receipt of preemptions: GPU-time of that which was lost.
pub const LOST_GPU_SECONDS: &str = "dovetail.dev/lost-gpu-seconds";
/// Receipt of preemptions: when the last one was.
pub const LAST_PREEMPTED: &str = "dovetail.dev/last-preempted";
/// How long a workload is expected to run.
pub const RUNTIME: &str = "dovetail.dev/runtime";
/// Receipt of preemptions: when the job was submitted that was preempted first.
pub const FIRST_SUBMITTED: &str = "dovetail.dev/first-submitted";
/// Names one piece of work: pods of a namespace that carry the same are attempts at it.
pub const RUN: &str = "dovetail.dev/run";
/// Queue of a pod or of a namespace.
pub const QUEUE: &str = "dovetail.dev/queue";

// Names that other tools give.

/// What a pod runs.
pub const APPLICATION: &str = "app.kubernetes.io/name";
/// Part of an application that a pod is.
pub const COMPONENT: &str = "app.kubernetes.io/component";
/// Release of Helm that an object belongs to.
pub const HELM_RELEASE: &str = "meta.helm.sh/release-name";
/// Application of Argo CD that an object belongs to.
pub const ARGO_CD_TRACKING: &str = "argocd.argoproj.io/tracking-id";
/// HAMi's list of a node's GPUs.
pub const HAMI_REGISTER: &str = "hami.io/node-nvidia-register";
/// The list of a node's GPUs by Volcano's vGPU plugin.
pub const VOLCANO_REGISTER: &str = "volcano.sh/node-vgpu-register";
/// Annotations of pods with the GPUs that they hold parts of: HAMi's, Volcano's, and that of
/// Volcano's older GPU sharing.
pub const VGPUS_HELD: [&str; 3] =
    ["hami.io/vgpu-devices-allocated", "volcano.sh/vgpu-ids-new", "volcano.sh/gpu-index"];
/// Annotations by which a pod chooses GPUs on HAMi's nodes: models and devices that it uses or not.
pub const HAMI_CHOICES: [&str; 4] = [
    "nvidia.com/use-gputype",
    "nvidia.com/nouse-gputype",
    "nvidia.com/use-gpuuuid",
    "nvidia.com/nouse-gpuuuid",
];
/// HAMi's resource: percent of a GPU's compute.
pub const HAMI_CORES: &str = "nvidia.com/gpucores";
/// Model that a pod serves, with llm-d.
pub const LLM_D_MODEL: &str = "llm-d.ai/model";
/// Service of KServe that a pod belongs to.
pub const KSERVE_SERVICE: &str = "serving.kserve.io/inferenceservice";
/// Job of a JobSet that a pod belongs to.
pub const REPLICATED_JOB: &str = "jobset.sigs.k8s.io/replicatedjob-name";
/// Operator that made a pod of a training job.
pub const TRAINING_OPERATOR: &str = "training.kubeflow.org/operator-name";
/// What a pod is in a training job.
pub const TRAINING_REPLICA_TYPE: &str = "training.kubeflow.org/replica-type";
/// The same in newer operators.
pub const TRAINING_ROLE: &str = "training.kubeflow.org/job-role";
/// Whether a pod of a Ray cluster is its head or a worker.
pub const RAY_NODE_TYPE: &str = "ray.io/node-type";
/// Kueue's name of a group of pods.
pub const KUEUE_GROUP: &str = "kueue.x-k8s.io/pod-group-name";
/// Kueue's queue.
pub const KUEUE_QUEUE: &str = "kueue.x-k8s.io/queue-name";
/// Label: after how many seconds Kueue ends a workload.
pub const KUEUE_TIME_LIMIT: &str = "kueue.x-k8s.io/max-exec-time-seconds";
/// Annotation: after how many minutes Slurm ends a job of Slinky's slurm-bridge.
pub const SLINKY_TIME_LIMIT: &str = "slurmjob.slinky.slurm.net/timelimit";
/// Scheduler-plugins' name of a group of pods.
pub const COSCHEDULING_GROUP: &str = "scheduling.x-k8s.io/pod-group";
/// Marks a ResourceClaim that stands for a request of an extended resource.
pub const EXTENDED_RESOURCE_CLAIM: &str = "resource.kubernetes.io/extended-resource-claim";
/// Begin of the resources that stand for a DeviceClass; its name follows.
pub const DEVICE_CLASS_RESOURCE: &str = "deviceclass.resource.kubernetes.io/";

// Volumes.

/// Of a claim: it is bound for good.
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// Storage class of a claim or a volume, as older clusters write it.
pub const OLD_STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// In-tree plugins of a node that a CSI driver stands for.
pub const MIGRATED_PLUGINS: &str = "storage.alpha.kubernetes.io/migrated-plugins";

// Nodes and pods that belong to them.

/// Of a pod: it stands for a static one of its node.
pub const MIRROR: &str = "kubernetes.io/config.mirror";
/// Of a node that kured reboots: it uncordons the node itself.
pub const KURED_REBOOTING: &str = "weave.works/kured-reboot-in-progress";

// Versions of APIs.

/// Dynamic resources.
pub const RESOURCE_V1: &str = "resource.k8s.io/v1";
/// Dynamic resources, as older clusters have them.
pub const RESOURCE_V1BETA1: &str = "resource.k8s.io/v1beta1";

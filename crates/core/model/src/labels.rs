//! Labels and resources by which core itself reads or writes something, each spelled once. The
//! others are in `dovetail_objects::labels`, which has these, too.

/// Resource of whole AMD GPUs.
pub const AMD_GPU: &str = "amd.com/gpu";
/// Label of a node with the partition of its GPUs, such as `cpx_nps4`, by AMD's node labeller.
pub const AMD_PARTITION: &str = "amd.com/compute-memory-partition";
/// Model of a node's AMD GPUs.
pub const AMD_PRODUCT: &str = "amd.com/gpu.product-name";
/// Resource of whole Neuron chips.
pub const AWS_NEURON: &str = "aws.amazon.com/neuron";
/// Label of a node on GKE with the profile of its MIG partitions.
pub const GKE_PARTITION: &str = "cloud.google.com/gke-gpu-partition-size";
/// Resource of TPU chips.
pub const GOOGLE_TPU: &str = "google.com/tpu";
/// Resource of Gaudi cards.
pub const HABANA_GAUDI: &str = "habana.ai/gaudi";
/// Resource of whole GPUs of NVIDIA, or of their replicas.
pub const NVIDIA_GPU: &str = "nvidia.com/gpu";
/// Resource of replicas of NVIDIA's GPUs under a name of their own.
pub const NVIDIA_SHARED: &str = "nvidia.com/gpu.shared";
/// Begin of the resources of MIG slices; a profile follows.
pub const NVIDIA_MIG: &str = "nvidia.com/mig-";
/// Model of a node's NVIDIA GPUs.
pub const NVIDIA_PRODUCT: &str = "nvidia.com/gpu.product";
/// How many NVIDIA GPUs a node has.
pub const NVIDIA_COUNT: &str = "nvidia.com/gpu.count";
/// Memory of each, in MiB.
pub const NVIDIA_MEMORY: &str = "nvidia.com/gpu.memory";
/// `true` where a node has NVIDIA GPUs.
pub const NVIDIA_PRESENT: &str = "nvidia.com/gpu.present";
/// How many replicas of each GPU a node offers.
pub const NVIDIA_REPLICAS: &str = "nvidia.com/gpu.replicas";
/// The MIG layout that a node is to have.
pub const NVIDIA_MIG_CONFIG: &str = "nvidia.com/mig.config";
/// Whether a node has it.
pub const NVIDIA_MIG_STATE: &str = "nvidia.com/mig.config.state";
/// By which nos takes nodes.
pub const NOS: &str = "nos.nebuly.com/gpu-partitioning";
/// A node's host name.
pub const HOST_NAME: &str = "kubernetes.io/hostname";
/// A node's zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// Memory of each GPU of a node, in MiB, by Karpenter's provider for AWS.
pub const KARPENTER_GPU_MEMORY: &str = "karpenter.k8s.aws/instance-gpu-memory";
/// Karpenter's pool of a node.
pub const KARPENTER_NODE_POOL: &str = "karpenter.sh/nodepool";
/// When a patch of the audit scaled an object to zero: only a person starts it again.
pub const STOPPED: &str = "dovetail.dev/stopped";
/// When a notebook of Kubeflow was stopped, by its user or by a culler.
pub const NOTEBOOK_STOPPED: &str = "kubeflow-resource-stopped";
/// Class of a workload, where its owner says it.
pub const CLASS: &str = "dovetail.dev/class";
/// Name of the gang of a pod.
pub const GANG: &str = "dovetail.dev/gang";
/// Fewest pods of a gang that start together.
pub const MIN_MEMBERS: &str = "dovetail.dev/min-members";
/// Most pods of a gang that run at a time.
pub const MAX_MEMBERS: &str = "dovetail.dev/max-members";

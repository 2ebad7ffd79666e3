//! Names that a cluster and dovetail share about the layout of GPUs.

/// Taint of a node whose layout changes: pods that do not tolerate it do not start there.
pub const TAINT: &str = "dovetail.dev/repartition";
/// Annotation of a node: how far the change of its layout is.
pub const RECORD: &str = "dovetail.dev/partition";
/// Annotation of a Deployment or StatefulSet: what its pods asked for before dovetail changed that.
pub const FORMER_REQUESTS: &str = "dovetail.dev/former-requests";
/// Annotation of a Deployment that has one replica more, until a pod of it has moved.
pub const REPLACING: &str = "dovetail.dev/replacing";
/// Who writes the fields of workloads and nodes.
pub const FIELD_MANAGER: &str = "dovetail";
/// Annotation of the ConfigMap: when each of its newest names was written, in ms since 1970.
pub const WRITTEN: &str = "dovetail.dev/written";

/// The ConfigMap that mig-manager reads, once `partition setup` is applied.
pub const MIG_CONFIG_MAP: &str = "dovetail-mig";
/// The ConfigMap with sharing settings that the device plugin reads.
pub const SHARING_CONFIG_MAP: &str = "dovetail-sharing";
/// The ConfigMap that the GPU Operator ships.
pub const DEFAULT_CONFIG_MAP: &str = "default-mig-parted-config";
/// The key of the ConfigMaps for mig-manager with the layouts.
pub const CONFIG_KEY: &str = "config.yaml";
/// The layout of a node whose GPUs are not in MIG mode.
pub const NO_MIG: &str = "all-disabled";

/// Label of a node that names the settings of its device plugin.
pub const PLUGIN_CONFIG: &str = "nvidia.com/device-plugin.config";

/// DRA driver of NVIDIA's GPUs.
pub const NVIDIA_DRIVER: &str = "gpu.nvidia.com";

/// The ConfigMap with partition profiles that AMD's Device Config Manager reads.
pub const AMD_CONFIG_MAP: &str = "dovetail-amd";
/// The key of the ConfigMap for Device Config Manager with the profiles.
pub const AMD_CONFIG_KEY: &str = "config.json";
/// Label of a node that names its partition profile.
pub const AMD_PROFILE: &str = "dcm.amd.com/gpu-config-profile";
/// Label of a node in which Device Config Manager reports `success` or `failure`.
pub const AMD_PROFILE_STATE: &str = "dcm.amd.com/gpu-config-profile-state";
/// Taint, with the effect NoExecute, by which the pods of AMD's operator leave a node's GPUs.
/// Device Config Manager tolerates it.
pub const AMD_TAINT: &str = "amd-dcm";
/// Its value.
pub const AMD_TAINT_VALUE: &str = "up";
pub use dovetail_model::labels::{AMD_PARTITION, NOS};
/// DRA driver of AMD's GPUs.
pub const AMD_DRIVER: &str = "gpu.amd.com";

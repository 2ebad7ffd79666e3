//! Worlds: clusters as the API server stores them, for tests that compare with kube-scheduler.
//!
//! - [`GeneratedCluster`]: API objects as plain JSON, one moment of a cluster and the pods that
//!   wait.
//! - [`generate()`]: a random world from a seed; it draws on every filter that kube-scheduler has.
//! - [`generate_devices()`]: the same of devices that drivers publish, and of claims.
//! - [`documented()`]: the worlds of Kubernetes' own documentation, with what it says about them.
//! - [`GeneratedCluster::known_to`]: what an older release makes of it.
//! - [`Oracle`]: kube-scheduler's filter plugins in a process of their own, asked about a world.
//! - [`selector()`]: a random selector of devices; [`SelectorOracle`]: its evaluation upstream.
//! - [`ProfileOracle`]: NVIDIA's own libraries, asked about MIG profiles.
//! - [`Coverage`]: how often each filter accepted, rejected, and was the only one to reject.
//! - [`shrink()`]: the smallest part of a world that still shows something.

mod affinity;
mod claim;
mod coverage;
mod device_variety;
mod devices;
mod documented;
mod generate;
mod node;
mod node_choice;
mod oracle;
mod pod;
mod port;
mod random;
mod release;
mod request;
mod selector;
mod shrink;
mod spread;
mod volume;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::binaries::Release;
pub use coverage::{Coverage, PluginCoverage};
pub use devices::generate_devices;
pub use documented::{DocumentedWorld, documented};
pub use generate::generate;
pub use oracle::{
    DeviceAnswer, NameAnswer, NodeAnswer, Oracle, OracleAnswer, OracleError, PodAnswer,
    ProfileAnswer, ProfileAnswers, ProfileOracle, Rejection, SelectorAnswer, SelectorOracle,
};
pub use selector::{selected_devices, selector};
pub use shrink::shrink;

/// A cluster at one moment, as API objects with the server's defaults filled in.
///
/// `pods` exist, `pending` are asked about: each alone, against `pods` only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct GeneratedCluster {
    /// `v1` Node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Value>,
    /// `v1` Pod, those that are assigned to a node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<Value>,
    /// `v1` Pod, those in question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Value>,
    /// `v1` Namespace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<Value>,
    /// `v1` PersistentVolume.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub persistent_volumes: Vec<Value>,
    /// `v1` PersistentVolumeClaim.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub persistent_volume_claims: Vec<Value>,
    /// `storage.k8s.io/v1` StorageClass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub storage_classes: Vec<Value>,
    /// `storage.k8s.io/v1` CSINode.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub csi_nodes: Vec<Value>,
    /// `storage.k8s.io/v1` CSIDriver.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub csi_drivers: Vec<Value>,
    /// `storage.k8s.io/v1` CSIStorageCapacity.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub csi_storage_capacities: Vec<Value>,
    /// `storage.k8s.io/v1` VolumeAttachment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volume_attachments: Vec<Value>,
    /// `resource.k8s.io/v1` DeviceClass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_classes: Vec<Value>,
    /// `resource.k8s.io/v1` ResourceSlice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_slices: Vec<Value>,
    /// `resource.k8s.io/v1` ResourceClaim.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_claims: Vec<Value>,
    /// `resource.k8s.io/v1` DeviceTaintRule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_taint_rules: Vec<Value>,
}

impl GeneratedCluster {
    /// The world on one line, without line breaks.
    pub fn to_line(&self) -> String {
        // order-free: serde_json keeps maps sorted.
        serde_json::to_string(self).expect("JSON values always print")
    }

    /// The lists of objects with their JSON names, for code that treats all kinds alike.
    pub fn lists_mut(&mut self) -> [(&'static str, &mut Vec<Value>); 15] {
        [
            ("pods", &mut self.pods),
            ("pending", &mut self.pending),
            ("nodes", &mut self.nodes),
            ("persistentVolumeClaims", &mut self.persistent_volume_claims),
            ("persistentVolumes", &mut self.persistent_volumes),
            ("storageClasses", &mut self.storage_classes),
            ("csiNodes", &mut self.csi_nodes),
            ("csiDrivers", &mut self.csi_drivers),
            ("csiStorageCapacities", &mut self.csi_storage_capacities),
            ("volumeAttachments", &mut self.volume_attachments),
            ("namespaces", &mut self.namespaces),
            ("deviceClasses", &mut self.device_classes),
            ("resourceSlices", &mut self.resource_slices),
            ("resourceClaims", &mut self.resource_claims),
            ("deviceTaintRules", &mut self.device_taint_rules),
        ]
    }
}

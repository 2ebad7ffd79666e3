//! Persistent volumes.

use crate::labels;
use dovetail_model::SelectorTerm;
use serde::{Deserialize, Deserializer};

use super::affinity::NodeTermsJson;
use super::in_tree::{DiskJson, InTreePlugin, VolumeSource};
use super::json::{nullable, units};
use super::meta::Meta;

/// A volume, bound or free.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PersistentVolume {
    /// Name, identity, zone labels.
    pub meta: Meta,
    /// Alternatives of the node affinity; `None` if every node reaches it.
    pub node_affinity: Option<Vec<Vec<SelectorTerm>>>,
    /// What it is for its CSI driver; `None` if no driver attaches it.
    pub source: Option<VolumeSource>,
    /// The plugin it was written for, if a CSI driver has taken over.
    pub in_tree: Option<InTreePlugin>,
    /// Storage class; empty if none.
    pub class: Box<str>,
    /// Size in bytes; `None` if it does not say.
    pub capacity_bytes: Option<i64>,
    /// Access modes that it offers.
    pub access_modes: Box<[Box<str>]>,
    /// `Block` or `Filesystem`.
    pub volume_mode: Box<str>,
    /// Class of attributes; empty if none.
    pub attributes_class: Box<str>,
    /// The claim that it is bound to or kept for.
    pub claim: Option<ClaimReference>,
    /// Whether it is free to be bound.
    pub available: bool,
}

/// The claim that a volume names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClaimReference {
    #[serde(deserialize_with = "nullable")]
    pub namespace: Box<str>,
    #[serde(deserialize_with = "nullable")]
    pub name: Box<str>,
    /// Identity; empty while the claim only is foreseen.
    #[serde(deserialize_with = "nullable")]
    pub uid: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct VolumeJson {
    #[serde(deserialize_with = "nullable")]
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: SpecJson,
    #[serde(deserialize_with = "nullable")]
    status: StatusJson,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecJson {
    node_affinity: Option<AffinityJson>,
    csi: Option<CsiJson>,
    aws_elastic_block_store: Option<DiskJson>,
    azure_disk: Option<DiskJson>,
    cinder: Option<DiskJson>,
    gce_persistent_disk: Option<DiskJson>,
    portworx_volume: Option<DiskJson>,
    #[serde(deserialize_with = "nullable")]
    storage_class_name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    capacity: StorageJson,
    #[serde(deserialize_with = "nullable")]
    access_modes: Vec<Box<str>>,
    #[serde(deserialize_with = "nullable")]
    volume_mode: Box<str>,
    #[serde(deserialize_with = "nullable")]
    volume_attributes_class_name: Box<str>,
    claim_ref: Option<ClaimReference>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct StorageJson {
    #[serde(deserialize_with = "units")]
    pub(super) storage: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AffinityJson {
    required: Option<NodeTermsJson>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CsiJson {
    #[serde(deserialize_with = "nullable")]
    driver: Box<str>,
    #[serde(deserialize_with = "nullable")]
    volume_handle: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StatusJson {
    #[serde(deserialize_with = "nullable")]
    phase: Box<str>,
}

impl SpecJson {
    fn source(&self) -> (Option<VolumeSource>, Option<InTreePlugin>) {
        use InTreePlugin::{AwsEbs, AzureDisk, Cinder, GcePd, Portworx};
        if let Some(csi) = &self.csi {
            let source =
                VolumeSource { driver: csi.driver.clone(), handle: csi.volume_handle.clone() };
            return (Some(source), None);
        }
        let in_tree = [
            (&self.aws_elastic_block_store, AwsEbs),
            (&self.azure_disk, AzureDisk),
            (&self.cinder, Cinder),
            (&self.gce_persistent_disk, GcePd),
            (&self.portworx_volume, Portworx),
        ];
        match in_tree.into_iter().find_map(|(disk, plugin)| Some((disk.as_ref()?, plugin))) {
            Some((disk, plugin)) => (Some(disk.source(plugin)), Some(plugin)),
            None => (None, None),
        }
    }
}

impl<'de> Deserialize<'de> for PersistentVolume {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let VolumeJson { metadata, spec, status } = VolumeJson::deserialize(input)?;
        let (source, in_tree) = spec.source();
        // As for claims, the annotation is older than the field and wins.
        let annotated = metadata.annotations.get(labels::OLD_STORAGE_CLASS);
        let class = annotated.map_or(spec.storage_class_name, Box::from);
        Ok(Self {
            node_affinity: spec.node_affinity.and_then(|a| a.required).map(NodeTermsJson::read),
            source,
            in_tree,
            class,
            capacity_bytes: spec.capacity.storage,
            access_modes: spec.access_modes.into(),
            volume_mode: spec.volume_mode,
            attributes_class: spec.volume_attributes_class_name,
            claim: spec.claim_ref,
            available: &*status.phase == "Available",
            meta: metadata,
        })
    }
}

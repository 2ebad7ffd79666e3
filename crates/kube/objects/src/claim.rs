//! Claims of persistent volumes.

use crate::labels;
use serde::{Deserialize, Deserializer};

use super::json::nullable;
use super::label_selector::LabelSelector;
use super::meta::Meta;
use super::persistent_volume::StorageJson;

/// Annotation by which a scheduler tells a provisioner for which node a claim is to get its volume.
/// A provisioner that cannot make one there takes it back.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// A claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VolumeClaim {
    /// Name, identity, the pod that controls it.
    pub meta: Meta,
    /// The volume it is or is to be bound to; empty if none.
    pub volume: Box<str>,
    pub bind_completed: bool,
    /// The node that a scheduler chose for it before it has a volume; empty if none.
    pub selected_node: Option<Box<str>>,
    /// Storage class; empty if none.
    pub class: Box<str>,
    /// Size asked for in bytes; `None` if it does not say.
    pub request_bytes: Option<i64>,
    /// Access modes asked for.
    pub access_modes: Box<[Box<str>]>,
    /// `Block` or `Filesystem`.
    pub volume_mode: Box<str>,
    /// Class of attributes; empty if none.
    pub attributes_class: Box<str>,
    /// Labels that its volume must have; absent is any.
    pub selector: Option<LabelSelector>,
    /// Whether its volume is gone for good.
    pub lost: bool,
}

impl VolumeClaim {
    /// Whether it is bound and binding is complete.
    pub fn is_bound(&self) -> bool {
        !self.volume.is_empty() && self.bind_completed
    }

    /// Whether only one pod of the cluster may use it at a time.
    pub fn is_for_one_pod(&self) -> bool {
        self.access_modes.iter().any(|mode| &**mode == "ReadWriteOncePod")
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClaimJson {
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
    #[serde(deserialize_with = "nullable")]
    volume_name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    storage_class_name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    resources: ResourcesJson,
    #[serde(deserialize_with = "nullable")]
    access_modes: Vec<Box<str>>,
    #[serde(deserialize_with = "nullable")]
    volume_mode: Box<str>,
    #[serde(deserialize_with = "nullable")]
    volume_attributes_class_name: Box<str>,
    selector: Option<LabelSelector>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResourcesJson {
    #[serde(deserialize_with = "nullable")]
    requests: StorageJson,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StatusJson {
    #[serde(deserialize_with = "nullable")]
    phase: Box<str>,
}

impl<'de> Deserialize<'de> for VolumeClaim {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let ClaimJson { metadata, spec, status } = ClaimJson::deserialize(input)?;
        let annotation = |key: &str| metadata.annotations.get(key).map(Box::<str>::from);
        let class = annotation(labels::OLD_STORAGE_CLASS);
        Ok(Self {
            volume: spec.volume_name,
            bind_completed: annotation(labels::BIND_COMPLETED).is_some(),
            selected_node: annotation(SELECTED_NODE),
            class: class.unwrap_or(spec.storage_class_name),
            request_bytes: spec.resources.requests.storage,
            access_modes: spec.access_modes.into(),
            volume_mode: spec.volume_mode,
            attributes_class: spec.volume_attributes_class_name,
            selector: spec.selector,
            lost: &*status.phase == "Lost",
            meta: metadata,
        })
    }
}

//! What CSI drivers say about themselves, about nodes, about room and about attached volumes.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use super::json::{nullable, units};
use super::label_selector::LabelSelector;
use super::meta::Meta;

/// A CSI driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsiDriver {
    pub meta: Meta,
    /// Whether the driver publishes where it has room, and pods must go where it has.
    pub tracks_capacity: bool,
    /// Whether pods that use it may only go to nodes that run it.
    pub must_be_on_node: bool,
}

/// The CSI drivers of one node, under the node's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsiNode {
    pub meta: Meta,
    /// Drivers that run there, with the most volumes each can attach (`None`: no limit).
    pub drivers: BTreeMap<Box<str>, Option<i64>>,
}

/// Room for volumes of one storage class in one part of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StorageCapacity {
    #[serde(rename = "metadata")]
    pub meta: Meta,
    #[serde(rename = "storageClassName", deserialize_with = "nullable")]
    pub class: Box<str>,
    /// Nodes that reach it, by labels; absent is none.
    #[serde(rename = "nodeTopology")]
    pub nodes: LabelSelector,
    /// All room in bytes; `None` if it does not say.
    #[serde(rename = "capacity", deserialize_with = "units")]
    pub capacity_bytes: Option<i64>,
    /// Largest single volume in bytes; `None` if it does not say.
    #[serde(rename = "maximumVolumeSize", deserialize_with = "units")]
    pub largest_volume_bytes: Option<i64>,
}

impl StorageCapacity {
    /// Whether a volume of this size can be made there.
    pub fn has_room_for(&self, size_bytes: i64) -> bool {
        let limit = self.largest_volume_bytes.or(self.capacity_bytes);
        limit.is_some_and(|limit_bytes| limit_bytes >= size_bytes)
    }
}

/// A volume that is attached, or about to be, to a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeAttachment {
    pub meta: Meta,
    /// The driver that attaches it.
    pub driver: Box<str>,
    pub node: Box<str>,
    /// Name of the persistent volume; empty for one written into the attachment itself.
    pub volume: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DriverJson {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: DriverSpecJson,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DriverSpecJson {
    #[serde(deserialize_with = "nullable")]
    storage_capacity: bool,
    #[serde(deserialize_with = "nullable")]
    prevent_pod_scheduling_if_missing: bool,
}

impl<'de> Deserialize<'de> for CsiDriver {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let DriverJson { metadata, spec } = DriverJson::deserialize(input)?;
        Ok(Self {
            meta: metadata,
            tracks_capacity: spec.storage_capacity,
            must_be_on_node: spec.prevent_pod_scheduling_if_missing,
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeJson {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: NodeSpecJson,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeSpecJson {
    #[serde(deserialize_with = "nullable")]
    drivers: Vec<NodeDriverJson>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeDriverJson {
    #[serde(deserialize_with = "nullable")]
    name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    allocatable: CountJson,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CountJson {
    count: Option<i64>,
}

impl<'de> Deserialize<'de> for CsiNode {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let NodeJson { metadata, spec } = NodeJson::deserialize(input)?;
        let drivers = spec.drivers.into_iter();
        let drivers = drivers.map(|driver| (driver.name, driver.allocatable.count)).collect();
        Ok(Self { meta: metadata, drivers })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AttachmentJson {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: AttachmentSpecJson,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AttachmentSpecJson {
    #[serde(deserialize_with = "nullable")]
    attacher: Box<str>,
    #[serde(deserialize_with = "nullable")]
    node_name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    source: SourceJson,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SourceJson {
    #[serde(deserialize_with = "nullable")]
    persistent_volume_name: Box<str>,
}

impl<'de> Deserialize<'de> for VolumeAttachment {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let AttachmentJson { metadata, spec } = AttachmentJson::deserialize(input)?;
        Ok(Self {
            meta: metadata,
            driver: spec.attacher,
            node: spec.node_name,
            volume: spec.source.persistent_volume_name,
        })
    }
}

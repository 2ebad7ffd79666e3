//! Devices that drivers offer.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::units;
use crate::json::{Amount, nullable};
use crate::meta::Meta;

/// Devices of one driver and one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "SliceJson")]
pub struct ResourceSlice {
    /// Name and identity.
    pub meta: Meta,
    pub driver: Box<str>,
    /// The node they are in; empty if several nodes reach them.
    pub node: Box<str>,
    pub pool: DevicePool,
    pub devices: Vec<OfferedDevice>,
}

/// The pool of which a slice is a part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DevicePool {
    /// Its name, unique for the driver.
    #[serde(deserialize_with = "nullable")]
    pub name: Box<str>,
    /// Slices of an older generation are out of date.
    #[serde(deserialize_with = "nullable")]
    pub generation: i64,
    /// Slices of the pool in this generation.
    #[serde(rename = "resourceSliceCount", deserialize_with = "nullable")]
    pub slices: i64,
}

/// A device as its driver offers it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferedDevice {
    /// Its name, unique in the pool.
    pub name: Box<str>,
    /// The node it is in; empty if several nodes reach it.
    pub node: Box<str>,
    /// Attributes that are texts, by their names as the driver writes them.
    pub attributes: BTreeMap<Box<str>, Box<str>>,
    /// Capacities in whole units, by their names as the driver writes them.
    pub capacity: BTreeMap<Box<str>, i64>,
    /// Whether several claims may have it at a time.
    pub is_for_several: bool,
    /// Whether a taint of its own keeps it from being allocated.
    pub is_tainted: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SliceJson {
    #[serde(deserialize_with = "nullable")]
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: SpecJson,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecJson {
    #[serde(deserialize_with = "nullable")]
    driver: Box<str>,
    #[serde(deserialize_with = "nullable")]
    node_name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    pool: DevicePool,
    #[serde(deserialize_with = "nullable")]
    devices: Vec<DeviceJson>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DeviceJson {
    #[serde(deserialize_with = "nullable")]
    name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    node_name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    attributes: BTreeMap<Box<str>, AttributeJson>,
    #[serde(deserialize_with = "nullable")]
    capacity: BTreeMap<Box<str>, CapacityJson>,
    #[serde(deserialize_with = "nullable")]
    allow_multiple_allocations: bool,
    #[serde(deserialize_with = "nullable")]
    taints: Vec<TaintJson>,
    /// All but the name, in `v1beta1`.
    basic: Option<Box<DeviceJson>>,
}

/// A value of one of several types, of which texts matter here.
#[derive(Default, Deserialize)]
#[serde(default)]
struct AttributeJson {
    string: Option<Box<str>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CapacityJson {
    value: Option<Amount>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TaintJson {
    #[serde(deserialize_with = "nullable")]
    effect: Box<str>,
}

impl From<SliceJson> for ResourceSlice {
    fn from(SliceJson { metadata, spec }: SliceJson) -> Self {
        let SpecJson { driver, node_name, pool, devices } = spec;
        let devices = devices.into_iter().map(|device| device.read(&node_name)).collect();
        Self { meta: metadata, driver, node: node_name, pool, devices }
    }
}

impl DeviceJson {
    fn read(mut self, node: &str) -> OfferedDevice {
        if let Some(basic) = self.basic.take() {
            self = Self { name: self.name, ..*basic };
        }
        let texts = self.attributes.into_iter().filter_map(|(name, of)| Some((name, of.string?)));
        let keeps_away = |taint: &TaintJson| matches!(&*taint.effect, "NoSchedule" | "NoExecute");
        OfferedDevice {
            name: self.name,
            node: if self.node_name.is_empty() { node.into() } else { self.node_name },
            attributes: texts.filter(|(_, text)| !text.is_empty()).collect(),
            capacity: units(self.capacity.into_iter().map(|(name, of)| (name, of.value))),
            is_for_several: self.allow_multiple_allocations,
            is_tainted: self.taints.iter().any(keeps_away),
        }
    }
}

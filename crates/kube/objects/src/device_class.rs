//! Device classes and the devices that drivers offer (dynamic resource allocation).

use serde::{Deserialize, Deserializer};

use super::json::nullable;
use super::meta::Meta;

/// A class of devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceClass {
    /// Name and identity.
    pub meta: Meta,
    /// The extended resource by which pods may ask for a device of this class; empty if none.
    pub extended_resource: Box<str>,
}

/// Devices that a driver offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceSlice {
    /// Name and identity.
    pub meta: Meta,
    /// The driver.
    pub driver: Box<str>,
    /// The node they are in; empty if several nodes reach them.
    pub node: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClassJson {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: ClassSpecJson,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClassSpecJson {
    #[serde(deserialize_with = "nullable")]
    extended_resource_name: Box<str>,
}

impl<'de> Deserialize<'de> for DeviceClass {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let ClassJson { metadata, spec } = ClassJson::deserialize(input)?;
        Ok(Self { meta: metadata, extended_resource: spec.extended_resource_name })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SliceJson {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: SliceSpecJson,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SliceSpecJson {
    #[serde(deserialize_with = "nullable")]
    driver: Box<str>,
    #[serde(deserialize_with = "nullable")]
    node_name: Box<str>,
}

impl<'de> Deserialize<'de> for ResourceSlice {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let SliceJson { metadata, spec } = SliceJson::deserialize(input)?;
        Ok(Self { meta: metadata, driver: spec.driver, node: spec.node_name })
    }
}

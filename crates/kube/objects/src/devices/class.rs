//! Classes of devices.

use serde::Deserialize;
use serde_json::Value;

use super::{SelectorJson, expressions};
use crate::json::nullable;
use crate::meta::Meta;

/// A class of devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "ClassJson")]
pub struct DeviceClass {
    pub meta: Meta,
    /// The extended resource by which pods may ask for a device of this class; empty if none.
    pub extended_resource: Box<str>,
    /// CEL expressions that all of its devices meet; empty where a selector is of another kind.
    pub selectors: Vec<String>,
    /// What drivers are told of devices of this class, as it is written.
    pub config: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClassJson {
    #[serde(deserialize_with = "nullable")]
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: SpecJson,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecJson {
    #[serde(deserialize_with = "nullable")]
    extended_resource_name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    selectors: Vec<SelectorJson>,
    #[serde(deserialize_with = "nullable")]
    config: Vec<Value>,
}

impl From<ClassJson> for DeviceClass {
    fn from(ClassJson { metadata, spec }: ClassJson) -> Self {
        Self {
            meta: metadata,
            extended_resource: spec.extended_resource_name,
            selectors: expressions(spec.selectors),
            config: spec.config,
        }
    }
}

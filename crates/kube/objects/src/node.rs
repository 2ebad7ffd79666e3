//! Nodes.

use dovetail_model::{Images, Resources, Taint, TaintEffect};
use serde::{Deserialize, Deserializer};

use super::images::{ImageJson, on_node};
use super::json::nullable;
use super::meta::Meta;
use super::requests::RequestAmounts;

/// A node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Name, identity, labels.
    pub meta: Meta,
    /// What pods may hold.
    pub allocatable: Resources,
    /// What is built in.
    pub capacity: Resources,
    pub taints: Vec<Taint>,
    pub unschedulable: bool,
    /// `spec.providerID`; empty if the cloud provider has not set it.
    pub provider_id: Box<str>,
    /// Images that it has, as far as it tells.
    pub images: Images,
    /// Features that it declares, ascending.
    pub declared_features: Box<[Box<str>]>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeJson {
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
    taints: Vec<TaintJson>,
    #[serde(deserialize_with = "nullable")]
    unschedulable: bool,
    #[serde(rename = "providerID", deserialize_with = "nullable")]
    provider_id: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TaintJson {
    #[serde(deserialize_with = "nullable")]
    key: String,
    #[serde(deserialize_with = "nullable")]
    value: String,
    #[serde(deserialize_with = "nullable")]
    effect: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StatusJson {
    #[serde(deserialize_with = "nullable")]
    allocatable: RequestAmounts,
    #[serde(deserialize_with = "nullable")]
    capacity: RequestAmounts,
    #[serde(deserialize_with = "nullable")]
    images: Vec<ImageJson>,
    #[serde(deserialize_with = "nullable")]
    declared_features: Vec<Box<str>>,
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let NodeJson { metadata, spec, status } = NodeJson::deserialize(input)?;
        // An effect that is not known keeps no pod away, as for kube-scheduler.
        let taint = |taint: TaintJson| {
            let effect = TaintEffect::by_name(&taint.effect)?;
            Some(Taint { key: taint.key, value: taint.value, effect })
        };
        let mut declared_features = status.declared_features;
        declared_features.sort();
        declared_features.dedup();
        Ok(Self {
            meta: metadata,
            allocatable: status.allocatable.resources(),
            capacity: status.capacity.resources(),
            taints: spec.taints.into_iter().filter_map(taint).collect(),
            unschedulable: spec.unschedulable,
            provider_id: spec.provider_id,
            images: on_node(status.images),
            declared_features: declared_features.into(),
        })
    }
}

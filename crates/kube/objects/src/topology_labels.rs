//! Topologies of Kueue (`kueue.x-k8s.io/v1beta2`) and of KAI (`kai.scheduler/v1alpha1`), which are
//! written alike: node labels, from the widest level to the narrowest.

use serde::{Deserialize, Deserializer};

use super::json::nullable;
use super::meta::Meta;

/// The labels that a Topology names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopologyLabels {
    pub meta: Meta,
    /// Node labels, widest level first.
    pub labels: Box<[Box<str>]>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TopologyJson {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: SpecJson,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SpecJson {
    #[serde(deserialize_with = "nullable")]
    levels: Vec<LevelJson>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LevelJson {
    #[serde(deserialize_with = "nullable")]
    node_label: Box<str>,
}

impl<'de> Deserialize<'de> for TopologyLabels {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let TopologyJson { metadata, spec } = TopologyJson::deserialize(input)?;
        let labels = spec.levels.into_iter().map(|level| level.node_label);
        Ok(Self { meta: metadata, labels: labels.collect() })
    }
}

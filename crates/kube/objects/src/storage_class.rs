//! Storage classes.

use dovetail_model::SelectorTerm;
use dovetail_model::requirement::Operator;
use serde::{Deserialize, Deserializer};

use super::json::nullable;
use super::meta::Meta;

/// A storage class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StorageClass {
    pub meta: Meta,
    /// Who makes its volumes.
    pub provisioner: Box<str>,
    /// Whether a volume is bound only when a pod that uses it is placed; `None` if it does not say.
    pub waits_for_consumer: Option<bool>,
    /// Where volumes can be made: alternatives of terms; `None` is everywhere.
    pub allowed_topologies: Option<Vec<Vec<SelectorTerm>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClassJson {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    provisioner: Box<str>,
    volume_binding_mode: Option<Box<str>>,
    #[serde(deserialize_with = "nullable")]
    allowed_topologies: Vec<TopologyJson>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TopologyJson {
    #[serde(deserialize_with = "nullable")]
    match_label_expressions: Vec<LabelJson>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LabelJson {
    #[serde(deserialize_with = "nullable")]
    key: String,
    #[serde(deserialize_with = "nullable")]
    values: Vec<String>,
}

impl TopologyJson {
    /// Alternatives without a term, or without a value in one, are met nowhere.
    fn read(self) -> Option<Vec<SelectorTerm>> {
        let usable = |term: &LabelJson| !term.values.is_empty();
        let terms = self.match_label_expressions;
        let readable = !terms.is_empty() && terms.iter().all(usable);
        let term = |term: LabelJson| SelectorTerm {
            key: term.key,
            operator: Operator::In,
            values: term.values,
        };
        readable.then(|| terms.into_iter().map(term).collect())
    }
}

impl<'de> Deserialize<'de> for StorageClass {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let class = ClassJson::deserialize(input)?;
        let topologies = class.allowed_topologies;
        let mode = class.volume_binding_mode;
        Ok(Self {
            meta: class.metadata,
            provisioner: class.provisioner,
            waits_for_consumer: mode.map(|mode| &*mode == "WaitForFirstConsumer"),
            allowed_topologies: (!topologies.is_empty())
                .then(|| topologies.into_iter().filter_map(TopologyJson::read).collect()),
        })
    }
}

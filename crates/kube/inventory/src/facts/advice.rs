//! What recommenders and topology exporters say: VerticalPodAutoscaler, NodeResourceTopology.

use std::collections::BTreeMap;

use dovetail_facts::{Advice, NumaPolicy, ObjectRef, Recommended};
use dovetail_objects::json::{JsonQuantity, nullable};
use serde::Deserialize;

use super::lenient::lenient;
use crate::dump::{RawObject, Skipped};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Recommender {
    #[serde(deserialize_with = "nullable")]
    spec: Spec,
    #[serde(deserialize_with = "nullable")]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "nullable")]
    target_ref: Target,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Target {
    #[serde(deserialize_with = "nullable")]
    kind: String,
    #[serde(deserialize_with = "nullable")]
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "nullable")]
    recommendation: Recommendation,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Recommendation {
    #[serde(deserialize_with = "nullable")]
    container_recommendations: Vec<OfContainer>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OfContainer {
    #[serde(deserialize_with = "nullable")]
    container_name: String,
    #[serde(deserialize_with = "nullable")]
    target: BTreeMap<String, JsonQuantity>,
    #[serde(deserialize_with = "nullable")]
    upper_bound: BTreeMap<String, JsonQuantity>,
}

/// Reads a VerticalPodAutoscaler of any version: the owner that it is about, and what it recommends
/// so far.
pub(super) fn recommender(raw: &RawObject<'_>) -> Result<(ObjectRef, Advice), Skipped> {
    let Recommender { spec, status } = lenient(raw)?;
    let amounts = |written: BTreeMap<String, JsonQuantity>| -> BTreeMap<String, i64> {
        let amount = |(name, amount): (String, JsonQuantity)| {
            let number = if name == "cpu" { amount.0.to_milli() } else { amount.0.to_units() };
            (name, number)
        };
        written.into_iter().map(amount).collect()
    };
    let one = |of: OfContainer| {
        let recommended =
            Recommended { target: amounts(of.target), upper: amounts(of.upper_bound) };
        (of.container_name, recommended)
    };
    let containers = status.recommendation.container_recommendations.into_iter().map(one);
    let owner = ObjectRef::new(&spec.target_ref.kind, raw.namespace, &spec.target_ref.name);
    let by = ObjectRef::new(raw.kind, raw.namespace, raw.name);
    Ok((owner, Advice { by, containers: containers.collect() }))
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Topology {
    #[serde(deserialize_with = "nullable")]
    topology_policies: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    attributes: Vec<Attribute>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Attribute {
    #[serde(deserialize_with = "nullable")]
    name: String,
    #[serde(deserialize_with = "nullable")]
    value: String,
}

/// Reads the kubelet's policy from a NodeResourceTopology, which is called like its node: an
/// attribute in `v1alpha2`, the first of a list before.
pub(super) fn numa_policy(raw: &RawObject<'_>) -> Result<Option<NumaPolicy>, Skipped> {
    let Topology { topology_policies, attributes } = lenient(raw)?;
    let named = attributes.iter().find(|attribute| attribute.name == "topologyManagerPolicy");
    let text = named.map(|named| &named.value).or(topology_policies.first());
    let text = text.map(|text| text.to_lowercase().replace('-', "")).unwrap_or_default();
    Ok(match text.as_str() {
        "none" => Some(NumaPolicy::None),
        _ if text.starts_with("besteffort") => Some(NumaPolicy::BestEffort),
        _ if text.starts_with("restricted") => Some(NumaPolicy::Restricted),
        _ if text.starts_with("singlenumanode") => Some(NumaPolicy::SingleNumaNode),
        _ => None,
    })
}

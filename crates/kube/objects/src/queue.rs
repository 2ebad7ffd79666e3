//! Queues (`dovetail.dev/v1alpha1`): what teams are given.

use std::collections::BTreeMap;

use dovetail_model::Quantity;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::json::{Amount, nullable};
use super::label_selector::LabelSelector;
use super::meta::Meta;

/// A queue, as its object says.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// Name and identity.
    pub meta: Meta,
    /// The queue above it; empty if it hangs below the root.
    pub parent: Box<str>,
    /// What it and all below it have for themselves, by resource.
    pub guaranteed: BTreeMap<Box<str>, Quantity>,
    /// What it and all below it never hold more of, by resource.
    pub limit: BTreeMap<Box<str>, Quantity>,
    /// Share of what is not enough for all.
    pub weight: u32,
    /// Whether it may hold more than it is guaranteed while that is free.
    pub borrows: bool,
    /// Namespaces whose pods it takes; nothing if it does not say.
    pub namespaces: LabelSelector,
    /// Its status as it was last written.
    pub status: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct QueueJson {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: SpecJson,
    status: Value,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecJson {
    #[serde(deserialize_with = "nullable")]
    parent: Box<str>,
    #[serde(deserialize_with = "nullable")]
    guaranteed: BTreeMap<Box<str>, Amount>,
    #[serde(deserialize_with = "nullable")]
    limit: BTreeMap<Box<str>, Amount>,
    weight: Option<u32>,
    #[serde(deserialize_with = "nullable")]
    borrowing: Borrowing,
    namespace_selector: LabelSelector,
}

#[derive(Clone, Copy, Default, Deserialize)]
enum Borrowing {
    #[default]
    Never,
    WhenFree,
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let QueueJson { metadata, spec, status } = QueueJson::deserialize(input)?;
        let amounts = |all: BTreeMap<Box<str>, Amount>| {
            all.into_iter().map(|(name, amount)| (name, amount.0)).collect()
        };
        Ok(Self {
            meta: metadata,
            parent: spec.parent,
            guaranteed: amounts(spec.guaranteed),
            limit: amounts(spec.limit),
            weight: spec.weight.unwrap_or(1),
            borrows: matches!(spec.borrowing, Borrowing::WhenFree),
            namespaces: spec.namespace_selector,
            status,
        })
    }
}

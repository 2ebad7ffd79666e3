//! Queues (`dovetail.dev/v1alpha1`): what teams are given.

use std::collections::BTreeMap;

use dovetail_model::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::json::{JsonQuantity, nullable};
use super::label_selector::LabelSelector;
use super::meta::Meta;
use super::structural::structural;

/// A queue's amounts name at most this many resources.
const MOST_RESOURCES: u32 = 32;

/// Whole numbers with units, the first above zero.
const HALF_LIFE: &str = "^[1-9][0-9]*[smhd]([0-9]+[smhd])*$";

/// A queue, as its object says.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    pub meta: Meta,
    /// The queue above it; empty if it hangs below the root.
    pub parent: Box<str>,
    /// What it and all below it have for themselves, by resource.
    pub guaranteed: BTreeMap<Box<str>, Quantity>,
    /// What it and all below it never hold more of, by resource.
    pub limit: BTreeMap<Box<str>, Quantity>,
    /// GPUs of which it and all below it never hold more, by the model that labels of nodes name.
    pub limit_by_model: BTreeMap<Box<str>, Quantity>,
    /// Share of what is not enough for all.
    pub weight: u32,
    /// Higher is given first of what is left beyond quotas, where the order divides the cluster.
    pub priority: i32,
    /// Whether it may hold more than it is guaranteed while that is free; `None` if it does not
    /// say.
    pub borrows: Option<bool>,
    /// After so long, what it has used counts half, as a duration; empty where it does not say.
    pub half_life: Box<str>,
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

// What people write in `spec`. Its schema is derived from it: the comments of its fields are what
// `kubectl explain queue.spec` prints.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.guaranteed) || !has(self.limit) || self.guaranteed.all(name, \
             !(name in self.limit) || !isQuantity(string(self.guaranteed[name])) || \
             !isQuantity(string(self.limit[name])) || \
             quantity(string(self.guaranteed[name])).compareTo(quantity(string(self.limit[name]))) <= 0)",
    "message": "spec.guaranteed: must not exceed spec.limit for any resource",
}]))]
struct SpecJson {
    /// The parent queue. Without one, the queue is at the top level.
    #[serde(deserialize_with = "nullable")]
    #[schemars(length(min = 1, max = 63))]
    parent: Box<str>,
    /// Quota by resource, as in a ResourceQuota: reserved for the queue and its descendants, which
    /// use no more than this unless the queue borrows.
    #[serde(deserialize_with = "nullable")]
    #[schemars(extend(
        "maxProperties" = MOST_RESOURCES,
        "x-kubernetes-validations" = not_negative("guaranteed")
    ))]
    guaranteed: BTreeMap<Box<str>, JsonQuantity>,
    /// Maximum usage of the queue and its descendants, by resource.
    #[serde(deserialize_with = "nullable")]
    #[schemars(extend(
        "maxProperties" = MOST_RESOURCES,
        "x-kubernetes-validations" = not_negative("limit")
    ))]
    limit: BTreeMap<Box<str>, JsonQuantity>,
    /// Maximum number of GPUs of the queue and its descendants, by GPU model, as in the node label
    /// `nvidia.com/gpu.product`. A pod that can use several models counts for the model it gets.
    #[serde(deserialize_with = "nullable")]
    #[schemars(extend(
        "maxProperties" = MOST_RESOURCES,
        "x-kubernetes-validations" = not_negative("limitByModel")
    ))]
    limit_by_model: BTreeMap<Box<str>, JsonQuantity>,
    /// Share of scarce resources: a queue of weight 2 gets twice as much as one of weight 1.
    #[schemars(with = "i32", range(min = 1, max = 1000), extend("default" = 1))]
    weight: Option<u32>,
    /// Priority of the queue over its siblings with the preset `kai` of the scheduling order
    /// `dovetail`: resources beyond the quotas go to the siblings of the highest priority first.
    /// Other orders ignore it.
    #[schemars(with = "i32", extend("default" = 0))]
    priority: Option<i32>,
    /// Whether the queue may use more than its quota while resources are free. Default: `WhenFree`
    /// if the scheduler reclaims borrowed quota (scheduling order `dovetail` with the preset `fair`
    /// or `kai`), else `Never`.
    #[schemars(with = "Borrowing")]
    borrowing: Option<Borrowing>,
    /// Time after which past usage of the queue and its descendants counts half with the
    /// scheduling order `dovetail`, such as `12h` or `7d`. Default: the value of the parent queue,
    /// else the value of the preset, which is a week.
    #[serde(deserialize_with = "nullable")]
    #[schemars(length(min = 2, max = 20), regex(pattern = HALF_LIFE))]
    half_life: Box<str>,
    /// Labels of the namespaces whose pods the queue accepts; {} selects all namespaces. Without
    /// it, the default queue accepts all, and other queues accept none.
    namespace_selector: LabelSelector,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
enum Borrowing {
    Never,
    WhenFree,
}

/// The rule that no amount of a field is below zero.
fn not_negative(field: &str) -> Value {
    json!([{
        "rule": "self.all(name, !isQuantity(string(self[name])) || \
                 !quantity(string(self[name])).isLessThan(quantity(\"0\")))",
        "message": format!("spec.{field}: amounts must not be negative"),
    }])
}

/// The schema of a queue's `spec` for its CustomResourceDefinition.
pub fn queue_spec_schema() -> Value {
    structural::<SpecJson>()
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let QueueJson { metadata, spec, status } = QueueJson::deserialize(input)?;
        let amounts = |all: BTreeMap<Box<str>, JsonQuantity>| {
            all.into_iter().map(|(name, amount)| (name, amount.0)).collect()
        };
        Ok(Self {
            meta: metadata,
            parent: spec.parent,
            guaranteed: amounts(spec.guaranteed),
            limit: amounts(spec.limit),
            limit_by_model: amounts(spec.limit_by_model),
            weight: spec.weight.unwrap_or(1),
            priority: spec.priority.unwrap_or(0),
            borrows: spec.borrowing.map(|borrowing| matches!(borrowing, Borrowing::WhenFree)),
            half_life: spec.half_life,
            namespaces: spec.namespace_selector,
            status,
        })
    }
}

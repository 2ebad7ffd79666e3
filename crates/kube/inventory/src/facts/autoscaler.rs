//! Autoscalers: what a HorizontalPodAutoscaler scales and by what, and which of those that were
//! read count.

use std::collections::BTreeSet;

use dovetail_facts::{Autoscaler, ObjectRef};
use dovetail_objects::json::nullable;
use serde::Deserialize;

use super::api_group::group_of;
use super::detail::MetaDetail;
use super::lenient::lenient;
use super::owner::Owners;
use super::scaled_object;
use crate::dump::{RawObject, Skipped};

/// What an autoscaler that names no metric looks at.
const DEFAULT: &str = "cpu";

/// Reads an autoscaler of a kind.
pub(super) type Reader = fn(&RawObject<'_>) -> Result<ReadAutoscaler, Skipped>;

/// Kinds of autoscalers with their groups, and how they are read.
const KINDS: [(&str, &str, Reader); 2] = [
    ("HorizontalPodAutoscaler", "autoscaling", read),
    ("ScaledObject", "keda.sh", scaled_object::read),
];

/// How an object is read, if it is an autoscaler.
pub(super) fn reader(kind: &str, api_version: &str) -> Option<Reader> {
    let mut kinds = KINDS.iter();
    let of_group = group_of(api_version);
    let (.., reader) = kinds.find(|(name, group, _)| *name == kind && *group == of_group)?;
    Some(*reader)
}

/// An autoscaler, and what decides whether it counts.
pub(super) struct ReadAutoscaler {
    pub(super) autoscaler: Autoscaler,
    /// The group of what it scales, if it says.
    pub(super) group: Option<String>,
    /// What controls it: another autoscaler has made it.
    pub(super) made_by: Option<ObjectRef>,
}

/// Those that scale an object of their own: of one that another autoscaler has made, that one
/// counts, and an object of another group is another object.
pub(super) fn counted(read: Vec<ReadAutoscaler>, owners: &Owners) -> Vec<Autoscaler> {
    let objects: BTreeSet<ObjectRef> = read.iter().map(|of| of.autoscaler.object.clone()).collect();
    let counts = |of: &ReadAutoscaler| {
        let is_of_group = match &of.group {
            Some(group) => owners.may_be_of_group(&of.autoscaler.scales, group),
            None => true,
        };
        is_of_group && !of.made_by.as_ref().is_some_and(|by| objects.contains(by))
    };
    read.into_iter().filter(counts).map(|of| of.autoscaler).collect()
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    metadata: MetaDetail<'a>,
    #[serde(deserialize_with = "nullable")]
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "nullable")]
    scale_target_ref: Target,
    #[serde(deserialize_with = "nullable")]
    metrics: Vec<Metric>,
    max_replicas: Option<serde_json::Value>,
}

/// What is scaled.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Target {
    #[serde(deserialize_with = "nullable")]
    api_version: String,
    #[serde(deserialize_with = "nullable")]
    pub(super) kind: String,
    #[serde(deserialize_with = "nullable")]
    name: String,
}

impl Target {
    /// The object, which is in the namespace of its autoscaler.
    pub(super) fn object(&self, namespace: &str) -> ObjectRef {
        ObjectRef::new(&self.kind, namespace, &self.name)
    }

    /// Its group, if its API version was given.
    pub(super) fn group(&self) -> Option<String> {
        (!self.api_version.is_empty()).then(|| group_of(&self.api_version).to_owned())
    }
}

/// One of the fields is there, by the metric's type.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metric {
    resource: Option<OfResource>,
    container_resource: Option<OfResource>,
    pods: Option<Source>,
    object: Option<Source>,
    external: Option<Source>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OfResource {
    #[serde(deserialize_with = "nullable")]
    name: String,
    #[serde(deserialize_with = "nullable")]
    target: MetricTarget,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MetricTarget {
    /// Older versions have none.
    #[serde(rename = "type", deserialize_with = "nullable")]
    of: String,
}

/// Whether a target of this type compares the use with the request, and not with an amount.
pub(super) fn is_of_request(target: &str) -> bool {
    !["AverageValue", "Value"].contains(&target)
}

/// A number of replicas; `None` if it is something else.
pub(super) fn replicas(value: &serde_json::Value) -> Option<u32> {
    value.as_u64().and_then(|count| u32::try_from(count).ok())
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Source {
    #[serde(deserialize_with = "nullable")]
    metric: Named,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    #[serde(deserialize_with = "nullable")]
    name: String,
}

/// Reads a HorizontalPodAutoscaler of any version.
fn read(raw: &RawObject<'_>) -> Result<ReadAutoscaler, Skipped> {
    let Object { metadata, spec } = lenient::<Object<'_>>(raw)?;
    let Spec { scale_target_ref: target, metrics, max_replicas } = spec;
    let mut by_utilization = BTreeSet::new();
    let name = |metric: Metric| {
        if let Some(own) = metric.resource.or(metric.container_resource) {
            if is_of_request(&own.target.of) {
                by_utilization.insert(own.name.clone());
            }
            return own.name;
        }
        let source = metric.pods.or(metric.object).or(metric.external);
        source.unwrap_or_default().metric.name
    };
    let mut metrics: BTreeSet<String> = metrics.into_iter().map(name).collect();
    if metrics.is_empty() {
        metrics.insert(DEFAULT.to_owned());
        by_utilization.insert(DEFAULT.to_owned());
    }
    let autoscaler = Autoscaler {
        object: ObjectRef::new(raw.kind, raw.namespace, raw.name),
        scales: target.object(raw.namespace),
        metrics,
        by_utilization,
        most_replicas: max_replicas.as_ref().and_then(replicas),
    };
    let made_by = metadata.controller();
    let made_by = made_by.map(|by| ObjectRef::new(&by.kind, raw.namespace, &by.name));
    Ok(ReadAutoscaler { autoscaler, group: target.group(), made_by })
}

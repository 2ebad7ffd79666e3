//! What a HorizontalPodAutoscaler scales, and by what.

use std::collections::BTreeSet;

use dovetail_audit::{Autoscaler, ObjectRef};
use dovetail_objects::json::nullable;
use serde::Deserialize;

use super::lenient::lenient;
use crate::dump::{RawObject, Skipped};

/// What an autoscaler that names no metric looks at.
const DEFAULT: &str = "cpu";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
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

#[derive(Default, Deserialize)]
#[serde(default)]
struct Target {
    #[serde(deserialize_with = "nullable")]
    kind: String,
    #[serde(deserialize_with = "nullable")]
    name: String,
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

impl OfResource {
    /// Whether it compares the use with the request, and not with an amount.
    fn is_of_request(&self) -> bool {
        !["AverageValue", "Value"].contains(&self.target.of.as_str())
    }
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

/// Reads an autoscaler of any version.
pub(super) fn read(raw: &RawObject<'_>) -> Result<Autoscaler, Skipped> {
    let Spec { scale_target_ref: target, metrics, max_replicas } = lenient::<Object>(raw)?.spec;
    let mut by_utilization = BTreeSet::new();
    let name = |metric: Metric| {
        if let Some(own) = metric.resource.or(metric.container_resource) {
            if own.is_of_request() {
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
    Ok(Autoscaler {
        object: ObjectRef::new(raw.kind, raw.namespace, raw.name),
        scales: ObjectRef::new(&target.kind, raw.namespace, &target.name),
        metrics,
        by_utilization,
        most_replicas: max_replicas
            .and_then(|most| most.as_u64())
            .and_then(|most| u32::try_from(most).ok()),
    })
}

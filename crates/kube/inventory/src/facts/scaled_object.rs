//! What a ScaledObject of KEDA scales, and by what. KEDA makes a HorizontalPodAutoscaler of it.

use std::collections::BTreeSet;

use dovetail_facts::{Autoscaler, ObjectRef};
use dovetail_objects::json::nullable;
use serde::Deserialize;

use super::autoscaler::{ReadAutoscaler, Target, is_of_request, replicas};
use super::lenient::lenient;
use crate::dump::{RawObject, Skipped};

/// What KEDA scales where a ScaledObject names no kind.
const DEFAULT_KIND: &str = "Deployment";

/// Replicas up to which KEDA scales where a ScaledObject does not say.
const DEFAULT_MOST: u32 = 100;

/// Triggers that look at the use of a resource, called like it.
const RESOURCES: [&str; 2] = ["cpu", "memory"];

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
    triggers: Vec<Trigger>,
    max_replica_count: Option<serde_json::Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Trigger {
    #[serde(rename = "type", deserialize_with = "nullable")]
    of: String,
    #[serde(deserialize_with = "nullable")]
    metric_type: String,
    #[serde(deserialize_with = "nullable")]
    metadata: TriggerMetadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TriggerMetadata {
    /// What `metricType` is in older versions.
    #[serde(rename = "type", deserialize_with = "nullable")]
    of: String,
}

impl Trigger {
    /// Whether it compares the use of a resource with the request.
    fn is_of_request(&self) -> bool {
        let target = [&self.metric_type, &self.metadata.of];
        let target = target.into_iter().find(|of| !of.is_empty());
        RESOURCES.contains(&&*self.of) && target.is_none_or(|target| is_of_request(target))
    }
}

/// Reads a ScaledObject.
pub(super) fn read(raw: &RawObject<'_>) -> Result<ReadAutoscaler, Skipped> {
    let Spec { mut scale_target_ref, triggers, max_replica_count } = lenient::<Object>(raw)?.spec;
    if scale_target_ref.kind.is_empty() {
        scale_target_ref.kind = DEFAULT_KIND.to_owned();
    }
    let by_utilization: BTreeSet<String> =
        triggers.iter().filter(|of| of.is_of_request()).map(|of| of.of.clone()).collect();
    let autoscaler = Autoscaler {
        object: ObjectRef::new(raw.kind, raw.namespace, raw.name),
        scales: scale_target_ref.object(raw.namespace),
        metrics: triggers.into_iter().map(|of| of.of).filter(|of| !of.is_empty()).collect(),
        by_utilization,
        most_replicas: max_replica_count.as_ref().map_or(Some(DEFAULT_MOST), replicas),
    };
    Ok(ReadAutoscaler { autoscaler, group: scale_target_ref.group(), made_by: None })
}

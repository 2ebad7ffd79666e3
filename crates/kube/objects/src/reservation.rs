//! Reservations (`dovetail.dev/v1alpha1`): capacity from one time to another.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use serde_json::{Value, json};

use super::json::{JsonQuantity, nullable};
use super::meta::Meta;
use super::pod::Pod;
use super::structural::structural;

/// Resources of one pod, at most.
const MOST_RESOURCES: u32 = 32;

/// Labels that a node must have, and tolerations, at most.
const MOST_TERMS: u32 = 32;

/// A reservation, as its object says.
#[derive(Clone, Debug, PartialEq)]
pub struct Reservation {
    pub meta: Meta,
    /// Counts the changes of its `spec`.
    pub generation: i64,
    /// Whose jobs may use it; empty if it names none.
    pub queue: Box<str>,
    /// The job that may use it, as namespace/name; empty if it names none.
    pub job: Box<str>,
    /// What each pod needs.
    pub pod: Box<Pod>,
    /// Its requests as they are written, by resource.
    pub requests: Value,
    /// For how many pods.
    pub count: u32,
    /// When it starts, as written.
    pub from: Box<str>,
    /// When it ends, as written.
    pub to: Box<str>,
    /// Its status as it was last written.
    pub status: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReservationJson {
    metadata: Value,
    #[serde(deserialize_with = "nullable")]
    spec: SpecJson,
    status: Value,
}

// What people write in `spec`. Its schema is derived from it: the comments of its fields are what
// `kubectl explain reservation.spec` prints.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["requests", "from", "to"], "x-kubernetes-validations" = [
    {
        "rule": "!has(self.queue) || !has(self.job)",
        "message": "spec: name a queue or a job, not both",
    },
    {"rule": "self.from < self.to", "message": "spec.to: must be later than spec.from"},
]))]
struct SpecJson {
    /// The queue whose jobs may use the capacity. If neither a queue nor a job is set, no pod may
    /// use it.
    #[serde(deserialize_with = "nullable")]
    #[schemars(length(min = 1, max = 63))]
    queue: Box<str>,
    /// The job that may use the capacity: a pod or a gang, as `namespace/name`.
    #[serde(deserialize_with = "nullable")]
    #[schemars(length(min = 3, max = 317), regex(pattern = "^[^/ ]+/[^/ ]+$"))]
    job: Box<str>,
    /// What each pod requests, by resource.
    #[serde(deserialize_with = "nullable")]
    #[schemars(
        with = "BTreeMap<Box<str>, JsonQuantity>",
        extend("maxProperties" = MOST_RESOURCES, "minProperties" = 1)
    )]
    requests: Value,
    /// Labels that the nodes must have.
    #[serde(deserialize_with = "nullable")]
    #[schemars(with = "BTreeMap<Box<str>, Box<str>>", extend("maxProperties" = MOST_TERMS))]
    node_selector: Value,
    /// Taints that the pods tolerate.
    #[serde(deserialize_with = "nullable")]
    #[schemars(with = "Vec<Toleration>", length(max = MOST_TERMS))]
    tolerations: Value,
    /// Number of pods for which capacity is reserved.
    #[schemars(with = "i32", range(min = 1, max = 10_000), extend("default" = 1))]
    count: Option<u32>,
    /// Start time, from which the capacity may be used.
    #[serde(deserialize_with = "nullable")]
    #[schemars(extend("format" = "date-time"))]
    from: Box<str>,
    /// End time. Pods that are running then keep running.
    #[serde(deserialize_with = "nullable")]
    #[schemars(extend("format" = "date-time"))]
    to: Box<str>,
}

// A taint that pods tolerate, as in a pod.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = []))]
#[allow(dead_code, reason = "only its schema is used: it is read as a part of a pod")]
struct Toleration {
    /// The key of the taint; all keys if it is empty.
    key: Box<str>,
    /// `Equal` or `Exists`.
    #[schemars(extend("enum" = ["Equal", "Exists"]))]
    operator: Box<str>,
    /// The value of the taint.
    value: Box<str>,
    /// The effect of the taint; all effects if it is empty.
    #[schemars(extend("enum" = ["", "NoSchedule", "PreferNoSchedule", "NoExecute"]))]
    effect: Box<str>,
}

impl Reservation {
    /// The nodes on which capacity is reserved, as its status lists them; none until it is
    /// admitted, and after it has ended.
    pub fn reserved_nodes(&self) -> impl Iterator<Item = &str> {
        let has_capacity = matches!(self.status["phase"].as_str(), Some("Admitted" | "Active"));
        let nodes = self.status["nodes"].as_array().filter(|_| has_capacity);
        nodes.into_iter().flatten().filter_map(Value::as_str)
    }

    /// When it ends, in milliseconds since 1970; [`u64::MAX`] if that cannot be read. A status is
    /// out of date where no scheduler runs.
    pub fn ends_ms(&self) -> u64 {
        let ends = self.to.parse::<jiff::Timestamp>();
        ends.map_or(u64::MAX, |ends| ends.as_millisecond().max(0).cast_unsigned())
    }
}

/// The schema of a reservation's `spec` for its CustomResourceDefinition.
pub fn reservation_spec_schema() -> Value {
    structural::<SpecJson>()
}

impl<'de> Deserialize<'de> for Reservation {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let ReservationJson { metadata, spec, status } = ReservationJson::deserialize(input)?;
        let pod = json!({"spec": {
            "containers": [{"resources": {"requests": spec.requests}}],
            "nodeSelector": spec.node_selector,
            "tolerations": spec.tolerations,
        }});
        let requests = pod["spec"]["containers"][0]["resources"]["requests"].clone();
        Ok(Self {
            requests,
            generation: metadata["generation"].as_i64().unwrap_or(0),
            meta: serde_json::from_value(metadata).map_err(de::Error::custom)?,
            queue: spec.queue,
            job: spec.job,
            pod: serde_json::from_value(pod).map_err(de::Error::custom)?,
            count: spec.count.unwrap_or(1),
            from: spec.from,
            to: spec.to,
            status,
        })
    }
}

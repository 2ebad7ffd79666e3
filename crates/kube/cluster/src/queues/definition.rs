//! The CustomResourceDefinition of queues: what the API server takes, what it says where it does
//! not, and the columns of `kubectl get queues`.

use serde_json::{Map, Value, json};

use super::yaml;

/// A resource is named by no more than this many of a queue's amounts.
const MOST_RESOURCES: u32 = 32;
/// Quantities of Kubernetes, without a sign.
const QUANTITY: &str = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE](\+|-)?[0-9]+)?$";

/// The definition as an object.
pub fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "queues.dovetail.dev"},
        "spec": {
            "group": "dovetail.dev",
            "names": {"kind": "Queue", "listKind": "QueueList", "plural": "queues", "singular": "queue"},
            "scope": "Cluster",
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns(),
                "schema": {"openAPIV3Schema": schema()},
            }],
        },
    })
}

/// The definition as it stands in `deploy/queue-definition.yaml`.
pub fn definition_text() -> String {
    format!(
        "# Written by `cargo xtask codegen queues`. Change crates/kube/cluster/src/queues/definition.rs.\n{}",
        yaml::text(&definition())
    )
}

fn columns() -> Value {
    let column =
        |name: &str, path: &str, kind: &str| json!({"name": name, "type": kind, "jsonPath": path});
    json!([
        column("Parent", ".spec.parent", "string"),
        column("GPUs", ".status.gpus.used", "string"),
        column("Guaranteed", ".status.gpus.guaranteed", "string"),
        column("Limit", ".status.gpus.limit", "string"),
        column("Borrowed", ".status.gpus.borrowed", "string"),
        column("Pending", ".status.pending.jobs", "integer"),
        column("Share", ".status.share", "string"),
        column("Ready", ".status.conditions[?(@.type==\"Ready\")].status", "string"),
        column("Age", ".metadata.creationTimestamp", "date"),
    ])
}

fn schema() -> Value {
    json!({
        "type": "object",
        "description": "What a team is given of the cluster, and what it holds.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec(),
            "status": status(),
        },
        "x-kubernetes-validations": [
            rule(
                "!has(self.spec.parent) || self.spec.parent != self.metadata.name",
                "spec.parent: a queue cannot be its own parent",
            ),
            rule(
                "size(self.metadata.name) <= 63",
                "metadata.name: pods name a queue in a label, so it has at most 63 characters",
            ),
        ],
    })
}

fn rule(rule: &str, message: &str) -> Value {
    json!({"rule": rule, "message": message})
}

fn described(description: &str, mut schema: Value) -> Value {
    schema["description"] = json!(description);
    schema
}

fn spec() -> Value {
    let name = json!({"type": "string", "minLength": 1, "maxLength": 63});
    json!({
        "type": "object",
        "properties": {
            "parent": described("The queue above it. Without one it hangs below the root.", name),
            "guaranteed": described(
                "Its quota by resource, as in a ResourceQuota: what it and all queues below it have for \
                 themselves. Of what is named here it holds no more, unless it borrows.",
                amounts("guaranteed"),
            ),
            "limit": described(
                "What it and all queues below it never hold more of, by resource.",
                amounts("limit"),
            ),
            "weight": described(
                "Share of what is not enough for all: a queue of weight 2 is given twice as much as one of \
                 weight 1.",
                json!({"type": "integer", "format": "int32", "minimum": 1, "maximum": 1000, "default": 1}),
            ),
            "borrowing": described(
                "Whether it may hold more than it is guaranteed while that is free. Nothing that is lent is \
                 taken back yet, so queues do not borrow by default.",
                json!({"type": "string", "enum": ["Never", "WhenFree"], "default": "Never"}),
            ),
            "namespaceSelector": described(
                "Namespaces whose pods it takes, by label; {} is all of them. Without it the default queue \
                 takes all, any other none.",
                selector(),
            ),
        },
        "x-kubernetes-validations": [rule(
            "!has(self.guaranteed) || !has(self.limit) || self.guaranteed.all(name, \
             !(name in self.limit) || !isQuantity(string(self.guaranteed[name])) || \
             !isQuantity(string(self.limit[name])) || \
             quantity(string(self.guaranteed[name])).compareTo(quantity(string(self.limit[name]))) <= 0)",
            "spec.guaranteed: of no resource may more be guaranteed than spec.limit allows",
        )],
    })
}

/// Quantities by resource.
fn amounts(field: &str) -> Value {
    json!({
        "type": "object",
        "maxProperties": MOST_RESOURCES,
        "additionalProperties": {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": true,
            "pattern": QUANTITY,
            "maxLength": 32,
        },
        "x-kubernetes-validations": [rule(
            "self.all(name, !isQuantity(string(self[name])) || !quantity(string(self[name])).isLessThan(quantity(\"0\")))",
            &format!("spec.{field}: amounts are not negative"),
        )],
    })
}

fn selector() -> Value {
    let values = json!({"type": "array", "maxItems": 64, "items": {"type": "string", "maxLength": 63},
        "x-kubernetes-list-type": "atomic"});
    json!({
        "type": "object",
        "properties": {
            "matchLabels": {"type": "object", "maxProperties": 64,
                "additionalProperties": {"type": "string", "maxLength": 63}},
            "matchExpressions": {
                "type": "array",
                "maxItems": 64,
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": {"type": "string", "minLength": 1, "maxLength": 317},
                        "operator": {"type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
                        "values": values,
                    },
                    "x-kubernetes-validations": [rule(
                        "(self.operator in [\"In\", \"NotIn\"]) == (has(self.values) && size(self.values) > 0)",
                        "In and NotIn need values, Exists and DoesNotExist take none",
                    )],
                },
            },
        },
    })
}

fn status() -> Value {
    let text = |description: &str| described(description, json!({"type": "string"}));
    let count = |description: &str| {
        described(description, json!({"type": "integer", "format": "int64", "minimum": 0}))
    };
    let by_resource = |description: &str| {
        let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
        described(description, texts)
    };
    let object = |properties: Vec<(&str, Value)>| {
        let properties: Map<String, Value> =
            properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
        json!({"type": "object", "properties": properties})
    };
    object(vec![
        ("used", by_resource("What it and all queues below it hold.")),
        ("borrowed", by_resource("What of that is beyond what it is guaranteed.")),
        (
            "gpus",
            object(vec![
                ("used", text("GPUs in use.")),
                ("borrowed", text("GPUs beyond those guaranteed.")),
                ("guaranteed", text("GPUs guaranteed.")),
                ("limit", text("Most GPUs.")),
            ]),
        ),
        (
            "pending",
            object(vec![
                ("jobs", count("Jobs that wait: pods by themselves, and gangs.")),
                ("pods", count("Pods that wait, gangs at their smallest size.")),
            ]),
        ),
        ("share", text("The greatest part that it holds of anything the cluster has.")),
        ("conditions", conditions()),
    ])
}

fn conditions() -> Value {
    let text = |most: u32| json!({"type": "string", "maxLength": most});
    json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": text(316),
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "reason": text(1_024),
                "message": text(32_768),
                "lastTransitionTime": {"type": "string", "format": "date-time"},
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use dovetail_objects::{LabelSelector, Queue};

    use super::*;

    /// A server takes what the type reads, and nothing that it would pass over.
    #[test]
    fn the_schema_and_the_type_have_the_same_fields() {
        let written = json!({
            "parent": "above", "guaranteed": {"cpu": "1"}, "limit": {"cpu": "2"}, "weight": 2,
            "borrowing": "WhenFree", "namespaceSelector": {"matchLabels": {"team": "a"}},
        });
        let names = |fields: &Value| -> BTreeSet<String> {
            fields.as_object().expect("an object").keys().cloned().collect()
        };
        assert_eq!(names(&spec()["properties"]), names(&written));
        let object = json!({"metadata": {"name": "q"}, "spec": written}).to_string();
        let read: Queue = serde_json::from_str(&object).expect("a queue");
        let Queue { meta, parent, guaranteed, limit, weight, borrows, namespaces, status } = read;
        assert_eq!((&*meta.name, &*parent, weight, borrows), ("q", "above", 2, true));
        assert_eq!((guaranteed.len(), limit.len()), (1, 1));
        assert!(namespaces != LabelSelector::default() && status.is_null());
    }
}

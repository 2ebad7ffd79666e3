//! Objects of a dump with what a server asks for beside them: namespaces, owners of pods, priority
//! classes, definitions of kinds.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// Groups that every server has.
const OWN: [&str; 9] = [
    "",
    "admissionregistration.k8s.io",
    "apps",
    "autoscaling",
    "batch",
    "policy",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// Kind, namespace and name.
pub(super) fn key(object: &Value) -> [String; 3] {
    let metadata = &object["metadata"];
    [&object["kind"], &metadata["namespace"], &metadata["name"]]
        .map(|part| part.as_str().unwrap_or_default().to_owned())
}

fn group(object: &Value) -> &str {
    let api = object["apiVersion"].as_str().unwrap_or_default();
    api.split_once('/').map_or("", |(group, _)| group)
}

/// Definitions of the kinds that the server does not have by itself.
pub(super) fn definitions(objects: &[Value]) -> Vec<Value> {
    let custom = objects.iter().filter(|object| !OWN.contains(&group(object)));
    let mut known: BTreeMap<(String, String), Value> = BTreeMap::new();
    for object in custom {
        let (group, kind) = (group(object), object["kind"].as_str().unwrap_or_default());
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let version = version.rsplit('/').next().unwrap_or_default();
        let plural = format!("{}s", kind.to_lowercase());
        let is_namespaced = object["metadata"]["namespace"].is_string();
        let scope = if is_namespaced { "Namespaced" } else { "Cluster" };
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}"),
                "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
            "spec": {"group": group, "scope": scope,
                "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
                "versions": [{"name": version, "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema}}]}
        });
        known.insert((group.to_owned(), kind.to_owned()), definition);
    }
    known.into_values().collect()
}

/// All objects, as the server takes them, and those that they refer to.
pub(super) fn completed(objects: &[Value]) -> Vec<Value> {
    let mut all: BTreeMap<[String; 3], Value> = BTreeMap::new();
    let mut classes = BTreeSet::new();
    for object in objects {
        let mut object = object.clone();
        if object["kind"] == "Pod" {
            if object["spec"]["containers"].as_array().is_none_or(Vec::is_empty) {
                object["spec"]["containers"] = json!([{"name": "main", "image": "work:1"}]);
            }
            classes.extend(object["spec"]["priorityClassName"].as_str().map(str::to_owned));
            // Admission takes it from the class.
            object["spec"].as_object_mut().expect("a spec").remove("priority");
        }
        complete_template(&mut object);
        complete_owners(&mut object);
        all.insert(key(&object), object);
    }
    let pods: Vec<Value> = all.values().filter(|of| of["kind"] == "Pod").cloned().collect();
    for pod in &pods {
        for owner in owners(pod) {
            all.entry(key(&owner)).or_insert(owner);
        }
    }
    let namespaces: BTreeSet<String> =
        all.keys().map(|[_, namespace, _]| namespace.clone()).collect();
    for name in namespaces.iter().filter(|name| !name.is_empty()) {
        let metadata = json!({"name": name});
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        all.entry(key(&object)).or_insert(object);
    }
    for name in classes.iter().filter(|name| !name.starts_with("system-")) {
        let object = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": 1000});
        all.entry(key(&object)).or_insert(object);
    }
    in_order(all.into_values().collect())
}

/// What others refer to comes first; namespaces that are there already stay.
fn in_order(mut objects: Vec<Value>) -> Vec<Value> {
    let rank = |object: &Value| match object["kind"].as_str() {
        Some("Namespace") => 0,
        Some("PriorityClass" | "Node") => 1,
        Some("Pod") => 3,
        _ => 2,
    };
    objects.sort_by_key(rank);
    for object in &mut objects {
        let metadata = object["metadata"].as_object_mut().expect("metadata");
        // The server gives each its own.
        for field in ["generation", "managedFields", "resourceVersion", "uid"] {
            metadata.remove(field);
        }
    }
    objects
}

/// The server asks for a selector, labels, and what becomes of pods that end.
fn complete_template(object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let Some(template) = object.pointer_mut("/spec/template").filter(|of| of.is_object()) else {
        return;
    };
    if kind == "Job" {
        template["spec"]["restartPolicy"] = json!("Never");
    }
    if !["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"].contains(&&*kind) {
        return;
    }
    if template["metadata"]["labels"].as_object().is_none_or(|labels| labels.is_empty()) {
        template["metadata"]["labels"] = json!({"app": name});
    }
    let labels = template["metadata"]["labels"].clone();
    if object["spec"]["selector"].is_null() {
        object["spec"]["selector"] = json!({"matchLabels": labels});
    }
}

/// References to owners have all that the server asks for.
fn complete_owners(object: &mut Value) {
    let references = object["metadata"]["ownerReferences"].as_array_mut();
    for reference in references.into_iter().flatten() {
        let api = api_of(reference["kind"].as_str().unwrap_or_default());
        for (field, value) in [("apiVersion", json!(api)), ("uid", reference["name"].clone())] {
            if reference[field].as_str().is_none_or(str::is_empty) {
                reference[field] = value;
            }
        }
    }
}

fn api_of(kind: &str) -> &str {
    match kind {
        "ReplicaSet" | "Deployment" | "StatefulSet" | "DaemonSet" => "apps/v1",
        "Job" => "batch/v1",
        _ => "kubeflow.org/v1",
    }
}

/// The controller of a pod, made from the pod, and its Deployment where it is a ReplicaSet.
fn owners(pod: &Value) -> Vec<Value> {
    let metadata = &pod["metadata"];
    let references = metadata["ownerReferences"].as_array().into_iter().flatten();
    let Some(owner) = references.into_iter().find(|owner| owner["controller"] == true) else {
        return Vec::new();
    };
    let kind = owner["kind"].as_str().unwrap_or_default();
    let name = owner["name"].as_str().unwrap_or_default();
    let mut spec = pod["spec"].clone();
    spec.as_object_mut().expect("a spec").retain(|field, _| field != "nodeName");
    let app = name.rsplit_once('-').map_or(name, |(app, _)| app);
    let mut labels = metadata["labels"].clone();
    labels["app"] = json!(app);
    let template = json!({"metadata": {"labels": labels}, "spec": spec});
    let object = |api: &Value, kind: &str, name: &str, spec: Value| {
        let mut object = json!({"apiVersion": api, "kind": kind, "spec": spec, "metadata": {
            "name": name, "namespace": metadata["namespace"], "uid": name,
            "creationTimestamp": metadata["creationTimestamp"]}});
        complete_template(&mut object);
        object
    };
    let selector = json!({"matchLabels": {"app": app}});
    let many = json!({"replicas": 1, "selector": selector, "template": template});
    let api = &owner["apiVersion"];
    match kind {
        "ReplicaSet" => {
            let mut set = object(api, kind, name, many.clone());
            set["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1",
                "kind": "Deployment", "name": app, "uid": app, "controller": true}]);
            vec![set, object(api, "Deployment", app, many)]
        }
        "StatefulSet" | "DaemonSet" | "Deployment" => vec![object(api, kind, name, many)],
        "Job" if *api == "batch/v1" => vec![object(api, kind, name, json!({"template": template}))],
        _ => {
            let groups = json!({"groups": [{"name": "all", "template": template}]});
            vec![object(api, kind, name, groups)]
        }
    }
}

/// Objects as the server has them, with the times and the status of the dump, which it does not
/// take.
pub(super) fn restored(on_server: Vec<Value>, wanted: &[Value]) -> Vec<Value> {
    let wanted: BTreeMap<[String; 3], &Value> =
        wanted.iter().map(|object| (key(object), object)).collect();
    let of_dump = on_server.into_iter().filter_map(|mut object| {
        let wanted = wanted.get(&key(&object))?;
        object["status"] = wanted["status"].clone();
        if let Some(created) = wanted["metadata"].get("creationTimestamp") {
            object["metadata"]["creationTimestamp"] = created.clone();
        }
        Some(object)
    });
    of_dump.collect()
}

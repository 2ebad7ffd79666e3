//! What the real server fills in at creation: field defaults and default admission plugins, for the
//! kinds a scheduler reads.

use serde_json::{Map, Value, json};

use super::failure::ApiFailure;
use super::kind::ResourceKind;
use super::now::stamp;
use super::state::ServerState;

pub(crate) fn on_create(
    state: &ServerState,
    kind: &ResourceKind,
    value: &mut Value,
) -> Result<(), ApiFailure> {
    let name = value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "pods") => pod(state, kind, &name, value)?,
        ("", "nodes") => node(value),
        ("", "namespaces") => {
            value["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
            fill(&mut value["spec"], json!({"finalizers": ["kubernetes"]}));
            value["status"] = json!({"phase": "Active"});
        }
        ("", "persistentvolumes" | "persistentvolumeclaims") => {
            value["status"] = json!({"phase": "Pending"});
        }
        ("policy", "poddisruptionbudgets") => {
            value["status"] = json!({
                "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0,
            });
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            let condition = |kind: &str, reason: &str| {
                json!({
                    "type": kind, "status": "True", "reason": reason,
                    "lastTransitionTime": stamp(state.now()),
                })
            };
            value["status"] = json!({
                "acceptedNames": value["spec"]["names"],
                "conditions": [condition("NamesAccepted", "NoConflicts"),
                               condition("Established", "InitialNamesAccepted")],
            });
        }
        _ if kind.has_status => {
            if let Some(body) = value.as_object_mut() {
                body.remove("status");
            }
        }
        _ => {}
    }
    Ok(())
}

/// Sets the fields that are not there.
fn fill(value: &mut Value, defaults: Value) {
    if !value.is_object() {
        *value = json!({});
    }
    let (Value::Object(fields), Value::Object(defaults)) = (value, defaults) else { return };
    for (key, default) in defaults {
        fields.entry(key).or_insert(default);
    }
}

fn pod(
    state: &ServerState,
    kind: &ResourceKind,
    name: &str,
    pod: &mut Value,
) -> Result<(), ApiFailure> {
    let spec = &mut pod["spec"];
    let (priority, policy) = priority(state, kind, name, spec)?;
    fill(
        spec,
        json!({
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst", "securityContext": {}, "enableServiceLinks": true,
            "schedulerName": "default-scheduler", "priority": priority, "preemptionPolicy": policy,
        }),
    );
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            fill_container(container);
        }
    }
    if spec["initContainers"].is_null()
        && let Some(fields) = spec.as_object_mut()
    {
        fields.remove("initContainers");
    }
    tolerate_for_a_while(spec);
    let mut status = json!({"phase": "Pending", "qosClass": quality(spec)});
    if spec["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null, "lastTransitionTime": stamp(state.now()),
        }]);
    }
    if let Some(spec) = pod["spec"].as_object_mut() {
        spec.retain(|_, value| !value.is_null());
    }
    pod["status"] = status;
    Ok(())
}

/// Priority and preemption policy from the class that the pod names.
fn priority(
    state: &ServerState,
    kind: &ResourceKind,
    name: &str,
    spec: &Value,
) -> Result<(i64, Value), ApiFailure> {
    let class = spec["priorityClassName"].as_str().unwrap_or_default();
    let lower = json!("PreemptLowerPriority");
    match class {
        "" => return Ok((0, lower)),
        "system-cluster-critical" => return Ok((2_000_000_000, lower)),
        "system-node-critical" => return Ok((2_000_001_000, lower)),
        _ => {}
    }
    let collection = ("scheduling.k8s.io".to_owned(), "priorityclasses".to_owned());
    let Some(found) = state.store.get(&collection, class) else {
        let why = format!("no PriorityClass with name {class} was found");
        return Err(ApiFailure::forbidden(kind, name, &why));
    };
    let policy = &found.value["preemptionPolicy"];
    let policy = if policy.is_string() { policy.clone() } else { lower };
    Ok((found.value["value"].as_i64().unwrap_or_default(), policy))
}

fn fill_container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let tag = image.rsplit('/').next().and_then(|last| last.split_once(':')).map(|(_, tag)| tag);
    let pull = match tag {
        None | Some("latest") if !image.contains('@') => "Always",
        _ => "IfNotPresent",
    };
    fill(
        container,
        json!({
            "resources": {}, "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File", "imagePullPolicy": pull,
        }),
    );
    for port in container["ports"].as_array_mut().into_iter().flatten() {
        fill(port, json!({"protocol": "TCP"}));
    }
    if let Value::Object(limits) = container["resources"]["limits"].clone() {
        fill(&mut container["resources"]["requests"], Value::Object(limits));
    }
    if let Value::Object(fields) = container {
        fields.retain(|_, value| !value.is_null());
        if let Some(Value::Object(resources)) = fields.get_mut("resources") {
            resources.retain(|_, value| !value.is_null());
        }
    }
}

/// Admission plugin DefaultTolerationSeconds.
fn tolerate_for_a_while(spec: &mut Value) {
    let given = spec["tolerations"].as_array().cloned().unwrap_or_default();
    let mut all = given.clone();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = given.iter().any(|one| {
            let (its_key, effect) = (one["key"].as_str(), one["effect"].as_str());
            its_key.is_none_or(|its_key| its_key.is_empty() || its_key == key)
                && effect.is_none_or(|effect| effect.is_empty() || effect == "NoExecute")
        });
        if !tolerated {
            all.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
    spec["tolerations"] = Value::Array(all);
}

/// Quality-of-service class, from CPU and memory of all containers.
fn quality(spec: &Value) -> &'static str {
    let lists = ["containers", "initContainers"];
    let containers: Vec<&Value> =
        lists.iter().flat_map(|list| spec[*list].as_array().into_iter().flatten()).collect();
    let counted = |amounts: &Value| -> Map<String, Value> {
        let amounts = amounts.as_object().into_iter().flatten();
        amounts
            .filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory"))
            .map(|(name, amount)| (name.clone(), amount.clone()))
            .collect()
    };
    let (mut any, mut guaranteed) = (false, true);
    for container in containers {
        let requests = counted(&container["resources"]["requests"]);
        let limits = counted(&container["resources"]["limits"]);
        any |= !requests.is_empty() || !limits.is_empty();
        guaranteed &= limits.len() == 2 && requests == limits;
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Admission plugin TaintNodesByCondition, and allocatable from capacity.
fn node(node: &mut Value) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let taints = &mut node["spec"]["taints"];
    match taints.as_array_mut() {
        Some(taints)
            if taints
                .iter()
                .any(|one| one["key"] == taint["key"] && one["effect"] == taint["effect"]) => {}
        Some(taints) => taints.push(taint),
        None => *taints = json!([taint]),
    }
    let capacity = node["status"]["capacity"].clone();
    if node["status"]["allocatable"].is_null() && capacity.is_object() {
        node["status"]["allocatable"] = capacity;
    }
    if let Some(status) = node["status"].as_object_mut() {
        status.retain(|_, value| !value.is_null());
    }
    fill(
        &mut node["status"],
        json!({
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "nodeInfo": {
                "architecture": "", "bootID": "", "containerRuntimeVersion": "",
                "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "",
                "operatingSystem": "", "osImage": "", "systemUUID": "",
            },
        }),
    );
}

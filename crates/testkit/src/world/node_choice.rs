//! What a pod says about nodes directly: name, selector, required node affinity, tolerations,
//! features it needs.

use serde_json::{Value, json};

use super::node::{FEATURES, HOSTNAME, RACK, REGION, TAINTS, ZONE, ZONES};
use super::random::Draw;

/// `spec.nodeName` of a pod that asks to be judged for one node.
pub(super) fn add_node_name(spec: &mut Value, nodes: &[String], draw: &mut Draw) {
    spec["nodeName"] = if draw.chance(95) { json!(draw.one(nodes)) } else { json!("no-such-node") };
}

pub(super) fn add_node_selector(spec: &mut Value, nodes: &[String], draw: &mut Draw) {
    let mut selector = json!({});
    for _ in 0..1 + draw.below(2) {
        match draw.below(4) {
            0 => selector[ZONE] = json!(draw.pick(&ZONES)),
            1 => selector["disk"] = json!(draw.pick(&["ssd", "hdd", "nvme", "tape"])),
            2 => selector[REGION] = json!(draw.pick(&["region-1", "region-2"])),
            _ => selector[HOSTNAME] = json!(draw.one(nodes)),
        }
    }
    spec["nodeSelector"] = selector;
}

/// Required node affinity with every operator, over labels and over the node's name.
pub(super) fn add_node_affinity(spec: &mut Value, nodes: &[String], draw: &mut Draw) {
    let terms = (0..1 + draw.below(3)).map(|_| term(nodes, draw)).collect::<Vec<Value>>();
    spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        json!({"nodeSelectorTerms": terms});
}

fn term(nodes: &[String], draw: &mut Draw) -> Value {
    let mut term = json!({});
    // A term without any expression matches no node.
    let expressions = (0..draw.below(3)).map(|_| label_expression(draw)).collect::<Vec<Value>>();
    if !expressions.is_empty() {
        term["matchExpressions"] = Value::Array(expressions);
    }
    if draw.chance(30) {
        let operator = draw.pick(&["In", "In", "NotIn"]);
        // The server allows one name per expression.
        term["matchFields"] =
            json!([{"key": "metadata.name", "operator": operator, "values": [draw.one(nodes)]}]);
    }
    term
}

/// One expression of a node selector; also used for the node affinity of volumes.
pub(super) fn label_expression(draw: &mut Draw) -> Value {
    match draw.below(7) {
        0 => json!({"key": ZONE, "operator": "In", "values": draw.some(&ZONES, 2)}),
        1 => json!({"key": ZONE, "operator": "NotIn", "values": draw.some(&ZONES, 2)}),
        2 => json!({"key": draw.pick(&[RACK, "disk", "generation"]), "operator": "Exists"}),
        3 => json!({"key": draw.pick(&[RACK, "disk", "tape"]), "operator": "DoesNotExist"}),
        4 => {
            json!({"key": "generation", "operator": "Gt", "values": [draw.pick(&["1", "2", "-5"])]})
        }
        5 => {
            json!({"key": "generation", "operator": "Lt", "values": [draw.pick(&["3", "10", "0"])]})
        }
        _ => {
            json!({"key": "disk", "operator": "In", "values": draw.some(&["ssd", "hdd", "nvme"], 2)})
        }
    }
}

/// Tolerations for some taints, by either operator.
pub(super) fn add_tolerations(spec: &mut Value, draw: &mut Draw) {
    let mut tolerations = Vec::new();
    for _ in 0..draw.below(4) {
        let (key, value) = draw.pick(&TAINTS);
        let mut toleration = match draw.below(3) {
            0 => json!({"key": key, "operator": "Exists"}),
            1 => json!({"key": key, "operator": "Equal", "value": value}),
            _ => json!({"key": key, "value": draw.pick(&["gpu", "db", "true"])}),
        };
        match draw.below(4) {
            0 => toleration["effect"] = json!("NoSchedule"),
            1 => toleration["effect"] = json!("NoExecute"),
            _ => {}
        }
        if toleration["effect"] == "NoExecute" && draw.chance(50) {
            toleration["tolerationSeconds"] = json!(300);
        }
        tolerations.push(toleration);
    }
    if draw.chance(30) {
        tolerations.push(json!({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}));
    }
    spec["tolerations"] = Value::Array(tolerations);
}

/// The toleration that accepts every taint, as agents of a node have it.
pub(super) fn add_universal_toleration(spec: &mut Value) {
    spec["tolerations"] = json!([{"operator": "Exists"}]);
}

/// Fields that only a node which declares a feature can honour.
pub(super) fn add_needed_feature(spec: &mut Value, draw: &mut Draw) {
    match draw.pick(&FEATURES) {
        "RestartAllContainersOnContainerExits" => {
            spec["containers"][0]["restartPolicy"] = json!("Never");
            spec["containers"][0]["restartPolicyRules"] = json!([{
                "action": "RestartAllContainers",
                "exitCodes": {"operator": "In", "values": [42]},
            }]);
        }
        "UserNamespacesHostNetworkSupport" => {
            spec["hostNetwork"] = json!(true);
            spec["hostUsers"] = json!(false);
        }
        _ => {
            spec["containers"][0]["volumeMounts"] = json!([{"name": "scratch", "mountPath": "/scratch", "bindMountOptions": ["noexec"]}]);
            spec["volumes"] = json!([{"name": "scratch", "emptyDir": {}}]);
        }
    }
}

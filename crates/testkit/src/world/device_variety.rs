//! What a random world of devices gets once the rest of it is there: pools that contradict
//! themselves, devices that become ready after they are allocated, and claims that are made from
//! templates. It has draws of its own, so that the rest is the same with it and without it.

use serde_json::{Value, json};

use super::GeneratedCluster;
use super::random::Draw;

/// Changes slices, claims and pending pods.
pub(super) fn add_variety(seed: u64, world: &mut GeneratedCluster) {
    let draw = &mut Draw::new(seed);
    for slice in &mut world.resource_slices {
        let devices = slice.pointer_mut("/spec/devices").and_then(Value::as_array_mut);
        let Some(devices) = devices else { continue };
        devices.iter_mut().for_each(|device| add_binding_conditions(device, draw));
        let [first, second, ..] = devices.as_mut_slice() else { continue };
        if draw.chance(5) {
            second["name"] = first["name"].clone();
        }
    }
    for pod in &mut world.pending {
        add_templates(pod, &mut world.resource_claims, draw);
    }
}

fn add_binding_conditions(device: &mut Value, draw: &mut Draw) {
    if draw.chance(12) {
        device["bindingConditions"] = json!(["example.com/ready"]);
        device["bindingFailureConditions"] = json!(["example.com/broken"]);
    }
}

/// Some claims that a pod names were made for it. Where another pod has got one since, it is not
/// the claim of this one.
fn add_templates(pod: &mut Value, claims: &mut [Value], draw: &mut Draw) {
    let meta = pod["metadata"].clone();
    let entries = pod.pointer_mut("/spec/resourceClaims").and_then(Value::as_array_mut);
    let mut made = Vec::new();
    for entry in entries.into_iter().flatten() {
        let name = entry["resourceClaimName"].clone();
        let mut open = claims.iter_mut().filter(|claim| claim["status"].is_null());
        let claim = open.find(|claim| claim["metadata"]["name"] == name);
        let Some(claim) = claim.filter(|_| draw.chance(30)) else { continue };
        claim["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod",
            "name": meta["name"], "uid": meta["uid"], "controller": true}]);
        made.push(json!({"name": entry["name"], "resourceClaimName": name}));
        *entry = json!({"name": entry["name"], "resourceClaimTemplateName": "template"});
    }
    if !made.is_empty() {
        pod["status"]["resourceClaimStatuses"] = Value::Array(made);
    }
}

//! Volumes that pods mount: in-tree disks, claims, ephemeral claims.

use serde_json::{Value, json};

use super::GeneratedCluster;
use super::claim::{ClaimState, add_claim};
use super::random::Draw;

/// Adds a volume to a pod's spec.
fn mount(pod: &mut Value, mut volume: Value) {
    let volumes = &mut pod["spec"]["volumes"];
    if volumes.is_null() {
        *volumes = json!([]);
    }
    let list = volumes.as_array_mut().expect("spec.volumes is a list");
    volume["name"] = json!(format!("volume-{}", list.len()));
    list.push(volume);
}

/// A disk that only one pod, or only readers, may have on a node (kube-scheduler's
/// VolumeRestrictions).
pub(super) fn add_disk(pod: &mut Value, draw: &mut Draw) {
    let mut disk = match draw.below(4) {
        0 => json!({"gcePersistentDisk": {"pdName": draw.pick(&["disk-1", "disk-2"])}}),
        1 => json!({"awsElasticBlockStore": {"volumeID": draw.pick(&["vol-1", "vol-2"])}}),
        2 => json!({"iscsi": {"targetPortal": "10.0.2.15:3260", "lun": 0,
            "iqn": draw.pick(&["iqn.2026-01.example:a", "iqn.2026-01.example:b"])}}),
        _ => json!({"rbd": {"monitors": draw.some(&["mon-1:6789", "mon-2:6789", "mon-3:6789"], 2),
            "pool": draw.pick(&["rbd", "fast"]), "image": draw.pick(&["image-1", "image-2"])}}),
    };
    if draw.chance(45) {
        for source in ["gcePersistentDisk", "iscsi", "rbd", "awsElasticBlockStore"] {
            if disk.get(source).is_some() {
                disk[source]["readOnly"] = json!(true);
            }
        }
    }
    mount(pod, disk);
}

/// A claim of the pod's own, in the given state.
pub(super) fn add_own_claim(
    pod: &mut Value,
    state: ClaimState,
    nodes: &[String],
    world: &mut GeneratedCluster,
    draw: &mut Draw,
) {
    let namespace = text(&pod["metadata"]["namespace"]);
    let pod_name = text(&pod["metadata"]["name"]);
    let position = pod["spec"]["volumes"].as_array().map_or(0, Vec::len);
    if draw.chance(12) {
        // A generic ephemeral volume: its claim is named after the pod and owned by it.
        let name = format!("{pod_name}-volume-{position}");
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": pod_name,
            "uid": pod["metadata"]["uid"], "controller": true});
        add_claim((&namespace, &name), state, Some(owner), nodes, world, draw);
        let template = json!({"spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}});
        mount(pod, json!({"ephemeral": {"volumeClaimTemplate": template}}));
        return;
    }
    let name = format!("claim-{}", world.persistent_volume_claims.len());
    add_claim((&namespace, &name), state, None, nodes, world, draw);
    mount(pod, json!({"persistentVolumeClaim": {"claimName": name}}));
}

/// A bound claim that exists already in the pod's namespace, so that two pods share it; none where
/// there is none. `once` makes it a claim that one pod alone may use.
pub(super) fn add_shared_claim(
    pod: &mut Value,
    once: bool,
    world: &mut GeneratedCluster,
    draw: &mut Draw,
) {
    let namespace = text(&pod["metadata"]["namespace"]);
    let mut bound: Vec<&mut Value> = world
        .persistent_volume_claims
        .iter_mut()
        .filter(|claim| {
            claim["metadata"]["namespace"] == namespace.as_str()
                && claim["metadata"].get("ownerReferences").is_none()
                && claim["status"]["phase"] == "Bound"
        })
        .collect();
    if bound.is_empty() {
        return;
    }
    let position = draw.below(bound.len());
    let claim = &mut bound[position];
    if once {
        claim["spec"]["accessModes"] = json!(["ReadWriteOncePod"]);
    }
    let name = claim["metadata"]["name"].clone();
    mount(pod, json!({"persistentVolumeClaim": {"claimName": name}}));
}

/// A string of an object that the generator made itself.
pub(super) fn text(value: &Value) -> String {
    value.as_str().expect("names are strings").to_owned()
}

//! Storage of a random world: classes, drivers, volumes, claims, attachments.

use serde_json::{Value, json};

use super::GeneratedCluster;
use super::node::{HOSTNAME, RACK, REGION, ZONE, ZONES};
use super::node_choice::label_expression;
use super::random::Draw;

/// A driver whose volumes are counted per node.
pub(super) const DRIVER: &str = "disk.csi.example.com";
/// A driver that publishes how much storage is left where.
pub(super) const CAPACITY_DRIVER: &str = "local.csi.example.com";

/// What is there before any pod: classes, drivers, what each node can attach, how much is left.
pub(super) fn add_storage(nodes: &[String], world: &mut GeneratedCluster, draw: &mut Draw) {
    let delayed = "WaitForFirstConsumer";
    let mut zonal =
        json!({"metadata": {"name": "zonal"}, "provisioner": DRIVER, "volumeBindingMode": delayed});
    add_allowed_topologies(&mut zonal, draw);
    world.storage_classes = vec![
        zonal,
        json!({"metadata": {"name": "delayed"}, "provisioner": DRIVER, "volumeBindingMode": delayed}),
        json!({"metadata": {"name": "scarce"}, "provisioner": CAPACITY_DRIVER, "volumeBindingMode": delayed}),
        json!({"metadata": {"name": "immediate"}, "provisioner": DRIVER, "volumeBindingMode": "Immediate"}),
        json!({"metadata": {"name": "static"}, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": delayed}),
    ];
    world.csi_drivers = vec![
        json!({"metadata": {"name": DRIVER}, "spec": {"attachRequired": true, "storageCapacity": false}}),
        json!({"metadata": {"name": CAPACITY_DRIVER}, "spec": {"attachRequired": false, "storageCapacity": true}}),
    ];
    if draw.chance(40) {
        world.csi_drivers[0]["spec"]["preventPodSchedulingIfMissing"] = json!(true);
    }
    let limited_percent = draw.pick(&[40, 70, 90]);
    for node in nodes {
        if draw.chance(90) {
            world.csi_nodes.push(csi_node(node, limited_percent, draw));
        }
    }
    for number in 0..draw.below(4) {
        world.csi_storage_capacities.push(capacity(number, nodes, draw));
    }
}

fn add_allowed_topologies(class: &mut Value, draw: &mut Draw) {
    let mut terms = Vec::new();
    for _ in 0..1 + draw.below(2) {
        let mut expressions = vec![json!({"key": ZONE, "values": draw.some(&ZONES, 2)})];
        if draw.chance(25) {
            expressions.push(json!({"key": REGION, "values": ["region-1"]}));
        }
        terms.push(json!({"matchLabelExpressions": expressions}));
    }
    class["allowedTopologies"] = Value::Array(terms);
}

fn csi_node(node: &str, limited_percent: usize, draw: &mut Draw) -> Value {
    let mut driver = json!({"name": DRIVER, "nodeID": node, "topologyKeys": [ZONE]});
    if draw.chance(limited_percent) {
        driver["allocatable"] = json!({"count": draw.between(1, 2)});
    }
    let local = json!({"name": CAPACITY_DRIVER, "nodeID": node, "topologyKeys": [HOSTNAME]});
    let drivers = if draw.chance(90) { vec![driver, local] } else { vec![local] };
    json!({"metadata": {"name": node}, "spec": {"drivers": drivers}})
}

fn capacity(number: usize, nodes: &[String], draw: &mut Draw) -> Value {
    let mut capacity = json!({
        "metadata": {"name": format!("capacity-{number}"), "namespace": "default"},
        "storageClassName": draw.pick(&["scarce", "scarce", "scarce", "zonal"]),
    });
    match draw.below(4) {
        0 => capacity["nodeTopology"] = json!({"matchLabels": {HOSTNAME: draw.one(nodes)}}),
        1 => capacity["nodeTopology"] = json!({}),
        2 => {
            capacity["nodeTopology"] = json!({"matchExpressions":
                [{"key": ZONE, "operator": "In", "values": draw.some(&ZONES, 2)}]});
        }
        _ => capacity["nodeTopology"] = json!({"matchLabels": {ZONE: draw.pick(&ZONES)}}),
    }
    if draw.chance(90) {
        capacity["capacity"] = json!(draw.pick(&["5Gi", "50Gi", "500Gi"]));
    }
    if draw.chance(30) {
        capacity["maximumVolumeSize"] = json!(draw.pick(&["5Gi", "50Gi"]));
    }
    capacity
}

/// How far a claim is, which decides what the scheduler does with it.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ClaimState {
    /// Bound to a volume that any node can use.
    Anywhere,
    /// Bound to a volume with node affinity.
    Affine,
    /// Bound to a volume whose labels name zones.
    Zoned,
    /// Unbound, its class waits for the first pod.
    Delayed,
    /// The same, and a node was selected earlier.
    Selected,
    /// Anything that keeps the pod from being scheduled anywhere for now.
    Broken,
}

/// Adds a claim, and its volume where it has one. `owner` is set for ephemeral volumes.
pub(super) fn add_claim(
    (namespace, name): (&str, &str),
    state: ClaimState,
    owner: Option<Value>,
    nodes: &[String],
    world: &mut GeneratedCluster,
    draw: &mut Draw,
) {
    let mut claim = json!({
        "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{namespace}-{name}")},
        "spec": {
            "accessModes": [draw.pick(&["ReadWriteOnce", "ReadWriteMany"])],
            "resources": {"requests": {"storage": draw.pick(&["1Gi", "10Gi", "100Gi"])}},
        },
        "status": {"phase": "Pending"},
    });
    if let Some(owner) = owner {
        claim["metadata"]["ownerReferences"] = json!([owner]);
    }
    match state {
        ClaimState::Anywhere | ClaimState::Affine | ClaimState::Zoned => {
            bind(&mut claim, state, world, draw);
        }
        ClaimState::Delayed | ClaimState::Selected => {
            claim["spec"]["storageClassName"] =
                json!(draw.pick(&["zonal", "zonal", "delayed", "scarce"]));
            if state == ClaimState::Selected {
                claim["metadata"]["annotations"] =
                    json!({"volume.kubernetes.io/selected-node": draw.one(nodes)});
            }
        }
        ClaimState::Broken => {
            if !break_claim(&mut claim, draw) {
                return;
            }
        }
    }
    world.persistent_volume_claims.push(claim);
}

fn bind(claim: &mut Value, state: ClaimState, world: &mut GeneratedCluster, draw: &mut Draw) {
    let name = format!("pv-{}", world.persistent_volumes.len());
    claim["spec"]["storageClassName"] = json!("delayed");
    claim["spec"]["volumeName"] = json!(name);
    claim["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
    claim["status"]["phase"] = json!("Bound");
    let mut volume = json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "labels": {}},
        "spec": {
            "accessModes": claim["spec"]["accessModes"],
            "capacity": {"storage": "100Gi"},
            "storageClassName": "delayed",
            "claimRef": {"namespace": claim["metadata"]["namespace"], "name": claim["metadata"]["name"],
                "uid": claim["metadata"]["uid"]},
            "csi": {"driver": if draw.chance(85) { DRIVER } else { CAPACITY_DRIVER },
                "volumeHandle": format!("handle-{name}")},
        },
        "status": {"phase": "Bound"},
    });
    match state {
        ClaimState::Affine => {
            let terms = (0..1 + draw.below(2))
                .map(|_| json!({"matchExpressions": [label_expression(draw)]}))
                .collect::<Vec<Value>>();
            volume["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": terms}});
        }
        ClaimState::Zoned => {
            let key = draw.pick(&[ZONE, ZONE, "failure-domain.beta.kubernetes.io/zone", REGION]);
            volume["metadata"]["labels"][key] = if key == REGION {
                json!("region-1")
            } else {
                json!(draw.pick(&["zone-a", "zone-b", "zone-b__zone-c"]))
            };
            volume["metadata"]["labels"][RACK] = json!("rack-1");
        }
        _ => {}
    }
    world.persistent_volumes.push(volume);
}

/// Makes the claim one that no pod can be scheduled with; false: leave it away altogether.
fn break_claim(claim: &mut Value, draw: &mut Draw) -> bool {
    claim["spec"]["storageClassName"] = json!("immediate");
    match draw.below(6) {
        0 => return false,
        1 => {
            claim["status"]["phase"] = json!("Lost");
            claim["spec"]["volumeName"] = json!("pv-gone");
        }
        2 => {
            claim["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            claim["metadata"]["finalizers"] = json!(["kubernetes.io/pvc-protection"]);
            claim["spec"]["storageClassName"] = json!("delayed");
        }
        3 => {
            // Bound to a volume that does not exist.
            claim["spec"]["volumeName"] = json!("pv-gone");
            claim["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
            claim["status"]["phase"] = json!("Bound");
        }
        4 => claim["spec"]["storageClassName"] = json!("no-such-class"),
        _ => {}
    }
    true
}

/// An attachment of a volume that a pod on the node may or may not use.
pub(super) fn add_attachment(node: &str, world: &mut GeneratedCluster, draw: &mut Draw) {
    if world.persistent_volumes.is_empty() {
        return;
    }
    let volume = draw.one(&world.persistent_volumes);
    let attachment = json!({
        "metadata": {"name": format!("attachment-{}", world.volume_attachments.len())},
        "spec": {
            "attacher": volume["spec"]["csi"]["driver"],
            "nodeName": node,
            "source": {"persistentVolumeName": volume["metadata"]["name"]},
        },
        "status": {"attached": true},
    });
    world.volume_attachments.push(attachment);
}

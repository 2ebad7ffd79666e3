//! Nodes of a random world: labels, taints, capacity, declared features.

use serde_json::{Map, Value, json};

use super::random::Draw;

/// Domains that labels name.
pub(super) const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];
/// Label keys that rules use as topology.
pub(super) const ZONE: &str = "topology.kubernetes.io/zone";
pub(super) const REGION: &str = "topology.kubernetes.io/region";
pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";
pub(super) const RACK: &str = "example.com/rack";
pub(super) const TOPOLOGY_KEYS: [&str; 4] = [ZONE, HOSTNAME, RACK, "example.com/absent"];
/// Features a node may declare that a pod can ask for (kube-scheduler's NodeDeclaredFeatures).
pub(super) const FEATURES: [&str; 3] = [
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
    "VolumeBindMountOptions",
];
/// Taints that nodes carry and pods may tolerate.
pub(super) const TAINTS: [(&str, &str); 4] =
    [("dedicated", "gpu"), ("dedicated", "db"), ("maintenance", ""), ("spot", "true")];

/// How harsh the nodes of one world are, so that worlds differ and not only nodes.
pub(super) struct Climate {
    pub(super) tainted_percent: usize,
    pub(super) cordoned_percent: usize,
    pub(super) labelled_percent: usize,
    pub(super) declaring_percent: usize,
    /// Whether pods run that together may hold more than their node has.
    pub(super) crowded: bool,
    /// Pod slots of a node at most.
    pub(super) most_slots: i64,
}

impl Climate {
    pub(super) fn draw(draw: &mut Draw) -> Self {
        Self {
            tainted_percent: draw.pick(&[0, 10, 20, 30, 50]),
            cordoned_percent: draw.pick(&[0, 15, 25, 40, 50]),
            labelled_percent: draw.pick(&[100, 100, 90, 70]),
            declaring_percent: draw.pick(&[0, 40, 60, 100]),
            crowded: draw.chance(15),
            most_slots: draw.pick(&[110, 110, 110, 6]),
        }
    }
}

/// One node. Objects are what the API server would return from a list.
pub(super) fn node(climate: &Climate, name: &str, draw: &mut Draw) -> Value {
    let mut node = json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "labels": labels(climate, name, draw)},
        "spec": {},
        "status": {"allocatable": allocatable(climate, draw)},
    });
    node["status"]["capacity"] = node["status"]["allocatable"].clone();
    let mut taints = taints(climate, draw);
    if draw.chance(climate.cordoned_percent) {
        node["spec"]["unschedulable"] = json!(true);
        // The node controller adds this taint a moment after the field is set.
        if draw.chance(30) {
            taints.push(json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}));
        }
    }
    if !taints.is_empty() {
        node["spec"]["taints"] = Value::Array(taints);
    }
    let declared: Vec<&str> =
        FEATURES.into_iter().filter(|_| draw.chance(climate.declaring_percent)).collect();
    if !declared.is_empty() {
        node["status"]["declaredFeatures"] = json!(declared);
    }
    node
}

fn labels(climate: &Climate, name: &str, draw: &mut Draw) -> Value {
    let mut labels = Map::new();
    let mut set = |key: &str, value: &str| labels.insert(key.to_owned(), json!(value));
    let has = climate.labelled_percent;
    if draw.chance(has) {
        set(HOSTNAME, name);
    }
    if draw.chance(has) {
        set(ZONE, draw.pick(&ZONES));
    }
    if draw.chance(has) {
        set(REGION, draw.pick(&["region-1", "region-2"]));
    }
    if draw.chance(8) {
        set("failure-domain.beta.kubernetes.io/zone", draw.pick(&ZONES));
    }
    if draw.chance(has) {
        set(RACK, draw.pick(&["rack-1", "rack-2", "rack-3", "rack-4"]));
    }
    if draw.chance(70) {
        set("disk", draw.pick(&["ssd", "hdd", "nvme"]));
    }
    if draw.chance(70) {
        set("generation", draw.pick(&["1", "2", "3", "10", "-4", "third"]));
    }
    Value::Object(labels)
}

fn taints(climate: &Climate, draw: &mut Draw) -> Vec<Value> {
    if !draw.chance(climate.tainted_percent) {
        return Vec::new();
    }
    let chosen = draw.some(&TAINTS, 2);
    chosen
        .into_iter()
        .map(|(key, value)| {
            let effect = draw.pick(&["NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"]);
            if value.is_empty() {
                json!({"key": key, "effect": effect})
            } else {
                json!({"key": key, "value": value, "effect": effect})
            }
        })
        .collect()
}

fn allocatable(climate: &Climate, draw: &mut Draw) -> Value {
    let slots = if climate.most_slots > 100 { 110 } else { draw.between(1, climate.most_slots) };
    let mut allocatable = json!({
        "cpu": draw.pick(&["4", "8", "15890m", "32"]),
        "memory": draw.pick(&["16Gi", "31Gi", "64374952Ki", "128G"]),
        "ephemeral-storage": draw.pick(&["50Gi", "94992122264", "100G"]),
        "pods": slots.to_string(),
    });
    if draw.chance(60) {
        allocatable["nvidia.com/gpu"] = json!(draw.pick(&["1", "4", "8"]));
    }
    if draw.chance(15) {
        allocatable["nvidia.com/mig-1g.10gb"] = json!(draw.pick(&["2", "7"]));
    }
    if draw.chance(20) {
        allocatable["example.com/fpga"] = json!(draw.pick(&["0", "1", "3"]));
    }
    if draw.chance(15) {
        allocatable["hugepages-2Mi"] = json!("1Gi");
    }
    allocatable
}

//! Random histories of a small cluster: what users, controllers and kubelets do to its objects.

use dovetail_objects::Kind;
use serde_json::{Value, json};

use crate::server::{Key, Server};

/// Numbers from a seed (SplitMix64).
pub(crate) struct Choices(pub(crate) u64);

impl Choices {
    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % count as u64) as usize
    }

    pub(crate) fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

const NAMESPACES: [&str; 2] = ["blue", "red"];
const NODES: [&str; 4] = ["n0", "n1", "n2", "n3"];
const QUEUES: [&str; 3] = ["default", "q0", "q1"];
const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

/// One thing that happens on the server.
pub(crate) fn happen(server: &mut Server, choose: &mut Choices) {
    match choose.below(41) {
        33.. => queue(server, choose),
        27..33 => create_gang(server, choose),
        24 | 25 => pod_group(server, choose),
        26 if choose.once_in(2) => delete(server, choose, Kind::PodGroup),
        0..8 => create_pod(server, choose),
        8..13 => change_pod(server, choose),
        13 | 14 => delete(server, choose, Kind::Pod),
        15 | 16 => node(server, choose),
        17 => {
            let kind = *choose.of(&[Kind::Node, Kind::Namespace, Kind::VolumeAttachment]);
            delete(server, choose, kind);
        }
        18 | 19 => storage(server, choose),
        20 => {
            let kinds = [Kind::Claim, Kind::PersistentVolume, Kind::StorageClass, Kind::CsiDriver];
            let kind = *choose.of(&kinds);
            delete(server, choose, kind);
        }
        21 => {
            let mut labels = if choose.once_in(2) { json!({"team": "x"}) } else { json!({}) };
            label_with_queue(&mut labels, choose, 3);
            let name = *choose.of(&NAMESPACES);
            server.apply(Kind::Namespace, "", name, json!({"metadata": {"labels": labels}}));
        }
        22 => devices(server, choose),
        _ => {
            let kinds =
                [Kind::CsiNode, Kind::DeviceClass, Kind::ResourceSlice, Kind::StorageCapacity];
            let kind = *choose.of(&kinds);
            delete(server, choose, kind);
        }
    }
}

/// Queues in every state, and labels that name one of them or another.
fn queue(server: &mut Server, choose: &mut Choices) {
    match choose.below(6) {
        0 => return delete(server, choose, Kind::Queue),
        1 | 2 => {
            let kind = *choose.of(&[Kind::Pod, Kind::Pod, Kind::PodGroup]);
            let keys = server.keys(kind);
            if let Some(key) = keys.get(choose.below(keys.len().max(1))) {
                let queue = *choose.of(&QUEUES);
                server.change(key, |object| {
                    object["metadata"]["labels"]["dovetail.dev/queue"] = json!(queue);
                });
            }
            return;
        }
        _ => {}
    }
    let mut spec = json!({"weight": 1 + choose.below(3),
        "guaranteed": {"cpu": choose.of(&["2", "6", "20"])}});
    match choose.below(5) {
        0 => {}
        1 => spec["namespaceSelector"] = json!({"matchLabels": {"team": "x"}}),
        _ => spec["namespaceSelector"] = json!({}),
    }
    match choose.below(5) {
        0 => spec["parent"] = json!(choose.of(&QUEUES)),
        1 => spec["borrowing"] = json!("WhenFree"),
        2 => spec["limit"] = json!({"nvidia.com/gpu": choose.below(4)}),
        _ => {}
    }
    let name = *choose.of(&QUEUES);
    server.apply(Kind::Queue, "", name, json!({"spec": spec}));
}

/// Names a queue once in so many times.
fn label_with_queue(labels: &mut Value, choose: &mut Choices, times: usize) {
    if choose.once_in(times) {
        labels["dovetail.dev/queue"] = json!(choose.of(&QUEUES));
    }
}

fn delete(server: &mut Server, choose: &mut Choices, kind: Kind) {
    let keys = server.keys(kind);
    if !keys.is_empty() {
        server.delete(choose.of(&keys));
    }
}

fn node(server: &mut Server, choose: &mut Choices) {
    let name = *choose.of(&NODES);
    let gpus = *choose.of(&["0", "2", "4"]);
    let mut allocatable = json!({"cpu": "8", "memory": "64Gi", "pods": "10"});
    if gpus != "0" {
        allocatable["nvidia.com/gpu"] = json!(gpus);
    }
    let mut labels = json!({HOST: name, "nvidia.com/gpu.memory": choose.of(&["81559", "40960"])});
    if !choose.once_in(4) {
        labels[ZONE] = json!(choose.of(&["a", "b"]));
    }
    if choose.once_in(5) {
        labels["nvidia.com/gpu.replicas"] = json!("2");
        labels["nvidia.com/gpu.sharing-strategy"] = json!(choose.of(&["time-slicing", "mps"]));
    }
    let taints = match choose.below(4) {
        0 => json!([{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]),
        _ => json!(null),
    };
    let unschedulable = choose.once_in(6);
    let features = *choose.of(&["[]", r#"["UserNamespacesHostNetworkSupport"]"#]);
    let features: Value = serde_json::from_str(features).unwrap();
    let large = json!({"names": ["web:1", "web@sha256:1"], "sizeBytes": 900_000_000});
    let images = [json!([]), json!([large]), json!(null)];
    let images = choose.of(&images);
    let body = json!({"metadata": {"labels": labels},
        "spec": {"taints": taints, "unschedulable": unschedulable},
        "status": {"allocatable": allocatable, "capacity": allocatable, "images": images,
            "declaredFeatures": features}});
    server.apply(Kind::Node, "", name, body);
}

fn selector(choose: &mut Choices) -> Value {
    match choose.below(4) {
        0 => json!({}),
        1 => json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
        _ => json!({"matchLabels": {"app": choose.of(&["web", "db"])}}),
    }
}

fn term(choose: &mut Choices) -> Value {
    let mut term =
        json!({"topologyKey": choose.of(&[ZONE, HOST]), "labelSelector": selector(choose)});
    match choose.below(4) {
        0 => term["namespaces"] = json!(NAMESPACES),
        1 => term["namespaceSelector"] = json!({"matchLabels": {"team": "x"}}),
        2 => term["namespaceSelector"] = json!({}),
        _ => {}
    }
    term
}

fn create_pod(server: &mut Server, choose: &mut Choices) {
    let (namespace, name) = (*choose.of(&NAMESPACES), format!("p{}", choose.below(7)));
    let key = (Kind::Pod, namespace.to_owned(), name.clone());
    if server.objects.contains_key(&key) {
        server.delete(&key);
        if choose.once_in(2) {
            return;
        }
    }
    let mut requests = json!({"cpu": choose.of(&["500m", "2", "5"]), "memory": "1Gi"});
    if choose.once_in(2) {
        requests["nvidia.com/gpu"] = json!(choose.of(&["1", "2"]));
    }
    let mut ports = json!([]);
    if choose.once_in(5) {
        ports = json!([{"hostPort": 80, "hostIP": choose.of(&["", "10.0.0.1"])}]);
    }
    let mut spec = json!({
        "schedulerName": choose.of(&["dovetail", "dovetail", "dovetail", "other"]),
        "priority": choose.below(2),
        "containers": [{"name": "c", "image": "web:1", "resources": {"requests": requests}, "ports": ports}],
    });
    constrain(&mut spec, choose);
    if choose.once_in(6) {
        spec["nodeName"] = json!(choose.of(&NODES));
    }
    let mut labels = json!({"app": choose.of(&["web", "db", "cache"])});
    if choose.once_in(3) {
        labels["dovetail.dev/class"] = json!(choose.of(&["batch", "inference"]));
    }
    label_with_queue(&mut labels, choose, 2);
    let mut body =
        json!({"metadata": {"labels": labels}, "spec": spec, "status": {"phase": "Pending"}});
    if choose.once_in(2) {
        join(&mut body, choose);
    }
    if choose.once_in(10) {
        body["status"]["nominatedNodeName"] = json!(choose.of(&NODES));
    }
    server.apply(Kind::Pod, namespace, &name, body);
}

/// Pods of one gang that ask for the same.
fn create_gang(server: &mut Server, choose: &mut Choices) {
    let namespace = *choose.of(&NAMESPACES);
    let requests = json!({"cpu": choose.of(&["500m", "2"]), "memory": "1Gi"});
    for at in 0..2 + choose.below(2) {
        let meta = json!({"labels": {"dovetail.dev/gang": "g0"}, "annotations":
            {"dovetail.dev/min-members": "2", "dovetail.dev/max-members": "4"}});
        let body = json!({"metadata": meta, "spec": {"schedulerName": "dovetail",
            "containers": [{"name": "c", "resources": {"requests": requests}}]}});
        server.delete(&(Kind::Pod, namespace.to_owned(), format!("p{at}")));
        server.apply(Kind::Pod, namespace, &format!("p{at}"), body);
    }
}

/// Makes a pod a member of a gang.
fn join(pod: &mut Value, choose: &mut Choices) {
    if !choose.once_in(8) {
        pod["spec"]["priority"] = json!(0);
        pod["spec"]["schedulerName"] = json!("dovetail");
    }
    if choose.once_in(3) {
        pod["spec"]["schedulingGroup"] = json!({"podGroupName": choose.of(&["g0", "g1"])});
        return;
    }
    pod["metadata"]["labels"]["dovetail.dev/gang"] = json!("g0");
    let min = if choose.once_in(10) { "3" } else { "2" };
    let annotations = json!({"dovetail.dev/min-members": min, "dovetail.dev/max-members": "4"});
    pod["metadata"]["annotations"] = annotations;
}

fn pod_group(server: &mut Server, choose: &mut Choices) {
    let mut spec = json!({"schedulingPolicy": {"gang": {"minCount": 1 + choose.below(3)}}});
    match choose.below(5) {
        0 => spec["schedulingPolicy"] = json!({"basic": {}}),
        1 => {
            spec["schedulingConstraints"] =
                json!({"topology": [{"key": choose.of(&[HOST, ZONE])}]});
        }
        _ => {}
    }
    let (namespace, name) = (*choose.of(&NAMESPACES), *choose.of(&["g0", "g1"]));
    server.apply(Kind::PodGroup, namespace, name, json!({"spec": spec}));
}

fn constrain(spec: &mut Value, choose: &mut Choices) {
    match choose.below(12) {
        0 | 1 => {
            spec["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector(choose)}]);
        }
        2 | 3 => {
            spec["affinity"] = json!({"podAntiAffinity":
                {"requiredDuringSchedulingIgnoredDuringExecution": [term(choose)]}});
        }
        4 => {
            spec["affinity"] = json!({"podAffinity":
                {"requiredDuringSchedulingIgnoredDuringExecution": [term(choose)]}});
        }
        5 => spec["schedulingGates"] = json!([{"name": "wait"}]),
        6 => spec["resourceClaims"] = json!([{"name": "claim"}]),
        7 => {
            spec["hostNetwork"] = json!(true);
            spec["hostUsers"] = json!(false);
        }
        8 | 9 => {
            let claim = format!("c{}", choose.below(3));
            spec["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]);
        }
        10 => spec["tolerations"] = json!([{"operator": "Exists"}]),
        _ => {}
    }
}

fn change_pod(server: &mut Server, choose: &mut Choices) {
    let keys = server.keys(Kind::Pod);
    if keys.is_empty() {
        return;
    }
    let key = choose.of(&keys).clone();
    let kind = choose.below(8);
    let label = *choose.of(&["web", "db"]);
    let node = *choose.of(&NODES);
    server.change(&key, |pod| match kind {
        0 => pod["metadata"]["labels"]["app"] = json!(label),
        1 => pod["status"]["phase"] = json!("Succeeded"),
        2 => pod["metadata"]["deletionTimestamp"] = json!("2026-11-01T12:00:00Z"),
        3 => pod["spec"]["schedulingGates"] = json!(null),
        4 => pod["status"]["phase"] = json!("Running"),
        5 if pod["spec"]["nodeName"].is_null() && pod["spec"]["schedulerName"] == "other" => {
            pod["spec"]["nodeName"] = json!(node);
        }
        6 => {
            pod["status"]["containerStatuses"] = json!([{"name": "c",
                "allocatedResources": {"cpu": "6", "memory": "1Gi"}}]);
        }
        // One strange object: its priority is a text.
        7 => pod["spec"]["priority"] = json!("high"),
        _ => {}
    });
}

fn storage(server: &mut Server, choose: &mut Choices) {
    let bound = choose.once_in(2);
    let number = choose.below(3);
    match choose.below(7) {
        0 => {
            let body = json!({"provisioner": "disk.example.com",
                "volumeBindingMode": choose.of(&["Immediate", "WaitForFirstConsumer"])});
            server.apply(Kind::StorageClass, "", "fast", body);
        }
        1 => {
            let mut body = json!({"spec": {"csi": {"driver": "disk.example.com",
                "volumeHandle": format!("h{number}")}, "storageClassName": "fast"}});
            if choose.once_in(2) {
                body["metadata"] = json!({"labels": {ZONE: "a"}});
            }
            server.apply(Kind::PersistentVolume, "", &format!("v{number}"), body);
        }
        2 | 3 => {
            let mode = choose.of(&["ReadWriteOnce", "ReadWriteOncePod"]);
            let mut body = json!({"spec": {"storageClassName": "fast", "accessModes": [mode],
                "resources": {"requests": {"storage": "10Gi"}}}});
            if bound {
                body["spec"]["volumeName"] = json!(format!("v{number}"));
                body["metadata"] =
                    json!({"annotations": {"pv.kubernetes.io/bind-completed": "yes"}});
            }
            let namespace = *choose.of(&NAMESPACES);
            server.apply(Kind::Claim, namespace, &format!("c{number}"), body);
        }
        4 => {
            let body = json!({"spec": {"drivers": [{"name": "disk.example.com",
                "allocatable": {"count": choose.below(3)}}]}});
            let node = *choose.of(&NODES);
            server.apply(Kind::CsiNode, "", node, body);
        }
        5 => {
            let body = json!({"spec": {"attacher": "disk.example.com", "nodeName": choose.of(&NODES),
                "source": {"persistentVolumeName": format!("v{number}")}}});
            server.apply(Kind::VolumeAttachment, "", &format!("a{}", choose.below(3)), body);
        }
        _ => {
            let body = json!({"spec": {"storageCapacity": choose.once_in(2),
                "preventPodSchedulingIfMissing": choose.once_in(2)}});
            server.apply(Kind::CsiDriver, "", "disk.example.com", body);
        }
    }
}

fn devices(server: &mut Server, choose: &mut Choices) {
    match choose.below(3) {
        0 => {
            let body = json!({"spec": {"extendedResourceName": "nvidia.com/gpu"}});
            server.apply(Kind::DeviceClass, "", "gpu", body);
        }
        1 => {
            let body = json!({"spec": {"driver": "gpu.nvidia.com", "nodeName": choose.of(&NODES)}});
            server.apply(Kind::ResourceSlice, "", &format!("s{}", choose.below(2)), body);
        }
        _ => {
            let body = json!({"storageClassName": "fast", "capacity": "100Gi",
                "nodeTopology": {"matchLabels": {ZONE: choose.of(&["a", "b"])}}});
            server.apply(Kind::StorageCapacity, "kube-system", "room", body);
        }
    }
}

/// The API server accepts a bind if the pod is still the one that was decided about.
pub(crate) fn bind(
    server: &mut Server,
    namespace: &str,
    name: &str,
    uid: &str,
    node: &str,
) -> bool {
    let key: Key = (Kind::Pod, namespace.to_owned(), name.to_owned());
    let Some(pod) = server.objects.get(&key) else { return false };
    let free = pod["spec"]["nodeName"].is_null() && pod["metadata"]["deletionTimestamp"].is_null();
    if pod["metadata"]["uid"] != uid || !free {
        return false;
    }
    server.change(&key, |pod| pod["spec"]["nodeName"] = json!(node));
    true
}

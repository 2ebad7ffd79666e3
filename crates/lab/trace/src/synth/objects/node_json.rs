//! Nodes.

use serde_json::{Map, Value, json};

use super::metadata::{ago, of_cluster};
use super::noise::{letters, mixed};
use super::plan::{ClusterPlan, NodeState, PlannedNode};

/// Images that a node remembers; kubelets tell fifty.
const IMAGES: u64 = 50;

pub(super) fn nodes(plan: &ClusterPlan) -> impl Iterator<Item = Value> + '_ {
    plan.nodes.iter().enumerate().map(move |(number, node)| {
        let name = node.name(number);
        let mut metadata = of_cluster(plan, "Node", &name, labels(node, &name));
        if node.state == NodeState::Kept {
            metadata["annotations"] =
                json!({"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"});
        }
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": metadata,
            "spec": spec(node, number as u64),
            "status": status(node, number as u64, &name)
        })
    })
}

fn labels(node: &PlannedNode, name: &str) -> Value {
    let pool = node.pool;
    let purchase = if pool.is_spot { "spot" } else { "on-demand" };
    let mut labels = json!({
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "karpenter.k8s.aws/instance-category": &pool.instance[..1],
        "karpenter.k8s.aws/instance-cpu": (pool.cpu_milli / 1_000 + 1).to_string(),
        "karpenter.k8s.aws/instance-hypervisor": "nitro",
        "karpenter.sh/capacity-type": purchase,
        "karpenter.sh/nodepool": pool.name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": pool.instance,
        "topology.k8s.aws/zone-id": "use1-az4",
        "topology.kubernetes.io/region": "us-east-1",
        "topology.kubernetes.io/zone": "us-east-1a"
    });
    if pool.gpus > 0 {
        let is_shared = pool.resource.ends_with(".shared");
        let replicas = if is_shared { pool.units.div_euclid(pool.gpus) } else { 1 };
        labels["nvidia.com/cuda.driver.major"] = json!("580");
        labels["nvidia.com/gpu.count"] = json!(pool.gpus.to_string());
        labels["nvidia.com/gpu.memory"] = json!(pool.gpu_memory_mib.to_string());
        labels["nvidia.com/gpu.present"] = json!("true");
        labels["nvidia.com/gpu.product"] = json!(pool.model);
        labels["nvidia.com/gpu.replicas"] = json!(replicas.to_string());
    }
    if pool.resource.contains("/mig-") {
        labels["nvidia.com/mig.config"] = json!("all-1g.10gb");
        labels["nvidia.com/mig.config.state"] = json!("success");
        labels["nvidia.com/mig.strategy"] = json!("mixed");
    }
    labels
}

fn spec(node: &PlannedNode, number: u64) -> Value {
    let mut taints = Vec::new();
    if let Some(key) = node.pool.taint {
        taints.push(json!({"effect": "NoSchedule", "key": key, "value": "true"}));
    }
    let mut spec = Map::new();
    if node.state == NodeState::Cordoned {
        taints.push(json!({
            "effect": "NoSchedule",
            "key": "node.kubernetes.io/unschedulable",
            "timeAdded": ago(9 * 60)
        }));
        spec.insert("unschedulable".into(), json!(true));
    }
    let machine = letters(number, 17);
    spec.insert("providerID".into(), json!(format!("aws:///us-east-1a/i-{machine}")));
    if !taints.is_empty() {
        spec.insert("taints".into(), Value::Array(taints));
    }
    Value::Object(spec)
}

fn status(node: &PlannedNode, number: u64, name: &str) -> Value {
    let pool = node.pool;
    let broken = u32::from(node.state == NodeState::Broken);
    let offers = |units: u32, reserved_mib: u32| {
        let mut offers = json!({
            "cpu": format!("{}m", pool.cpu_milli),
            "ephemeral-storage": "1887436800",
            "hugepages-1Gi": "0",
            "hugepages-2Mi": "0",
            "memory": format!("{}Ki", u64::from(pool.memory_mib + reserved_mib) * 1_024),
            "pods": "110"
        });
        if pool.gpus > 0 {
            offers[pool.resource] = json!(units.to_string());
        }
        offers
    };
    json!({
        "addresses": [
            {"address": format!("10.{}.{}.{}", node.place, number / 250, number % 250), "type": "InternalIP"},
            {"address": name, "type": "Hostname"}
        ],
        "allocatable": offers(pool.units - broken, 0),
        "capacity": offers(pool.units, 4_096),
        "conditions": conditions(node),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "images": (0..IMAGES).map(image).collect::<Vec<_>>(),
        "nodeInfo": {
            "architecture": "amd64",
            "containerRuntimeVersion": "containerd://2.1.4",
            "kernelVersion": "6.12.40-63.114.amzn2023.x86_64",
            "kubeProxyVersion": "v1.34.1",
            "kubeletVersion": "v1.34.1",
            "machineID": letters(number, 32),
            "operatingSystem": "linux",
            "osImage": "Amazon Linux 2023.8.20250818"
        }
    })
}

fn conditions(node: &PlannedNode) -> Value {
    let is_up = node.state != NodeState::NotReady;
    let pressure = |kind: &str, reason: &str| {
        json!({
            "lastHeartbeatTime": ago(1),
            "lastTransitionTime": ago(60 * 24 * 40),
            "message": format!("kubelet has no {kind}"),
            "reason": reason,
            "status": "False",
            "type": kind
        })
    };
    json!([
        pressure("MemoryPressure", "KubeletHasSufficientMemory"),
        pressure("DiskPressure", "KubeletHasNoDiskPressure"),
        pressure("PIDPressure", "KubeletHasSufficientPID"),
        {
            "lastHeartbeatTime": ago(if is_up { 1 } else { 200 }),
            "lastTransitionTime": ago(if is_up { 60 * 24 * 40 } else { 200 }),
            "message": if is_up { "kubelet is posting ready status" } else { "Kubelet stopped posting node status." },
            "reason": if is_up { "KubeletReady" } else { "NodeStatusUnknown" },
            "status": if is_up { "True" } else { "Unknown" },
            "type": "Ready"
        }
    ])
}

fn image(number: u64) -> Value {
    let name = letters(number, 8);
    let (one, other) = (mixed(number), mixed(number ^ 1));
    json!({
        "names": [
            format!("registry.example.com/{name}@sha256:{one:016x}{other:016x}{one:016x}{other:016x}"),
            format!("registry.example.com/{name}:v{}", number % 9)
        ],
        "sizeBytes": 100_000_000 + one % 9_000_000_000
    })
}

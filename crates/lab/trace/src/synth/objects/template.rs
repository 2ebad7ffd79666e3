//! What the pods of an owner are made from: the same in its template and in its pods.

use serde_json::{Map, Value, json};

use super::plan::ClusterPlan;
use super::pools::POOLS;
use super::work::{Family, OwnedWork, Slip};

/// Labels of the pods.
pub(super) fn labels(work: &OwnedWork) -> Value {
    let mut labels = json!({"app": work.name, "app.kubernetes.io/managed-by": "platform"});
    match work.family {
        Family::Train => {
            labels["training.kubeflow.org/job-name"] = json!(work.name);
            labels["training.kubeflow.org/operator-name"] = json!("pytorchjob-controller");
            labels["training.kubeflow.org/replica-type"] = json!("worker");
            if !work.has(Slip::NoGang) {
                labels["kueue.x-k8s.io/queue-name"] = json!("training");
            }
        }
        Family::Serve | Family::Web => labels["pod-template-hash"] = json!(work.hash(10)),
        Family::Batch => labels["batch.kubernetes.io/job-name"] = json!(work.name),
        Family::Notebook => labels["notebook-name"] = json!(work.name),
        Family::Agent => labels["controller-revision-hash"] = json!(work.hash(9)),
        Family::Bare | Family::Store => {}
    }
    labels
}

/// Annotations of the pods; `None` where there are none.
pub(super) fn annotations(work: &OwnedWork) -> Option<Value> {
    match work.slip? {
        Slip::HeldInPlace => {
            Some(json!({"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}))
        }
        Slip::CouldBeOnSpot => Some(json!({"dovetail.dev/checkpoint-interval": "30m"})),
        _ => None,
    }
}

/// The template that an owner carries.
pub(super) fn template(plan: &ClusterPlan, work: &OwnedWork) -> Value {
    let mut metadata = json!({"labels": labels(work)});
    if let Some(annotations) = annotations(work) {
        metadata["annotations"] = annotations;
    }
    json!({"metadata": metadata, "spec": spec(plan, work)})
}

/// The spec of the pods without what differs from one to the other.
pub(super) fn spec(plan: &ClusterPlan, work: &OwnedWork) -> Map<String, Value> {
    let mut spec = Map::new();
    let mut set = |field: &str, value: Value| spec.insert(field.to_owned(), value);
    set("containers", containers(plan, work));
    set("dnsPolicy", json!("ClusterFirst"));
    set("enableServiceLinks", json!(true));
    set("preemptionPolicy", json!("PreemptLowerPriority"));
    set("priority", json!(if work.family == Family::Serve { 1_000 } else { 0 }));
    let restarts = match work.family {
        Family::Batch | Family::Bare => "Never",
        _ => "Always",
    };
    set("restartPolicy", json!(restarts));
    set("schedulerName", json!("default-scheduler"));
    set("securityContext", json!({"fsGroup": 2_000, "runAsNonRoot": true}));
    set("serviceAccount", json!("default"));
    set("serviceAccountName", json!("default"));
    set("terminationGracePeriodSeconds", json!(30));
    set("tolerations", Value::Array(tolerations(work)));
    set("volumes", Value::Array(volumes(work)));
    let priority_class = match work.family {
        Family::Serve if !work.has(Slip::NoPriority) => Some("serving"),
        Family::Agent => Some("system-node-critical"),
        _ => None,
    };
    if let Some(name) = priority_class {
        set("priorityClassName", json!(name));
    }
    if work.units > 0 && work.family != Family::Bare {
        set("nodeSelector", json!({"karpenter.sh/nodepool": POOLS[work.pool].name}));
    }
    if work.has(Slip::OnePerNode) {
        let term = json!({
            "labelSelector": {"matchLabels": {"app": work.name}},
            "topologyKey": "kubernetes.io/hostname"
        });
        let rule = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
        set("affinity", json!({"podAntiAffinity": rule}));
    }
    spec
}

fn tolerations(work: &OwnedWork) -> Vec<Value> {
    let mut tolerations = Vec::new();
    let taint = POOLS[work.pool].taint.filter(|_| work.units > 0 && !work.has(Slip::NoToleration));
    if let Some(key) = taint {
        tolerations.push(json!({"effect": "NoSchedule", "key": key, "operator": "Exists"}));
    }
    if work.has(Slip::BesideGpus) || work.family == Family::Agent {
        tolerations.push(json!({"operator": "Exists"}));
    }
    tolerations
}

fn volumes(work: &OwnedWork) -> Vec<Value> {
    let mut volumes = Vec::new();
    if work.family == Family::Train {
        if !work.has(Slip::SmallSharedMemory) {
            let memory = json!({"medium": "Memory", "sizeLimit": "64Gi"});
            volumes.push(json!({"emptyDir": memory, "name": "shm"}));
        }
        if !work.has(Slip::SavesNothing) {
            let share = json!({"path": format!("/runs/{}", work.name), "server": "10.0.0.9"});
            volumes.push(json!({"name": "runs", "nfs": share}));
        }
    }
    volumes
}

fn containers(plan: &ClusterPlan, work: &OwnedWork) -> Value {
    let mut containers = vec![main(plan, work)];
    if work.has(Slip::HelperRunsOn) {
        containers.push(json!({
            "image": "registry.example.com/log-shipper:2.4",
            "imagePullPolicy": "IfNotPresent",
            "name": "log-shipper",
            "resources": {"limits": {"memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "256Mi"}},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File"
        }));
    }
    Value::Array(containers)
}

fn main(plan: &ClusterPlan, work: &OwnedWork) -> Value {
    let port = 8_000 + work.namespace;
    let probe = json!({
        "failureThreshold": 3,
        "httpGet": {"path": "/healthz", "port": port, "scheme": "HTTP"},
        "periodSeconds": 10,
        "successThreshold": 1,
        "timeoutSeconds": 1
    });
    let mut main = json!({
        "args": ["--config", format!("/etc/{}/config.yaml", work.name), "--log-format", "json"],
        "env": env(plan, work),
        "image": image(work),
        "imagePullPolicy": "IfNotPresent",
        "livenessProbe": probe,
        "name": "main",
        "ports": [{"containerPort": port, "name": "http", "protocol": "TCP"}],
        "readinessProbe": probe,
        "resources": resources(work),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": mounts(work)
    });
    if work.family == Family::Agent {
        main["securityContext"] = json!({"allowPrivilegeEscalation": false});
    }
    main
}

fn env(plan: &ClusterPlan, work: &OwnedWork) -> Value {
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}});
    let plain = |name: &str, value: String| json!({"name": name, "value": value});
    let team = plan.namespace(work.namespace);
    let mut env = vec![
        field("POD_NAME", "metadata.name"),
        field("POD_NAMESPACE", "metadata.namespace"),
        field("NODE_NAME", "spec.nodeName"),
        plain("SERVICE_NAME", work.name.clone()),
        plain("TEAM", team.clone()),
        plain("LOG_LEVEL", "info".to_owned()),
        plain("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.monitoring:4317".to_owned()),
        plain("DATA_BUCKET", format!("s3://example-{team}/{}", work.name)),
        plain("NCCL_DEBUG", "WARN".to_owned()),
        plain("OMP_NUM_THREADS", "8".to_owned()),
    ];
    if work.has(Slip::SeesAll) {
        env.push(plain("NVIDIA_VISIBLE_DEVICES", "all".to_owned()));
    }
    Value::Array(env)
}

/// Names by which tools that look at images know what runs.
pub(super) fn image(work: &OwnedWork) -> String {
    match work.family {
        Family::Train => "registry.example.com/pytorch-train:2.9".to_owned(),
        Family::Serve => "registry.example.com/vllm/vllm-openai:v0.11.0".to_owned(),
        Family::Batch | Family::Bare => "registry.example.com/score:1.8".to_owned(),
        Family::Notebook => "registry.example.com/jupyter/pytorch-notebook:2026-10".to_owned(),
        Family::Web | Family::Store => format!("registry.example.com/{}:4.2", work.name),
        Family::Agent => format!("registry.example.com/{}:1.9", work.name),
    }
}

fn resources(work: &OwnedWork) -> Value {
    let memory = format!("{}Mi", work.memory_mib);
    let mut limits = json!({"memory": memory});
    let mut requests = json!({"cpu": format!("{}m", work.cpu_milli), "memory": memory});
    if work.units > 0 {
        let resource = POOLS[work.pool].resource;
        limits[resource] = json!(work.units.to_string());
        requests[resource] = json!(work.units.to_string());
    }
    json!({"limits": limits, "requests": requests})
}

fn mounts(work: &OwnedWork) -> Value {
    let mut mounts: Vec<Value> = volumes(work)
        .iter()
        .map(|volume| match volume["name"].as_str() {
            Some("shm") => json!({"mountPath": "/dev/shm", "name": "shm"}),
            _ => json!({"mountPath": "/runs", "name": volume["name"]}),
        })
        .collect();
    mounts.push(json!({
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        "name": "kube-api-access",
        "readOnly": true
    }));
    Value::Array(mounts)
}

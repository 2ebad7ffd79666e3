//! A cluster in which each patch has something to mend.

use serde_json::{Value, json};

use super::{Server, owners};

const GPU: &str = "nvidia.com/gpu";
const SLICE: &str = "nvidia.com/mig-1g.10gb";
const POOL: &str = "karpenter.sh/nodepool";
pub(super) const NAMESPACE: &str = "prod";

/// A finding that a patch mends.
pub(super) struct Case {
    pub(super) check: &'static str,
    pub(super) kind: &'static str,
    pub(super) name: &'static str,
}

impl Case {
    /// The object as a finding names it.
    pub(super) fn object(&self) -> String {
        let is_of_cluster = matches!(self.kind, "Cluster" | "Namespace" | "NodePool");
        format!("{}/{}/{}", self.kind, if is_of_cluster { "" } else { NAMESPACE }, self.name)
    }
}

const fn of(check: &'static str, kind: &'static str, name: &'static str) -> Case {
    Case { check, kind, name }
}

pub(super) const CASES: [Case; 40] = [
    of("REQ-02", "Deployment", "sees-all"),
    of("REQ-03", "Deployment", "too-large"),
    of("REQ-04", "Deployment", "half-used"),
    of("REQ-05", "Deployment", "never-used"),
    of("REQ-06", "Deployment", "small"),
    of("REQ-07", "Deployment", "guessed"),
    of("REQ-08", "Deployment", "greedy"),
    of("REQ-09", "Deployment", "throttled"),
    of("REQ-10", "Deployment", "killed"),
    of("REQ-11", "Deployment", "helped"),
    of("REQ-12", "Deployment", "loader"),
    of("SCH-01", "NodePool", "bare"),
    of("SCH-02", "Deployment", "web"),
    of("SCH-03", "Deployment", "careless"),
    of("SCH-04", "Deployment", "shut-out"),
    of("SCH-05", "Deployment", "any-model"),
    of("SCH-06", "NodePool", "odd"),
    of("SCH-09", "Deployment", "gang"),
    of("SCH-10", "Deployment", "apart"),
    of("SCH-10", "Deployment", "spread"),
    of("SCH-11", "Deployment", "answers"),
    of("SHR-06", "Deployment", "on-slices"),
    of("IDL-01", "Deployment", "notebook"),
    of("IDL-07", "Deployment", "two-revisions"),
    of("GOV-01", "Namespace", "free"),
    of("GOV-04", "Cluster", ""),
    of("AUT-01", "Deployment", "held"),
    of("AUT-02", "PodDisruptionBudget", "budget"),
    of("AUT-03", "NodePool", "empty"),
    of("AUT-04", "NodePool", "kept"),
    of("REQ-08", "Fleet", "custom"),
    of("REQ-12", "Fleet", "custom-loader"),
    of("IDL-04", "Job", "retried"),
    of("REQ-05", "Job", "unused-job"),
    of("IDL-04", "CronJob", "nightly"),
    of("REQ-08", "CronJob", "nightly-greedy"),
    of("REQ-05", "StatefulSet", "unused-set"),
    of("REQ-08", "StatefulSet", "set-greedy"),
    of("IDL-01", "Notebook", "lab"),
    of("REQ-08", "Notebook", "lab-greedy"),
];

/// Deployments whose pods never all run before or after.
const UNSTEADY: [&str; 4] = ["too-large", "shut-out", "two-revisions", "changed"];

/// A machine of a pool with GPUs, or slices of them.
fn node(name: &str, pool: &str, gpus: &[(&str, u32)], taints: &Value) -> Value {
    let mut offers = json!({"cpu": "192", "memory": "2000Gi", "pods": "110"});
    for (resource, count) in gpus {
        offers[*resource] = json!(count.to_string());
    }
    let mut labels = json!({"kubernetes.io/hostname": name, POOL: pool});
    if !gpus.is_empty() {
        let model = if pool == "l4" { "NVIDIA-L4" } else { "NVIDIA-H100-80GB-HBM3" };
        labels["nvidia.com/gpu.product"] = json!(model);
        labels["nvidia.com/gpu.present"] = json!("true");
    }
    let annotations = match pool {
        "kept" => json!({"karpenter.sh/do-not-disrupt": "true"}),
        _ => json!({}),
    };
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"taints": taints},
        "status": {"capacity": offers, "allocatable": offers}
    })
}

fn taint(key: &str) -> Value {
    json!({"key": key, "effect": "NoSchedule"})
}

fn pool(name: &str, taints: &Value, annotations: &Value) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never", "budgets": []},
            "template": {
                "metadata": {"annotations": annotations},
                "spec": {"taints": taints, "requirements": [{"key": "x", "operator": "Exists"}]}
            }
        }
    })
}

/// Nodes and the pools that they are of.
fn nodes_and_pools() -> Vec<Value> {
    let gpu = json!([taint(GPU)]);
    let mut objects = vec![node("c1", "web", &[], &json!([]))];
    for number in 0..6 {
        objects.push(node(&format!("good-{number}"), "good", &[(GPU, 8)], &gpu));
    }
    // Others keep off, so that it is known who is where.
    let own = |key: &str| json!([taint(GPU), taint(key)]);
    let team = own("team-b");
    let eight = [(GPU, 8)];
    for (name, taints) in [
        ("big", &own("big")),
        ("l4", &gpu),
        ("held", &gpu),
        ("empty", &own("reserved")),
        ("kept", &gpu),
        ("team", &team),
        ("bare", &json!([])),
        ("odd", &json!([{"key": "gpu-node", "value": "yes", "effect": "NoSchedule"}])),
    ] {
        objects.push(node(&format!("{name}-0"), name, &eight, taints));
        let annotations = match name {
            "kept" => json!({"karpenter.sh/do-not-disrupt": "true", "note": "stays"}),
            _ => json!({"note": "stays"}),
        };
        objects.push(pool(name, taints, &annotations));
    }
    objects.push(node("slices-0", "slices", &[(SLICE, 14)], &json!([taint(SLICE)])));
    objects
}

/// Kinds of which the server is to know.
fn definitions() -> Vec<Value> {
    let definition = |group: &str, version: &str, plural: &str, kind: &str, scope: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            // Groups of Kubernetes' own name want it.
            "metadata": {"name": format!("{plural}.{group}"),
                "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
            "spec": {
                "group": group, "scope": scope,
                "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
                "versions": [{"name": version, "served": true, "storage": true, "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]
            }
        })
    };
    vec![
        definition("karpenter.sh", "v1", "nodepools", "NodePool", "Cluster"),
        definition("example.com", "v1", "fleets", "Fleet", "Namespaced"),
        definition("kubeflow.org", "v1", "notebooks", "Notebook", "Namespaced"),
        definition(
            "autoscaling.k8s.io",
            "v1",
            "verticalpodautoscalers",
            "VerticalPodAutoscaler",
            "Namespaced",
        ),
    ]
}

/// A Deployment of one pod with a GPU of the good pool, in which nothing is wrong.
pub(super) fn deployment(name: &str, change: impl FnOnce(&mut Value)) -> Value {
    let labels = json!({"app": name, "team": "search", "dovetail.dev/class": "batch"});
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": 1, "strategy": {"type": "Recreate"}, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": labels, "annotations": {"note": "stays"}}, "spec": {
                "terminationGracePeriodSeconds": 1,
                "nodeSelector": {POOL: "good"},
                "tolerations": [{"key": GPU, "operator": "Exists"}],
                "containers": [{
                    "name": "main", "image": "work:1", "env": [{"name": "KEY", "value": "stays"}],
                    "resources": {
                        "requests": {"cpu": "4", "memory": "32Gi"}, "limits": {"memory": "32Gi", GPU: "1"}
                    }
                }]
            }}
        }
    });
    change(&mut object);
    object
}

fn spec(object: &mut Value) -> &mut Value {
    &mut object["spec"]["template"]["spec"]
}

fn gpus(object: &mut Value, resource: &str, count: u32) {
    let container = &mut spec(object)["containers"][0];
    container["resources"]["limits"] = json!({"memory": "32Gi", resource: count.to_string()});
}

fn of_pool(object: &mut Value, pool: &str) {
    spec(object)["nodeSelector"] = json!({POOL: pool});
}

/// Any of several pools.
fn of_pools(object: &mut Value, pools: &[&str]) {
    let terms = json!([{"matchExpressions": [{"key": POOL, "operator": "In", "values": pools}]}]);
    let required = json!({"nodeSelectorTerms": terms});
    spec(object)["nodeSelector"] = json!({});
    spec(object)["affinity"] =
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
}

fn tolerations(keys: &[&str]) -> Value {
    keys.iter().map(|key| json!({"key": key, "operator": "Exists"})).collect()
}

fn class(object: &mut Value, class: &str) {
    object["spec"]["template"]["metadata"]["labels"]["dovetail.dev/class"] = json!(class);
}

fn no_gpus(object: &mut Value) {
    spec(object)["containers"][0]["resources"]["limits"] = json!({"memory": "32Gi"});
    spec(object)["nodeSelector"] = json!({POOL: "web"});
    spec(object)["tolerations"] = json!([]);
}

fn like(name: &str) -> Value {
    json!({"matchLabels": {"app": name}})
}

/// What is asked of pods and of where they may go.
fn requests() -> Vec<Value> {
    let shared_memory = |d: &mut Value| {
        spec(d)["volumes"] =
            json!([{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}]);
        spec(d)["containers"][0]["volumeMounts"] =
            json!([{"name": "shm", "mountPath": "/dev/shm"}]);
    };
    vec![
        deployment("sees-all", |d| {
            no_gpus(d);
            let env = json!({"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"});
            spec(d)["containers"][0]["env"].as_array_mut().expect("a list").push(env);
        }),
        deployment("too-large", |d| {
            gpus(d, GPU, 16);
            of_pool(d, "big");
            spec(d)["tolerations"] = tolerations(&[GPU, "big"]);
        }),
        deployment("half-used", |d| gpus(d, GPU, 4)),
        deployment("never-used", |_| {}),
        deployment("small", |d| {
            of_pools(d, &["good", "slices"]);
            spec(d)["tolerations"] = tolerations(&[GPU, SLICE]);
        }),
        deployment("greedy", |d| {
            spec(d)["containers"][0]["resources"]["requests"]["cpu"] = json!("30")
        }),
        deployment("killed", |d| d["spec"]["replicas"] = json!(3)),
        deployment("helped", |d| {
            let limits = json!({"limits": {GPU: "1", "memory": "1Gi"}});
            spec(d)["initContainers"] = json!([{"name": "helper", "image": "helper:1", "restartPolicy": "Always", "resources": limits}]);
        }),
        deployment("loader", |d| class(d, "training")),
        deployment("web", |d| {
            no_gpus(d);
            let prefers = json!({"weight": 100, "preference":
                {"matchExpressions": [{"key": POOL, "operator": "In", "values": ["bare"]}]}});
            spec(d)["nodeSelector"] = json!({});
            spec(d)["affinity"] = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [prefers]}});
        }),
        deployment("careless", |d| {
            no_gpus(d);
            spec(d)["tolerations"] = tolerations(&["spot", GPU]);
        }),
        deployment("changed", |d| {
            no_gpus(d);
            spec(d)["tolerations"] = json!([{"operator": "Exists"}]);
        }),
        deployment("shut-out", |d| of_pool(d, "team")),
        deployment("any-model", |d| of_pools(d, &["good", "l4"])),
        deployment("gang", |d| {
            class(d, "training");
            d["spec"]["replicas"] = json!(2);
            shared_memory(d);
        }),
        deployment("on-slices", |d| {
            class(d, "training");
            shared_memory(d);
            gpus(d, SLICE, 2);
            of_pools(d, &["good", "slices"]);
            spec(d)["tolerations"] = tolerations(&[GPU, SLICE]);
        }),
    ]
}

/// Who waits for whom, what keeps nodes, and what other objects say.
fn others() -> Vec<Value> {
    let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": like("apart"), "topologyKey": "kubernetes.io/hostname"},
        {"labelSelector": like("nobody"), "topologyKey": "kubernetes.io/hostname"}
    ]}});
    let spread = json!([{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": like("spread")}]);
    let mut free = deployment("free", |_| {});
    free["metadata"]["namespace"] = json!("free");
    let hard = json!({"requests.nvidia.com/gpu": "100", "requests.nvidia.com/mig-1g.10gb": "100"});
    let fleet = |name: &str, from: Value| {
        let pods = json!([{"name": "head", "template": {"spec": {"containers": [{"name": "head"}]}}},
            {"name": "workers", "template": from["spec"]["template"]}]);
        json!({"apiVersion": "example.com/v1", "kind": "Fleet",
            "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"groups": pods}})
    };
    let greedy = deployment("custom", |d| {
        spec(d)["containers"][0]["resources"]["requests"]["cpu"] = json!("30")
    });
    let loader = deployment("custom-loader", |d| class(d, "training"));
    vec![
        deployment("apart", |d| {
            d["spec"]["replicas"] = json!(2);
            spec(d)["affinity"] = apart;
        }),
        deployment("spread", |d| {
            d["spec"]["replicas"] = json!(2);
            spec(d)["topologySpreadConstraints"] = spread;
        }),
        deployment("answers", |d| class(d, "inference")),
        deployment("notebook", |d| class(d, "interactive")),
        deployment("two-revisions", |d| d["spec"]["strategy"] = json!({"type": "RollingUpdate"})),
        deployment("held", |d| {
            of_pool(d, "held");
            let annotations = &mut d["spec"]["template"]["metadata"]["annotations"];
            annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] = json!("false");
            annotations["karpenter.sh/do-not-disrupt"] = json!("true");
        }),
        deployment("budgeted", |_| {}),
        deployment("guessed", |_| {}),
        deployment("throttled", |d| {
            spec(d)["containers"][0]["resources"]["limits"]["cpu"] = json!("4");
        }),
        recommender("guessed", "memory", "8Gi", "10Gi"),
        recommender("throttled", "cpu", "6", "9"),
        free,
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "budget", "namespace": NAMESPACE},
            "spec": {"minAvailable": 1, "selector": like("budgeted")}}),
        json!({"apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "all", "namespace": NAMESPACE}, "spec": {"hard": hard}}),
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "other"},
            "spec": {"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["secrets"]}]},
                "validations": [{"expression": "true"}]}}),
        fleet("custom", greedy),
        fleet("custom-loader", loader),
    ]
}

/// What somebody has seen that a Deployment needs.
fn recommender(name: &str, resource: &str, target: &str, upper: &str) -> Value {
    let of_main = json!({"containerName": "main", "target": {resource: target}, "upperBound": {resource: upper}});
    json!({"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}},
        "status": {"recommendation": {"containerRecommendations": [of_main]}}})
}

/// A pod of a fleet from its template: nobody else makes it.
fn pod_of(fleet: &Value) -> Value {
    let template = &fleet["spec"]["groups"][1]["template"];
    let metadata = &fleet["metadata"];
    let owner = json!({"apiVersion": "example.com/v1", "kind": "Fleet", "name": metadata["name"],
        "uid": metadata["uid"], "controller": true});
    json!({"apiVersion": "v1", "kind": "Pod", "spec": template["spec"], "metadata": {
        "name": metadata["name"], "namespace": NAMESPACE, "labels": template["metadata"]["labels"],
        "ownerReferences": [owner]
    }})
}

fn play_fleets(server: &Server) {
    let fleets = server.shell(&format!("kubectl get fleets -n {NAMESPACE} -o json"), "");
    let fleets: Value = serde_json::from_str(&fleets).expect("JSON");
    for fleet in fleets["items"].as_array().expect("items") {
        let pod = pod_of(fleet);
        let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
        server.shell(
            &format!("kubectl delete pod {name} -n {NAMESPACE} --ignore-not-found --wait"),
            "",
        );
        server.create(&[pod]);
        let wait = "--for=condition=Ready --timeout=180s";
        server.shell(&format!("kubectl wait pod/{name} -n {NAMESPACE} {wait}"), "");
    }
}

/// Everything, with all pods that can run.
pub(super) fn build(server: &Server) {
    server.create(&definitions());
    server.shell("kubectl wait --for=condition=Established crd --all --timeout=120s", "");
    for name in [NAMESPACE, "free"] {
        server.create(&[
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        ]);
        // Pods need it, and it comes a moment later.
        server.shell(
            &format!("kubectl wait --for=create serviceaccount/default -n {name} --timeout=120s"),
            "",
        );
    }
    server.create(&nodes_and_pools());
    server.shell("kubectl wait --for=condition=Ready nodes --all --timeout=180s", "");
    let made = [requests(), others()].concat();
    server.create(&made);
    for deployment in made.iter().filter(|object| object["kind"] == "Deployment") {
        let name = deployment["metadata"]["name"].as_str().expect("a name");
        if deployment["metadata"]["namespace"] == NAMESPACE
            && !["too-large", "shut-out"].contains(&name)
        {
            server.rolled_out("deployment", name);
        }
    }
    server.shell("kubectl rollout status deployment/free -n free --timeout=180s", "");
    // A new pod that is not available for an hour, and an old one that stays until then.
    let change = json!({"spec": {"minReadySeconds": 3600, "progressDeadlineSeconds": 7200, "template": {"metadata": {"labels": {"round": "2"}}}}});
    server
        .shell(&format!("kubectl patch deployment two-revisions -n {NAMESPACE} -p '{change}'"), "");
    let wait = format!("kubectl wait -n {NAMESPACE} --timeout=180s");
    server.shell(&format!("{wait} --for=create pod -l app=two-revisions,round=2"), "");
    server.shell(&format!("{wait} --for=condition=Ready pod -l app=two-revisions,round=2"), "");
    kill(server);
    play_fleets(server);
    owners::build(server);
}

/// One kill for memory of each pod of a Deployment.
fn kill(server: &Server) {
    let names = server.shell(&format!("kubectl get pods -n {NAMESPACE} -l app=killed -o name"), "");
    let now = server.shell("date -u +%FT%TZ", "");
    let ended = json!({"exitCode": 137, "reason": "OOMKilled", "finishedAt": now.trim(), "startedAt": now.trim()});
    let status = json!({"status": {"containerStatuses": [{
        "name": "main", "image": "work:1", "imageID": "", "ready": true, "restartCount": 1,
        "lastState": {"terminated": ended}
    }]}});
    for name in names.lines() {
        server.shell(
            &format!("kubectl patch {name} -n {NAMESPACE} --subresource=status --type=merge -p '{status}'"),
            "",
        );
    }
}

/// Waits until the pods of changed templates are gone, and those that follow them run.
pub(super) fn settle(server: &Server, before: &Value) {
    let items = || before["items"].as_array().expect("items").iter();
    for case in CASES.iter().filter(|case| case.kind == "Deployment") {
        let name = case.name;
        let pods = items().filter(|object| {
            let round = &object["metadata"]["labels"]["round"];
            object["kind"] == "Pod"
                && object["metadata"]["labels"]["app"] == name
                && round.is_null()
        });
        for pod in pods {
            let pod = pod["metadata"]["name"].as_str().expect("a name");
            server.shell(
                &format!("kubectl wait --for=delete pod/{pod} -n {NAMESPACE} --timeout=180s"),
                "",
            );
        }
        if !UNSTEADY.contains(&name) {
            server.rolled_out("deployment", name);
        }
    }
    for name in ["too-large", "shut-out"] {
        server.rolled_out("deployment", name);
    }
    play_fleets(server);
}

/// An hour after the pods were made: long enough for what is told after ten minutes.
pub(super) fn at(dump: &Value) -> String {
    later(dump, 3_600).to_string()
}

/// The same with pods that were made a day earlier: samples from before that would be another
/// one's.
pub(super) fn made_a_day_before(dump: &Value) -> Value {
    let mut dump = dump.clone();
    for object in dump["items"].as_array_mut().expect("items") {
        let is_pod = object["kind"] == "Pod";
        let made = &mut object["metadata"]["creationTimestamp"];
        if is_pod && let Some(at) = made.as_str() {
            let at = at.parse::<jiff::Timestamp>().expect("a time");
            let earlier = at.checked_sub(jiff::Span::new().hours(24)).expect("a time");
            *made = json!(earlier.to_string());
        }
    }
    dump
}

fn later(dump: &Value, seconds: i64) -> jiff::Timestamp {
    let made = dump["items"].as_array().expect("items").iter();
    let made = made.filter_map(|object| object["metadata"]["creationTimestamp"].as_str());
    let last = made.max().expect("an object").parse::<jiff::Timestamp>().expect("a time");
    last.checked_add(jiff::Span::new().seconds(seconds)).expect("a time")
}

/// What the GPUs that some pods hold did over a day: half of them nothing, all of them nothing, a
/// little, seldom anything.
pub(super) fn usage(dump: &Value) -> String {
    const STEP_S: i64 = 600;
    let mut text = "timestamp_s,pod,gpu,activity_percent,memory_bytes,namespace,node\n".to_owned();
    let end_s = later(dump, 3_600).as_second();
    for pod in
        dump["items"].as_array().expect("items").iter().filter(|object| object["kind"] == "Pod")
    {
        let of: &[u32] = match pod["metadata"]["labels"]["app"].as_str() {
            Some("half-used") => &[90, 90, 0, 0],
            Some("never-used" | "notebook" | "unused-job" | "unused-set" | "lab") => &[0],
            Some("small") => &[9],
            Some("throttled") => &[50],
            _ => continue,
        };
        let held = &pod["spec"]["containers"][0]["resources"]["limits"][GPU];
        let held = held.as_str().map_or(0, |text| text.parse().expect("a number"));
        let [name, node] = [&pod["metadata"]["name"], &pod["spec"]["nodeName"]].map(|v| v.as_str());
        for step in 0..24 * 6 {
            for (gpu, percent) in of.iter().enumerate().take(held) {
                let at_s = end_s - (24 * 6 - step) * STEP_S;
                let [name, node] = [name, node].map(Option::unwrap_or_default);
                // One that waits computes now and then.
                let percent = if *percent == 50 && step % 10 > 0 { 0 } else { *percent };
                text += &format!("{at_s},{name},{gpu},{percent},4000000000,{NAMESPACE},{node}\n");
            }
        }
    }
    text
}

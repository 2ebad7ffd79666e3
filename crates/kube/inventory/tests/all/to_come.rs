//! Pods that are yet to be made keep nodes, static pods keep none.

use std::collections::BTreeSet;

use dovetail_audit::{Finding, audit};
use dovetail_facts::{ObjectRef, device_states};
use dovetail_inventory::dump::{Keeper, Pseudonyms};
use dovetail_inventory::facts::Gathered;
use dovetail_trials::safe_patches;
use serde_json::{Value, json};

use crate::facts::{gathered_whole, inventory, node, pod};

const GPU: &str = "nvidia.com/gpu";

fn object(kind: &str, api_version: &str, spec: Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "spec": spec,
        "metadata": {"name": "s", "namespace": "research", "uid": "s"}})
}

/// A pod template with so many GPUs.
fn template(gpus: u32) -> Value {
    json!({"spec": {"tolerations": [{"key": GPU, "operator": "Exists"}], "containers": [
        {"name": "main", "image": "python:3.13", "resources": limits(gpus)}]}})
}

fn limits(gpus: u32) -> Value {
    match gpus {
        0 => json!({}),
        gpus => json!({"limits": {GPU: gpus.to_string()}}),
    }
}

/// How many pods are to come with these objects.
fn to_come(objects: &[Value]) -> usize {
    let found = gathered_whole(objects);
    found.facts.to_come.iter().map(|of| of.workload.pods.len()).sum()
}

/// The nodes that AUT-03 keeps, if it finds any without GPU pods.
fn kept(found: &Gathered) -> Option<BTreeSet<String>> {
    let findings = audit(&found.facts).into_iter();
    let mut empty = findings.filter(|finding| finding.check.id == "AUT-03");
    empty.next().map(|finding| finding.stays)
}

/// By hand: what each object wants less the pods that it has.
#[test]
fn pods_that_an_object_has_not_made_yet_are_to_come() {
    let left = |object: &Value, pods: &[u32]| {
        let owner = format!("{}/s", object["kind"].as_str().expect("a kind"));
        let pods = pods.iter().enumerate();
        let pods = pods.map(|(at, gpus)| pod(&format!("s-{at}"), &owner, *gpus, "g1"));
        to_come(&pods.chain([node("g1", 8), object.clone()]).collect::<Vec<_>>())
    };
    let set = |kind: &str| object(kind, "apps/v1", json!({"replicas": 3, "template": template(2)}));
    for kind in ["Deployment", "StatefulSet"] {
        assert_eq!([1, 2, 3].map(|pods| left(&set(kind), &vec![2; pods])), [2, 1, 0], "{kind}");
        // Pods of an older template are replaced.
        assert_eq!(left(&set(kind), &[1, 1, 2]), 0, "{kind}");
    }
    let groups = json!({"replicas": 2, "leaderWorkerTemplate":
        {"size": 3, "workerTemplate": template(8)}});
    let groups = object("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", groups);
    assert_eq!(left(&groups, &[8]), 5);
    let mut led = groups.clone();
    led["spec"]["leaderWorkerTemplate"]["leaderTemplate"] = template(0);
    assert_eq!(left(&led, &[0, 8]), 3);
    let workers = json!({"headGroupSpec": {"template": template(0)}, "workerGroupSpecs": [
        {"groupName": "a", "replicas": 3, "template": template(8)},
        {"groupName": "b", "replicas": 1, "template": template(1)}]});
    let ray = object("RayCluster", "ray.io/v1", workers);
    assert_eq!([left(&ray, &[0]), left(&ray, &[0, 8]), left(&ray, &[0, 8, 8, 8, 1])], [4, 3, 0]);
    // A Job completes no more pods than it is to complete, and some may be done.
    let mut job = object("Job", "batch/v1", json!({"parallelism": 4, "template": template(1)}));
    assert_eq!(left(&job, &[1, 1]), 2);
    job["spec"]["completions"] = json!(2);
    assert_eq!(left(&job, &[1, 1]), 0);
    job["spec"]["completions"] = json!(4);
    job["status"] = json!({"succeeded": 2});
    assert_eq!(left(&job, &[1, 1]), 0);
}

/// The same object, controlled by another one.
fn controlled(mut object: Value, kind: &str, name: &str) -> Value {
    object["metadata"]["ownerReferences"] = json!([{"apiVersion": "x/v1", "kind": kind,
        "name": name, "uid": name, "controller": true}]);
    object
}

/// The object of an operator describes its pods in a way of its own, or was not read.
#[test]
fn replicas_of_what_an_operator_has_made_are_to_come() {
    let made = |kind: &str, replicas: u32, there: u32, by: (&str, &str)| {
        let spec = json!({"replicas": replicas, "template": template(2)});
        let mut made = controlled(object(kind, "apps/v1", spec), by.0, by.1);
        made["status"] = json!({"replicas": there});
        let owner = format!("{kind}/s");
        let pods = (0..there).map(|at| pod(&format!("s-{at}"), &owner, 2, "g1"));
        pods.chain([node("g1", 8), made]).collect::<Vec<_>>()
    };
    for kind in ["Deployment", "StatefulSet"] {
        let left = |replicas, there| to_come(&made(kind, replicas, there, ("LLMService", "top")));
        assert_eq!([left(3, 0), left(3, 1), left(3, 3), left(0, 0)], [3, 2, 0, 1], "{kind}");
    }
    // What the object itself wants is not counted twice, and less than it has made is no limit.
    let with_top = |kind: &str, spec: Value| {
        let mut top = object(kind, "x/v1", spec);
        top["metadata"]["name"] = json!("top");
        to_come(&[made("Deployment", 3, 1, (kind, "top")), vec![top]].concat())
    };
    assert_eq!(with_top("LLMService", json!({"replicas": 3, "template": template(2)})), 2);
    assert_eq!(with_top("LLMService", json!({"replicas": 2, "template": template(2)})), 2);
    assert_eq!(with_top("LLMService", json!({"replicas": 3})), 2);
    let predictor = json!({"minReplicas": 3, "model": {"resources": limits(2)}});
    assert_eq!(with_top("InferenceService", json!({"predictor": predictor})), 2);
    // An old revision starts no more while a newer one serves.
    let mut revision = object("Revision", "serving.knative.dev/v1", json!({}));
    revision["metadata"]["name"] = json!("old");
    let revision = controlled(revision, "Configuration", "all");
    let old = [made("Deployment", 0, 0, ("Revision", "old")), vec![revision]].concat();
    let serves = pod("new-0", "Configuration/all", 2, "g1");
    assert_eq!((to_come(&old), to_come(&[&old[..], &[serves]].concat())), (1, 0));
}

/// The set itself was not read, and the workers follow their leader.
#[test]
fn workers_that_the_pods_of_a_leader_worker_set_name_are_to_come() {
    let left = |there: u32| {
        let set = object("StatefulSet", "apps/v1", json!({"replicas": 1, "template": template(2)}));
        let mut set = controlled(set, "LeaderWorkerSet", "l");
        set["status"] = json!({"replicas": 1});
        let pods = (0..there).map(|at| {
            let mut pod = pod(&format!("s-0-{at}"), "StatefulSet/s", 2, "g1");
            let label = |of: &str| format!("leaderworkerset.sigs.k8s.io/{of}");
            pod["metadata"]["labels"] = json!({label("name"): "l", label("group-index"): "0",
                label("worker-index"): at.to_string()});
            pod["metadata"]["annotations"] = json!({label("size"): "3"});
            pod
        });
        to_come(&pods.chain([node("g1", 8), set]).collect::<Vec<_>>())
    };
    assert_eq!([left(1), left(2), left(3)], [2, 1, 0]);
}

/// The same object with an annotation.
fn annotated(mut object: Value, key: &str) -> Value {
    object["metadata"]["annotations"] = json!({ key: "2026-11-20T12:00:00Z" });
    object
}

/// REQ-05 returns the node of what its patch stops, so AUT-03 must not keep it afterwards.
#[test]
fn what_a_patch_of_the_audit_has_stopped_keeps_no_node() {
    let stopped = "dovetail.dev/stopped";
    let kept_by = |object: Value| kept(&gathered_whole(&[node("g1", 8), object]));
    let g1 = || Some(BTreeSet::from(["g1".to_owned()]));
    let of_replicas = |kind: &str, replicas: u32| {
        object(kind, "apps/v1", json!({"replicas": replicas, "template": template(8)}))
    };
    for kind in ["Deployment", "StatefulSet"] {
        assert_eq!(kept_by(of_replicas(kind, 0)), g1(), "{kind}");
        assert_eq!(kept_by(annotated(of_replicas(kind, 0), stopped)), Some(BTreeSet::new()));
        // Somebody has started it again.
        assert_eq!(kept_by(annotated(of_replicas(kind, 1), stopped)), g1(), "{kind}");
    }
    let job = || object("Job", "batch/v1", json!({"suspend": true, "template": template(8)}));
    assert_eq!(kept_by(job()), g1());
    assert_eq!(kept_by(annotated(job(), stopped)), Some(BTreeSet::new()));
}

/// KEDA starts the pods again, and what is no time does not say that anything was stopped.
#[test]
fn a_mark_that_a_scaled_object_outweighs_or_that_is_no_time_keeps_the_node() {
    let spec = json!({"replicas": 0, "template": template(8)});
    let marked = |text: &str| {
        let mut set = object("Deployment", "apps/v1", spec.clone());
        set["metadata"]["annotations"] = json!({ "dovetail.dev/stopped": text });
        set
    };
    let scaled = |name: &str| {
        let target = json!({"scaleTargetRef": {"name": name}, "triggers": []});
        let mut scaled = object("ScaledObject", "keda.sh/v1alpha1", target);
        scaled["metadata"]["uid"] = json!("scaled");
        scaled
    };
    let time = "2026-11-20T12:00:00Z";
    assert_eq!(to_come(&[node("g1", 8), marked(time)]), 0);
    assert_eq!(to_come(&[node("g1", 8), marked("false")]), 1);
    assert_eq!(to_come(&[node("g1", 8), marked(time), scaled("s")]), 1);
    assert_eq!(to_come(&[node("g1", 8), marked(time), scaled("other")]), 0);
}

/// The controller of notebooks leaves a StatefulSet at zero replicas.
#[test]
fn a_notebook_that_was_stopped_keeps_no_node() {
    let left = |is_stopped: bool| {
        let spec = json!({"replicas": 0, "template": template(2)});
        let set = controlled(object("StatefulSet", "apps/v1", spec), "Notebook", "lab");
        let mut lab = object("Notebook", "kubeflow.org/v1", json!({"template": template(2)}));
        (lab["metadata"]["name"], lab["metadata"]["uid"]) = (json!("lab"), json!("lab"));
        let lab = if is_stopped { annotated(lab, "kubeflow-resource-stopped") } else { lab };
        to_come(&[node("g1", 8), set, lab])
    };
    assert_eq!((left(false), left(true)), (1, 0));
}

#[test]
fn a_job_of_volcano_that_is_over_makes_no_more_pods() {
    let tasks = json!({"tasks": [{"name": "w", "replicas": 2, "template": template(8)}]});
    let job = object("Job", "batch.volcano.sh/v1alpha1", tasks);
    let left = |state: Value| {
        let mut job = job.clone();
        job["status"] = json!({"state": state});
        to_come(&[node("g1", 8), job])
    };
    for phase in ["Aborted", "Completed", "Failed", "Terminated"] {
        assert_eq!(left(json!({"phase": phase})), 0, "{phase}");
    }
    assert_eq!([left(json!({"phase": "Pending"})), left(json!("ready"))], [2, 2]);
}

#[test]
fn containers_with_gpus_outside_of_pod_templates_are_to_come() {
    let steps = || {
        json!({"entrypoint": "m", "templates": [{"name": "m",
        "container": {"image": "x", "resources": limits(8)}}]})
    };
    let cron = json!({"schedule": "0 3 * * *", "workflowSpec": steps()});
    let cron = object("CronWorkflow", "argoproj.io/v1alpha1", cron);
    let predictor = json!({"predictor": {"minReplicas": 0, "model": {"resources": limits(8)}}});
    let service = object("InferenceService", "serving.kserve.io/v1beta1", predictor);
    for object in [&cron, &service] {
        let found = gathered_whole(&[node("g1", 8), object.clone()]);
        assert_eq!(found.facts.to_come.len(), 1, "{object}");
        assert_eq!(kept(&found), Some(BTreeSet::from(["g1".to_owned()])), "{object}");
    }
    // One that runs needs no more beside it, and a description by itself needs none.
    let runs = pod("s-0", "InferenceService/s", 8, "g1");
    assert_eq!(to_come(&[node("g1", 8), runs, service]), 0);
    let description = object("WorkflowTemplate", "argoproj.io/v1alpha1", steps());
    assert_eq!(to_come(&[node("g1", 8), description]), 0);
}

/// By hand: a workflow makes a pod for its step, a predictor wants two, a set four of one shape.
#[test]
fn a_collection_says_the_same_of_pods_that_are_described_in_another_shape() {
    let step = json!({"name": "m", "nodeSelector": {"pool": "gpus"},
        "container": {"image": "x", "env": [{"name": "TOKEN", "value": "secret"}],
            "resources": limits(8)}});
    let steps = json!({"schedule": "0 3 * * *", "workflowSpec": {"templates": [step],
        "tolerations": [{"key": GPU, "operator": "Exists"}]}});
    let cron = object("CronWorkflow", "argoproj.io/v1alpha1", steps);
    let container = json!({"name": "k", "resources": limits(4)});
    let predictor = json!({"minReplicas": 2, "containers": [container]});
    let predictor = json!({"predictor": predictor, "nodeSelector": {"pool": "gpus"}});
    let service = object("InferenceService", "serving.kserve.io/v1beta1", predictor);
    let clique = json!({"replicas": 4, "podSpec": {"containers": [{"resources": limits(1)}]}});
    let set = json!({"template": {"cliques": [{"name": "w", "spec": clique}]}});
    let set = object("PodCliqueSet", "grove.io/v1alpha1", set);
    let keeper = Keeper::default();
    for (object, count) in [(cron, 1), (service, 2), (set, 4)] {
        let text = |field: &str| object[field].as_str().expect("text");
        let kept = keeper.keep(text("kind"), text("apiVersion"), &object).expect("it is kept");
        assert!(!kept.to_string().contains("secret"), "{kept}");
        let anonymous = Pseudonyms::new([7; 32]).replace(&kept);
        let of = |object: &Value| gathered_whole(&[node("g1", 8), object.clone()]).facts.to_come;
        assert_eq!(of(&object).iter().map(|of| of.workload.pods.len()).sum::<usize>(), count);
        assert_eq!(of(&kept), of(&object), "{kept}");
        assert_eq!(to_come(&[node("g1", 8), anonymous]), count, "{kept}");
    }
}

/// Of a set that is done in part, nothing says which of its pods are done.
#[test]
fn a_collection_says_that_a_part_of_a_set_has_succeeded() {
    let jobs = json!({"replicatedJobs": [{"name": "w", "replicas": 2,
        "template": {"spec": {"template": template(4)}}}]});
    let mut set = object("JobSet", "jobset.x-k8s.io/v1alpha2", jobs);
    let left = |set: &Value| {
        let kept = Keeper::default().keep("JobSet", "jobset.x-k8s.io/v1alpha2", set);
        let of = |set: Value| to_come(&[node("g1", 8), pod("s-0", "JobSet/s", 4, "g1"), set]);
        (of(set.clone()), of(kept.expect("it is kept")))
    };
    assert_eq!(left(&set), (1, 1));
    set["status"] = json!({"replicatedJobsStatus": [{"name": "w", "succeeded": 1}]});
    assert_eq!(left(&set), (0, 0));
}

/// The first of three pods loads a large model, and the others follow it.
#[test]
fn nodes_of_replicas_that_follow_are_not_removed() {
    let kept_of = |replicas: u32| {
        let spec = json!({"replicas": replicas, "template": template(8)});
        let set = object("StatefulSet", "apps/v1", spec);
        let first = pod("s-0", "StatefulSet/s", 8, "g1");
        let nodes = ["g1", "g2", "g3"].map(|name| node(name, 8));
        let found = gathered_whole(&[&nodes[..], &[first, set]].concat());
        kept(&found).expect("two nodes have no GPU pods").len()
    };
    assert_eq!([1, 2, 3].map(kept_of), [0, 1, 2]);
}

/// Its CPU fits nowhere else, and it tolerates no taint: the kubelet asks for neither.
#[test]
fn a_static_pod_keeps_no_node_and_no_taint_from_it() {
    for by_owner in [true, false] {
        let mut proxy = pod("proxy-g1", if by_owner { "Node/g1" } else { "" }, 0, "g1");
        proxy["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "1"});
        proxy["spec"]["tolerations"] = json!([]);
        proxy["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "100"}});
        let mut open = node("g1", 8);
        open["spec"]["taints"] = json!([]);
        let labels = open["metadata"]["labels"].as_object_mut().expect("labels");
        labels.remove("karpenter.sh/nodepool");
        let plain = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": "c1", "labels": {"kubernetes.io/hostname": "c1"}},
            "status": {"allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}]}});
        let mut found = gathered_whole(&[open, plain, proxy]);
        device_states(&mut found.facts, &found.moment).expect("an engine that takes the cluster");
        assert_eq!(kept(&found), Some(BTreeSet::new()));
        let findings = audit(&found.facts);
        let about = |id: &str| findings.iter().any(|finding| finding.check.id == id);
        assert!(about("SCH-01") && !about("SCH-02") && !about("SCH-03"), "{findings:?}");
        let findings: Vec<&Finding> = findings.iter().collect();
        let source_of = |object: &ObjectRef| found.sources.source(object);
        let safe = safe_patches(&found.facts, &found.reach, &findings, &source_of);
        assert!(safe.written.iter().any(|safe| safe.patch.nodes.is_some()), "{safe:?}");
    }
}

#[test]
fn no_node_is_removed_while_a_pod_could_not_be_read() {
    let kept_with = |is_broken: bool| {
        let mut web = pod("web", "Deployment/web", 0, "g2");
        web["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
        if is_broken {
            web["spec"]["tolerations"] = json!("none");
        }
        let runs = pod("runs-0", "StatefulSet/runs", 8, "g2");
        let mut all = inventory(&[node("g1", 8), node("g2", 8), runs, web]);
        all.all_of("Pod");
        kept(&all.facts(BTreeSet::new())).expect("a node has no GPU pods").len()
    };
    assert_eq!((kept_with(false), kept_with(true)), (0, 1));
}

/// The only other node that the server could use has a pod with the same port.
#[test]
fn a_host_port_keeps_a_pod_on_its_node() {
    let kept_with = |port: u32| {
        let server = |name: &str, at: &str, port: u32| {
            let mut server = pod(name, "Deployment/web", 0, at);
            let container = &mut server["spec"]["containers"][0];
            container["resources"] = json!({"requests": {"cpu": "1"}});
            container["ports"] = json!([{"containerPort": port, "hostPort": port}]);
            server
        };
        let runs = pod("runs-0", "StatefulSet/runs", 8, "g2");
        let objects = [server("a", "g1", 80), server("b", "g2", port)];
        let found = gathered_whole(&[&objects[..], &[node("g1", 8), node("g2", 8), runs]].concat());
        kept(&found).expect("a node has no GPU pods").len()
    };
    assert_eq!((kept_with(81), kept_with(80)), (0, 1));
}

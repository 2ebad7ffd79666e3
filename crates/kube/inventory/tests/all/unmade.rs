//! What waits although no pod of it is there: replicas that a quota refuses, workloads of Kueue,
//! suspended sets.

use dovetail_inventory::facts::Gathered;
use serde_json::{Value, json};

use crate::facts::{expect, gathered, node, pod, states};

const GPU: &str = "nvidia.com/gpu";

/// A template of pods that want so many GPUs.
fn template(gpus: u32) -> Value {
    json!({"metadata": {"labels": {"app": "a"}}, "spec": {
        "tolerations": [{"key": GPU, "operator": "Exists"}],
        "containers": [{"name": "m", "resources": {
            "requests": {"cpu": "4", "memory": "32Gi", GPU: gpus.to_string()},
            "limits": {GPU: gpus.to_string()}}}]}})
}

/// An object of somebody's (`Kind/name`, or nobody's) in the namespace of the pods.
fn object(api_version: &str, (kind, name): (&str, &str), by: &str, spec: Value) -> Value {
    let owners = match by.split_once('/') {
        Some((kind, name)) => {
            json!([{"apiVersion": "x/v1", "kind": kind, "name": name, "uid": name, "controller": true}])
        }
        None => json!([]),
    };
    json!({"apiVersion": api_version, "kind": kind, "spec": spec,
        "metadata": {"name": name, "namespace": "research", "uid": name, "ownerReferences": owners}})
}

/// A quota of GPUs that is used as far as said.
fn quota(hard: u32, used: u32) -> Value {
    let amounts = |gpus: u32| json!({"requests.nvidia.com/gpu": gpus.to_string(), "pods": "50"});
    let mut used = amounts(used);
    used["pods"] = json!("1");
    json!({"apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "research"},
        "spec": {"hard": amounts(hard)}, "status": {"hard": amounts(hard), "used": used}})
}

/// Eight GPUs, two of them held by pod `p`, and what may wait for the rest.
fn on_a_node(objects: &[Value]) -> Gathered {
    let held = [node("g1", 8), pod("p", "", 2, "g1")];
    gathered(&held.into_iter().chain(objects.iter().cloned()).collect::<Vec<_>>())
}

fn replicas(kind: &str, wanted: u32, gpus: u32, status: Value) -> Value {
    let spec = json!({"replicas": wanted, "template": template(gpus)});
    let mut object = object("apps/v1", (kind, "r"), "Deployment/d", spec);
    object["status"] = status;
    object
}

fn refused(message: &str) -> Value {
    json!({"replicas": 0, "conditions": [{"type": "ReplicaFailure", "status": "True",
        "reason": "FailedCreate", "message": message}]})
}

const HELD: (&str, i64) = ("unknown", 2000);

#[test]
fn replicas_that_a_quota_refuses_wait_for_quota() {
    let exceeded = "pods \"r-1\" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=2, \
                    used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=2";
    let waits = [HELD, ("free_quota", 4000), ("free_no_demand", 2000)];
    let of = |objects: &[Value]| states(on_a_node(objects));
    // The object says it.
    expect(&of(&[replicas("ReplicaSet", 2, 2, refused(exceeded))]), &waits);
    // The quota says it: of four that are left one pod of two gets its GPUs, as soon as its
    // controller asks.
    let short = json!({"replicas": 1});
    expect(&of(&[replicas("StatefulSet", 3, 2, short.clone()), quota(2, 2)]), &waits);
    let room_for_one = [HELD, ("free_quota", 2000), ("free_no_demand", 4000)];
    expect(&of(&[replicas("StatefulSet", 3, 2, short.clone()), quota(4, 1)]), &room_for_one);
    let none = [HELD, ("free_no_demand", 6000)];
    expect(&of(&[replicas("StatefulSet", 3, 2, short.clone()), quota(8, 2)]), &none);
    expect(&of(&[replicas("StatefulSet", 3, 2, short.clone())]), &none);
    // A quota for another class of priority says nothing.
    let mut of_class = quota(2, 2);
    of_class["spec"]["scopeSelector"] = json!({"matchExpressions": [
        {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]});
    expect(&of(&[replicas("StatefulSet", 3, 2, short.clone()), of_class]), &none);
    // Nor does one for pods of another kind; one for theirs does.
    let scoped = |scopes: Value| {
        let mut quota = quota(2, 2);
        quota["spec"]["scopes"] = scopes;
        of(&[replicas("StatefulSet", 3, 2, short.clone()), quota])
    };
    for scope in ["BestEffort", "Terminating", "CrossNamespacePodAffinity", "PriorityClass", "New"]
    {
        expect(&scoped(json!(["NotBestEffort", scope])), &none);
    }
    expect(&scoped(json!(["NotBestEffort", "NotTerminating"])), &waits);
    let mut other = replicas("StatefulSet", 3, 2, short.clone());
    let spec = &mut other["spec"]["template"]["spec"];
    spec["activeDeadlineSeconds"] = json!(60);
    spec["priorityClassName"] = json!("high");
    spec["containers"][0]["resources"] = json!({"limits": {GPU: 2}});
    spec["affinity"] = json!({"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
        [{"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "namespaceSelector": {}}}]}});
    let mut of_others = quota(2, 2);
    of_others["spec"]["scopes"] =
        json!(["BestEffort", "Terminating", "CrossNamespacePodAffinity", "PriorityClass"]);
    expect(&of(&[other, of_others]), &waits);
    // Pods that are there are there, whatever the status says.
    let by_set = |name: &str| pod(name, "StatefulSet/r", 2, "");
    let mut all = vec![replicas("StatefulSet", 3, 2, short), quota(2, 2)];
    all.extend(["r-0", "r-1", "r-2"].map(by_set));
    expect(&of(&all), &[HELD, ("free_reserved", 6000)]);
}

#[test]
fn jobs_wait_for_quota_with_the_pods_that_are_left_to_run() {
    let job = |spec: Value, status: Value| {
        let mut spec = spec;
        spec["template"] = template(2);
        let mut job = object("batch/v1", ("Job", "j"), "", spec);
        job["status"] = status;
        states(on_a_node(&[job, quota(2, 2)]))
    };
    let waits = |pods: i64| {
        [HELD, ("free_quota", 2000 * pods), ("free_no_demand", 6000 - 2000 * pods)]
            .into_iter()
            .filter(|(_, milli)| *milli > 0)
            .collect::<Vec<_>>()
    };
    expect(&job(json!({"parallelism": 2}), json!({})), &waits(2));
    expect(&job(json!({"parallelism": 3, "completions": 4}), json!({"succeeded": 3})), &waits(1));
    let over = json!({"conditions": [{"type": "Failed", "status": "True"}]});
    expect(&job(json!({"parallelism": 2}), over), &waits(0));
    let ended = json!({"conditions": [{"type": "Failed", "status": "True"}]});
    expect(&job(json!({"parallelism": 2, "suspend": true}), ended), &waits(0));
    // A suspended one waits for whoever suspended it, with what is left of it.
    let suspended = json!({"parallelism": 3, "completions": 4, "suspend": true});
    let expected = [HELD, ("free_reserved", 2000), ("free_no_demand", 4000)];
    expect(&job(suspended, json!({"succeeded": 3})), &expected);
}

/// What refuses the pods is nothing that nodes know of: why as many GPUs are free is unknown, and
/// said.
#[test]
fn what_is_refused_for_something_else_is_unknown() {
    // Names are no reason.
    let message = "pods \"quota-1\" is forbidden: violates PodSecurity";
    let found = on_a_node(&[replicas("ReplicaSet", 2, 2, refused(message))]);
    let unjudged: Vec<String> =
        found.unjudged.iter().map(|pod| format!("{}: {}", pod.pod, pod.reason)).collect();
    let reason = "the API server refuses to create it, but not because of a quota";
    assert_eq!(
        unjudged,
        [
            format!("research/r-0 (refused to ReplicaSet): {reason}"),
            format!("research/r-1 (refused to ReplicaSet): {reason}")
        ]
    );
    expect(&states(found), &[HELD, ("free_of_unknown_cause", 4000), ("free_no_demand", 2000)]);
}

/// A workload of Kueue with two pods of two GPUs.
fn workload(name: &str, by: &str, conditions: Value) -> Value {
    let sets = json!([{"name": "main", "count": 2, "template": template(2)}]);
    let spec = json!({"queueName": "q", "podSets": sets});
    let mut workload = object("kueue.x-k8s.io/v1beta1", ("Workload", name), by, spec);
    workload["status"] = json!({"conditions": conditions});
    workload
}

fn unreserved(reason: &str, message: &str) -> Value {
    json!([{"type": "QuotaReserved", "status": "False", "reason": reason, "message": message}])
}

fn no_quota() -> Value {
    unreserved(
        "Pending",
        "couldn't assign flavors to pod set main: insufficient unused quota for \
                nvidia.com/gpu in flavor h100, 2 more needed",
    )
}

#[test]
fn a_workload_of_kueue_waits_until_it_is_admitted() {
    let of = |version: &str, conditions: Value| {
        let mut workload = workload("w", "Job/not-dumped", conditions);
        workload["apiVersion"] = json!(format!("kueue.x-k8s.io/{version}"));
        states(on_a_node(&[workload]))
    };
    let waits = |cause| [HELD, (cause, 4000), ("free_no_demand", 2000)];
    for version in ["v1beta1", "v1beta2"] {
        expect(&of(version, no_quota()), &waits("free_quota"));
    }
    let of = |conditions| of("v1beta2", conditions);
    for message in [
        "Pending the preemption of 1 workload(s)",
        "Preempted to accommodate a workload (UID: 1, JobUID: 2) due to prioritization in the ClusterQueue",
        "couldn't assign flavors to pod set main: borrowing limit for nvidia.com/gpu in flavor h100 exceeded",
        "Workload no longer fits after processing another workload",
    ] {
        expect(&of(unreserved("Pending", message)), &waits("free_quota"));
    }
    let named = "couldn't assign flavors to pod set quota-1: flavor preemption-x doesn't match";
    expect(&of(unreserved("Pending", named)), &waits("free_reserved"));
    // Nothing about quota: nodes say why it does not start, or nobody looked yet.
    let topology = unreserved("Pending", "topology \"rack\" doesn't allow to fit any of 2 pod(s)");
    expect(&of(topology), &waits("free_reserved"));
    expect(&of(unreserved("Inadmissible", "")), &waits("free_reserved"));
    expect(&of(json!([])), &waits("free_reserved"));
    let reserved = json!([{"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved"}]);
    expect(&of(reserved), &waits("free_reserved"));
    let none = [HELD, ("free_no_demand", 6000)];
    for over in ["Admitted", "Finished"] {
        expect(&of(json!([{"type": over, "status": "True"}])), &none);
    }
}

#[test]
fn a_workload_is_counted_once_with_what_it_is_about() {
    let waits = [HELD, ("free_quota", 4000), ("free_no_demand", 2000)];
    let of = |objects: &[Value]| states(on_a_node(objects));
    let job = json!({"suspend": true, "parallelism": 2, "template": template(2)});
    let job = object("batch/v1", ("Job", "j"), "", job);
    expect(&of(&[workload("w", "Job/j", no_quota()), job.clone()]), &waits);
    // Nobody waits for what is switched off.
    let mut off = workload("w", "Job/j", no_quota());
    off["spec"]["active"] = json!(false);
    let none = [HELD, ("free_no_demand", 6000)];
    expect(&of(std::slice::from_ref(&off)), &none);
    expect(&of(&[off, job]), &none);
    let replicas = json!({"Worker": {"replicas": 2, "template": template(2)}});
    let spec = json!({"runPolicy": {"suspend": true}, "pytorchReplicaSpecs": replicas});
    let train = object("kubeflow.org/v1", ("PyTorchJob", "t"), "", spec);
    expect(&of(&[train, workload("w", "PyTorchJob/t", no_quota())]), &waits);
    // An operator of which nobody reads how many pods it makes.
    let unknown = object("example.com/v1", ("Fleet", "f"), "", json!({"suspend": true}));
    expect(&of(&[unknown, workload("w", "Fleet/f", no_quota())]), &waits);
    // Pods that are there wait behind a gate: of a Deployment one workload each, else of a group.
    let gated = |name: &str, group: &str| {
        let mut pod = pod(name, "", 2, "");
        pod["spec"]["schedulingGates"] = json!([{"name": "kueue.x-k8s.io/admission"}]);
        if !group.is_empty() {
            pod["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"] = json!(group);
            let total = json!({"kueue.x-k8s.io/pod-group-total-count": "2"});
            pod["metadata"]["annotations"] = total;
        }
        pod
    };
    expect(&of(&[gated("a", "w"), gated("b", "w"), workload("w", "", no_quota())]), &waits);
    let one = [HELD, ("free_quota", 2000), ("free_no_demand", 4000)];
    expect(&of(&[gated("a", ""), workload("w", "Pod/a", no_quota())]), &one);
    // Whose quota is reserved is not kept back by it, and others are not either.
    let other = [HELD, ("free_reserved", 2000), ("free_quota", 2000), ("free_no_demand", 2000)];
    expect(&of(&[gated("a", ""), gated("b", ""), workload("w", "Pod/a", no_quota())]), &other);
}

/// Without Kueue's workloads nobody knows what its queues wait for.
#[test]
fn what_names_a_queue_of_kueue_asks_for_its_workloads() {
    let labels = json!({"kueue.x-k8s.io/queue-name": "q"});
    let mut gated = pod("a", "", 2, "");
    gated["spec"]["schedulingGates"] = json!([{"name": "kueue.x-k8s.io/admission"}]);
    let job = json!({"suspend": true, "template": template(2)});
    let job = object("batch/v1", ("Job", "j"), "", job);
    let asks = |objects: &[Value]| {
        let unseen = on_a_node(objects).unseen;
        unseen.iter().any(|unseen| unseen.what == "workloads of Kueue")
    };
    for mut object in [gated, job] {
        assert!(!asks(std::slice::from_ref(&object)), "{object}");
        object["metadata"]["labels"] = labels.clone();
        assert!(asks(std::slice::from_ref(&object)), "{object}");
        assert!(!asks(&[object, workload("w", "Job/another", json!([]))]));
    }
}

/// A suspended JobSet: two Jobs of two pods of one GPU, and a Job with a pod of two.
fn job_set() -> Value {
    let job = |name: &str, replicas: u32, pods: u32, gpus: u32| {
        json!({"name": name, "replicas": replicas, "template": {"spec": {
            "parallelism": pods, "completions": pods, "template": template(gpus)}}})
    };
    let spec =
        json!({"suspend": true, "replicatedJobs": [job("work", 2, 2, 1), job("lead", 1, 1, 2)]});
    object("jobset.x-k8s.io/v1alpha2", ("JobSet", "s"), "", spec)
}

#[test]
fn suspended_sets_wait_with_all_that_is_not_made() {
    let of = |objects: &[Value]| states(on_a_node(objects));
    let all = [HELD, ("free_reserved", 6000)];
    expect(&of(&[job_set()]), &all);
    // In a template nobody has written into the requests what is limited alone.
    let mut limited = job_set();
    for job in limited["spec"]["replicatedJobs"].as_array_mut().expect("a list") {
        let pod = &mut job["template"]["spec"]["template"]["spec"];
        let resources = &mut pod["containers"][0]["resources"];
        resources["requests"].as_object_mut().expect("amounts").remove(GPU);
    }
    expect(&of(&[limited]), &all);
    // A Job that is made waits itself: with its label, or by its name.
    let job = |name: &str, suspend: bool, label: &str| {
        let spec = json!({"suspend": suspend, "parallelism": 2, "template": template(1)});
        let mut job = object("batch/v1", ("Job", name), "JobSet/s", spec);
        if !label.is_empty() {
            job["metadata"]["labels"] = json!({"jobset.sigs.k8s.io/replicatedjob-name": label});
        }
        job
    };
    expect(&of(&[job_set(), job("hashed", true, "work"), job("s-work-1", true, "")]), &all);
    let started = [job_set(), job("s-work-0", false, "work")];
    expect(&of(&started), &[HELD, ("free_reserved", 4000), ("free_no_demand", 2000)]);
    let kept = [job_set(), job("s-work-0", true, "work"), workload("w", "JobSet/s", no_quota())];
    expect(&of(&kept), &[HELD, ("free_quota", 6000)]);
}

/// A suspended RayJob: a head of two GPUs and two workers of one.
fn ray_job() -> Value {
    let groups = json!([
        {"groupName": "w", "replicas": 1, "numOfHosts": 2, "template": template(1)},
        {"groupName": "off", "replicas": 3, "suspend": true, "template": template(1)}]);
    let cluster = json!({"headGroupSpec": {"template": template(2)}, "workerGroupSpecs": groups});
    let spec = json!({"suspend": true, "rayClusterSpec": cluster});
    object("ray.io/v1", ("RayJob", "r"), "", spec)
}

/// A suspended MPIJob: a launcher of two GPUs and two workers of one.
fn mpi_job() -> Value {
    let replicas = json!({"Launcher": {"template": template(2)},
        "Worker": {"replicas": 2, "template": template(1)}});
    let spec = json!({"runPolicy": {"suspend": true}, "mpiReplicaSpecs": replicas});
    object("kubeflow.org/v2beta1", ("MPIJob", "m"), "", spec)
}

#[test]
fn suspended_jobs_of_operators_wait_once() {
    let of = |objects: &[Value]| states(on_a_node(objects));
    let waits = [HELD, ("free_reserved", 4000), ("free_no_demand", 2000)];
    expect(&of(&[ray_job()]), &waits);
    let mut spec = ray_job()["spec"]["rayClusterSpec"].clone();
    spec["suspend"] = json!(true);
    let cluster = object("ray.io/v1", ("RayCluster", "r-x"), "RayJob/r", spec);
    expect(&of(&[ray_job(), cluster]), &waits);
    let mpi = mpi_job();
    expect(&of(std::slice::from_ref(&mpi)), &waits);
    let spec = json!({"suspend": true, "template": template(2)});
    let launcher = object("batch/v1", ("Job", "m-launcher"), "MPIJob/m", spec);
    expect(&of(&[mpi, launcher]), &waits);
    // What is over makes no more, though somebody suspends it.
    let none = [HELD, ("free_no_demand", 6000)];
    let mut over = mpi_job();
    over["status"] = json!({"conditions": [{"type": "Succeeded", "status": "True"}]});
    expect(&of(&[over]), &none);
    let mut over = job_set();
    over["status"] = json!({"conditions": [{"type": "Completed", "status": "True"}]});
    expect(&of(&[over]), &none);
    let mut over = ray_job();
    over["status"] = json!({"jobDeploymentStatus": "Failed"});
    expect(&of(&[over]), &none);
    // What is not suspended has its pods, or gets them.
    let mut runs = job_set();
    runs["spec"]["suspend"] = json!(false);
    expect(&of(&[runs]), &[HELD, ("free_no_demand", 6000)]);
}

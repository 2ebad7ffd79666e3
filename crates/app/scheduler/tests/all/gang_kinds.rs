//! Gangs of workloads: the labels of pods name them, and objects of their controllers say how many
//! pods there will be.

use dovetail_objects::{Kind, WorkloadKind};
use serde_json::{Value, json};

use crate::gangs::{Cluster, names, node, pod};

const JOB_SET: Kind = Kind::Workload(WorkloadKind::JobSet);

/// A pod with labels.
fn labelled(gpus: usize, labels: Value) -> Value {
    let mut pod = pod(gpus);
    pod["metadata"]["labels"] = labels;
    pod["metadata"]["annotations"] = json!({});
    pod
}

fn of_job_set(replicated: &str, index: usize) -> Value {
    let labels = json!({"jobset.sigs.k8s.io/jobset-name": "train",
        "jobset.sigs.k8s.io/replicatedjob-name": replicated,
        "batch.kubernetes.io/job-name": format!("train-{replicated}-0"),
        "batch.kubernetes.io/job-completion-index": index.to_string()});
    labelled(8, labels)
}

fn job_set(order: &str, suspend: bool) -> Value {
    let replicated = |name: &str, pods: u32| {
        json!({"name": name, "replicas": 1, "template": {"spec": {
            "parallelism": pods, "completions": pods, "completionMode": "Indexed"}}})
    };
    json!({"spec": {"replicatedJobs": [replicated("driver", 1), replicated("workers", 2)],
        "startupPolicy": {"startupPolicyOrder": order}, "suspend": suspend}})
}

/// A driver and two workers.
fn create_job_set_pods(cluster: &mut Cluster) {
    cluster.create("d0", of_job_set("driver", 0));
    (0..2).for_each(|at| cluster.create(&format!("w{at}"), of_job_set("workers", at)));
}

#[test]
fn a_job_set_starts_as_a_whole_when_it_says_how_many_pods_it_has() {
    let mut cluster = Cluster::of(3);
    create_job_set_pods(&mut cluster);
    assert_eq!(cluster.run(), names(&[]));
    assert_eq!(cluster.reports(), names(&[]), "its object may be on its way");
    cluster.pass(2_000);
    assert_eq!(cluster.run(), names(&[]));
    let reports = cluster.reports();
    assert!(reports[0].contains("jobset blue/train does not exist"), "{reports:?}");
    cluster.server.apply(JOB_SET, "blue", "train", job_set("AnyOrder", false));
    assert_eq!(cluster.run(), names(&["d0", "w0", "w1"]));
}

#[test]
fn a_job_set_without_room_for_all_has_nothing() {
    let mut cluster = Cluster::of(2);
    cluster.server.apply(JOB_SET, "blue", "train", job_set("AnyOrder", false));
    create_job_set_pods(&mut cluster);
    assert_eq!(cluster.run(), names(&[]));
    node(&mut cluster.server, 2);
    assert_eq!(cluster.run(), names(&["d0", "w0", "w1"]));
}

#[test]
fn a_suspended_workload_is_left_alone_until_it_is_resumed() {
    let mut cluster = Cluster::of(3);
    cluster.server.apply(JOB_SET, "blue", "train", job_set("AnyOrder", true));
    create_job_set_pods(&mut cluster);
    assert_eq!(cluster.run(), names(&[]));
    assert!(cluster.reports()[0].ends_with("its pods wait until it is resumed"));
    cluster.server.apply(JOB_SET, "blue", "train", job_set("AnyOrder", false));
    assert_eq!(cluster.run(), names(&["d0", "w0", "w1"]));
}

/// Whoever describes the gang, the workload that made the pods is suspended.
#[test]
fn pods_of_a_suspended_workload_wait_without_a_word_about_their_gang_or_their_queue() {
    let job = |suspend: bool| json!({"spec": {"parallelism": 2, "suspend": suspend}});
    let native = |at: usize| {
        let mut pod = labelled(8, json!({"batch.kubernetes.io/job-name": "train"}));
        pod["spec"]["schedulingGroup"] = json!({"podGroupName": "train"});
        pod["spec"]["priority"] = json!(at);
        pod
    };
    let kind = Kind::Workload(WorkloadKind::Job);
    let mut cluster = Cluster::of(2);
    cluster.server.apply(kind, "blue", "train", job(true));
    let spec = json!({"schedulingPolicy": {"gang": {"minCount": 2}}});
    cluster.server.apply(Kind::PodGroup, "blue", "train", json!({"spec": spec}));
    // Two priorities in one gang would be told of its group.
    (0..2).for_each(|at| cluster.create(&format!("p{at}"), native(at)));
    let mut alone = labelled(8, json!({"batch.kubernetes.io/job-name": "train"}));
    alone["metadata"]["annotations"]["dovetail.dev/min-members"] = json!("2");
    cluster.create("alone", alone);
    assert_eq!(cluster.run(), names(&[]));
    cluster.pass(60_000);
    let suspended = "is skipped: job blue/train is suspended: its pods wait until it is resumed";
    let said = ["p0", "p1", "alone"].map(|name| format!("pod blue/{name} {suspended}"));
    assert_eq!(cluster.reports(), said);
    cluster.server.apply(kind, "blue", "train", job(false));
    cluster.watch();
    let reports = cluster.reports().join("; ");
    assert!(
        reports.contains("differ in priority") && reports.contains("belongs to no gang"),
        "{reports}"
    );
}

#[test]
fn pods_beyond_what_a_job_set_asks_for_take_no_place_that_others_need() {
    let set = || {
        let mut cluster = Cluster::of(3);
        cluster.server.apply(JOB_SET, "blue", "train", job_set("AnyOrder", false));
        cluster
    };
    // A second driver is no worker.
    let mut cluster = set();
    (0..2).for_each(|at| cluster.create(&format!("d{at}"), of_job_set("driver", 0)));
    cluster.create("w0", of_job_set("workers", 0));
    cluster.watch();
    cluster.pass(60_000);
    assert_eq!(cluster.run(), names(&[]));
    let told =
        "pod blue/d0 waits for members: jobset blue/train has 2 of the 3 pods that start together";
    assert_eq!(cluster.reports().first().map(String::as_str), Some(told));
    // A third worker waits until there is room beyond that of the set, which starts without it.
    let mut cluster = set();
    create_job_set_pods(&mut cluster);
    cluster.create("w2", of_job_set("workers", 2));
    assert_eq!(cluster.run(), names(&["d0", "w0", "w1"]));
    node(&mut cluster.server, 3);
    assert_eq!(cluster.run(), names(&["w2"]));
}

#[test]
fn what_follows_in_a_later_stage_starts_together_and_ahead_of_others() {
    let mut cluster = Cluster::of(2);
    cluster.server.apply(JOB_SET, "blue", "train", job_set("InOrder", false));
    cluster.create("d0", of_job_set("driver", 0));
    assert_eq!(cluster.run(), names(&["d0"]));
    cluster.create("small", pod(8));
    assert_eq!(cluster.run(), names(&["small"]));
    // One node is free when the workers come: one of them alone is of no use.
    node(&mut cluster.server, 2);
    (0..2).for_each(|at| cluster.create(&format!("w{at}"), of_job_set("workers", at)));
    cluster.create("late", pod(8));
    assert_eq!(cluster.run(), names(&["late"]));
    cluster.pass(600_000);
    assert!(cluster.scheduler.unwinding().is_empty(), "the driver runs and has lost nobody");
    node(&mut cluster.server, 3);
    node(&mut cluster.server, 4);
    cluster.create("later", pod(8));
    assert_eq!(cluster.run(), names(&["w0", "w1"]));
    // From then on a worker that is lost is replaced by itself.
    cluster.delete(Kind::Pod, "blue", "w1");
    cluster.create("w9", of_job_set("workers", 1));
    assert_eq!(cluster.run(), names(&["w9"]));
}

/// Every pod of one that started in stages was replaced, each by itself; then nobody leads, and two
/// are lost.
#[test]
fn one_that_started_in_stages_ran_though_only_replacements_are_left() {
    let mut cluster = Cluster::of(5);
    cluster.server.apply(JOB_SET, "blue", "train", job_set("InOrder", false));
    cluster.create("d0", of_job_set("driver", 0));
    cluster.run();
    (0..2).for_each(|at| cluster.create(&format!("w{at}"), of_job_set("workers", at)));
    assert_eq!(cluster.run(), names(&["w0", "w1"]));
    let again = [("d0", "d9", "driver", 0), ("w0", "w8", "workers", 0), ("w1", "w9", "workers", 1)];
    for (lost, by, role, index) in again {
        cluster.delete(Kind::Pod, "blue", lost);
        cluster.create(by, of_job_set(role, index));
        assert_eq!(cluster.run(), names(&[by]));
    }
    cluster.delete(Kind::Pod, "blue", "w8");
    cluster.delete(Kind::Pod, "blue", "w9");
    let mut next = Cluster::over(cluster.server);
    next.create("w10", of_job_set("workers", 0));
    assert_eq!(next.run(), names(&["w10"]), "it does not wait for the other one");
}

#[test]
fn each_group_of_a_leader_worker_set_starts_by_itself() {
    let member = |group: usize, worker: usize| {
        let labels = json!({"leaderworkerset.sigs.k8s.io/name": "serve",
            "leaderworkerset.sigs.k8s.io/group-index": group.to_string(),
            "leaderworkerset.sigs.k8s.io/worker-index": worker.to_string()});
        labelled(8, labels)
    };
    let mut cluster = Cluster::of(3);
    let set = json!({"spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 2}}});
    cluster.server.apply(Kind::Workload(WorkloadKind::LeaderWorkerSet), "blue", "serve", set);
    for (group, worker) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
        cluster.create(&format!("s{group}{worker}"), member(group, worker));
    }
    let bound = cluster.run();
    assert!(bound == names(&["s00", "s01"]) || bound == names(&["s10", "s11"]), "{bound:?}");
}

#[test]
fn a_ray_cluster_that_starts_with_fewer_workers_has_its_head() {
    let member = |gpus: usize, node_type: &str, group: &str| {
        let labels = json!({"ray.io/cluster": "tune", "ray.io/node-type": node_type,
            "ray.io/group": group});
        labelled(gpus, labels)
    };
    let mut cluster = Cluster::of(2);
    let groups = json!([{"groupName": "gpu", "replicas": 3, "minReplicas": 1}]);
    let spec = json!({"enableInTreeAutoscaling": true, "workerGroupSpecs": groups});
    let kind = Kind::Workload(WorkloadKind::RayCluster);
    cluster.server.apply(kind, "blue", "tune", json!({"spec": spec}));
    // The head asks for the same as its workers, and comes last.
    (0..3).for_each(|at| cluster.create(&format!("w{at}"), member(8, "worker", "gpu")));
    assert_eq!(cluster.run(), names(&[]));
    cluster.create("z-head", member(8, "head", "headgroup"));
    let bound = cluster.run();
    assert_eq!((bound.len(), bound[1].as_str()), (2, "z-head"));
}

#[test]
fn tasks_of_a_volcano_group_each_have_enough_pods() {
    let member = |task: &str| {
        let mut pod = pod(4);
        pod["metadata"]["annotations"] =
            json!({"scheduling.k8s.io/group-name": "train", "volcano.sh/task-spec": task});
        pod
    };
    let mut cluster = Cluster::of(1);
    let spec = json!({"minMember": 2, "minTaskMember": {"ps": 1, "worker": 1}});
    cluster.server.apply(Kind::VolcanoGroup, "blue", "train", json!({"spec": spec}));
    (0..2).for_each(|at| cluster.create(&format!("w{at}"), member("worker")));
    assert_eq!(cluster.run(), names(&[]));
    cluster.pass(2_000);
    assert!(cluster.reports()[0].ends_with("has 1 of the 2 pods that start together"));
    cluster.create("ps", member("ps"));
    let bound = cluster.run();
    assert_eq!((bound.len(), bound[0].as_str()), (2, "ps"));
}

#[test]
fn an_indexed_job_whose_pods_need_not_run_at_once_starts_pod_by_pod() {
    let member = |at: usize| {
        let labels = json!({"batch.kubernetes.io/job-name": "sweep",
            "batch.kubernetes.io/job-completion-index": at.to_string()});
        labelled(8, labels)
    };
    let kind = Kind::Workload(WorkloadKind::Job);
    let job = |completions: u32| {
        json!({"spec": {"parallelism": 2, "completions": completions,
            "completionMode": "Indexed"}})
    };
    let mut cluster = Cluster::of(1);
    cluster.server.apply(kind, "blue", "sweep", job(2));
    (0..2).for_each(|at| cluster.create(&format!("p{at}"), member(at)));
    assert_eq!(cluster.run(), names(&[]));
    cluster.server.apply(kind, "blue", "sweep", job(9));
    assert_eq!(cluster.run().len(), 1);
}

#[test]
fn pods_of_a_job_without_numbers_are_left_untouched_if_it_says_how_many_start_together() {
    let kind = Kind::Workload(WorkloadKind::Job);
    let job = |annotations: Value| {
        json!({"metadata": {"annotations": annotations},
            "spec": {"parallelism": 3, "completions": 3, "completionMode": "NonIndexed"}})
    };
    let mut cluster = Cluster::of(3);
    cluster.server.apply(kind, "blue", "sweep", job(json!({"dovetail.dev/min-members": "3"})));
    for at in 0..3 {
        let labels = json!({"batch.kubernetes.io/job-name": "sweep"});
        cluster.create(&format!("p{at}"), labelled(8, labels));
    }
    assert_eq!(cluster.run(), names(&[]));
    assert_eq!(
        cluster.reports().first().map(String::as_str),
        Some(
            "pod blue/p0 is skipped: job blue/sweep: annotation dovetail.dev/min-members defines \
             how its pods start together, but they do not, because its spec.completionMode is not \
             Indexed: name a gang in label dovetail.dev/gang of the pods, or remove the annotation"
        )
    );
    // With 1 they start one by one, as without it.
    cluster.server.apply(kind, "blue", "sweep", job(json!({"dovetail.dev/min-members": "1"})));
    assert_eq!(cluster.run(), names(&["p0", "p1", "p2"]));
}

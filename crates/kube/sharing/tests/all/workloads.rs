//! A workload asks for a slice, is watched, and asks for its GPU again if its latency got worse.

use dovetail_objects::Pod;
use dovetail_sharing::names::FORMER_REQUESTS;
use dovetail_sharing::watch::{Gate, Outcome, Subject, gate, roll_out};
use dovetail_sharing::{
    Around, NextRequests, Owner, PolicyReport, RequestsStep, RequestsWrite, SharingPolicy,
    Workload, change, decided, due, fragment, gate_of_workloads, returned, roll_back, rolled,
    status_patch, stopped_by, uses_gpus,
};
use serde_json::{Value, json};

const GPU: &str = "nvidia.com/gpu";
const SLICE: &str = "nvidia.com/mig-1g.10gb";
const HOUR_MS: u64 = 3_600_000;

fn policy(guard: Value) -> SharingPolicy {
    let spec = json!({"mode": "mig", "profiles": ["1g.10gb"], "apply": true, "guard": guard});
    let object = json!({"metadata": {"name": "shared"}, "spec": spec});
    serde_json::from_value(object).expect("a policy")
}

fn guarded() -> SharingPolicy {
    policy(json!({"hours": 6}))
}

/// A Deployment of two pods that all run, as the API server has it.
fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "chat", "namespace": "prod", "uid": "u", "resourceVersion": "7",
            "generation": 1},
        "spec": {"replicas": 2, "strategy": {"type": "RollingUpdate"},
            "template": {"spec": {"containers": [
                {"name": "proxy", "image": "p"},
                {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}},
        "status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2,
            "readyReplicas": 2, "availableReplicas": 2}})
}

fn read(object: &Value) -> Owner {
    Owner::read(object).expect("a workload")
}

fn around() -> Around {
    Around { free: 0, tool: None, held: None }
}

fn resources(object: &mut Value) -> &mut Value {
    &mut object["spec"]["template"]["spec"]["containers"][1]["resources"]
}

/// What a server makes of an apply by a manager that took all of its fields over.
fn take(object: &mut Value, write: &RequestsWrite) {
    let containers = &write.body["spec"]["template"]["spec"]["containers"];
    assert_eq!(
        (&containers[0]["name"], containers.as_array().map(Vec::len)),
        (&json!("c"), Some(1))
    );
    assert_eq!(write.body["metadata"]["resourceVersion"], object["metadata"]["resourceVersion"]);
    if *resources(object) != containers[0]["resources"] {
        *resources(object) = containers[0]["resources"].clone();
        object["metadata"]["generation"] = json!(2);
    }
    object["metadata"]["annotations"] = write.body["metadata"]["annotations"].clone();
}

fn written(next: NextRequests) -> RequestsWrite {
    match next {
        NextRequests::Write(write) => *write,
        other => panic!("nothing is written: {other:?}"),
    }
}

/// The Deployment after it was changed and its pods were replaced.
fn changed(policy: &SharingPolicy) -> Value {
    let mut object = deployment();
    let next = change(&read(&object), SLICE, policy, &around(), 1_000);
    take(&mut object, &written(next));
    object["status"]["observedGeneration"] = json!(2);
    if let Some(write) = rolled(&read(&object), 2_000) {
        take(&mut object, &write);
    }
    object
}

fn judged(outcome: Outcome) -> Value {
    let mut object = changed(&guarded());
    let write = decided(&read(&object), outcome, "p95 +12%").expect("a verdict");
    take(&mut object, &write);
    object
}

#[test]
fn a_container_asks_for_a_slice_and_for_nothing_of_its_former_resource() {
    let object = changed(&policy(Value::Null));
    let limits = &object["spec"]["template"]["spec"]["containers"][1]["resources"]["limits"];
    assert_eq!(*limits, json!({GPU: "0", SLICE: "1"}));
    let owner = read(&object);
    assert_eq!(owner.asks().map(|(one, asked)| (&*one.name, asked)), Ok(("c", SLICE)));
    assert!(owner.is_as_recorded());
    // Without a guard nothing is watched.
    let record = owner.record.clone().expect("a record");
    assert_eq!((record.step, record.watch), (RequestsStep::Changed, None));
    assert_eq!(change(&owner, SLICE, &guarded(), &around(), 0), NextRequests::Unchanged);
    let back = written(roll_back(&owner, &around(), 5_000));
    let mut object = object;
    take(&mut object, &back);
    assert_eq!(*resources(&mut object), json!({"limits": {GPU: "1"}}));
    assert_eq!(roll_back(&read(&object), &around(), 6_000), NextRequests::Unchanged);
}

#[test]
fn a_dry_run_goes_on_with_what_the_server_would_have() {
    let (before, worse) = (deployment(), judged(Outcome::Worse));
    let there = written(change(&read(&before), SLICE, &guarded(), &around(), 1_000));
    let back = written(returned(&read(&worse), &around(), 5_000).expect("it is worse"));
    for (mut object, write) in [(before, there), (worse, back)] {
        let expected = write.applied_to(&read(&object));
        take(&mut object, &write);
        let now = read(&object);
        assert_eq!((&expected.record, &expected.containers), (&now.record, &now.containers));
        assert!(expected.is_as_recorded());
    }
}

#[test]
fn requests_are_written_where_the_template_has_them() {
    let mut object = deployment();
    let both = json!({"limits": {GPU: "1"}, "requests": {"cpu": "4", GPU: 1}});
    *resources(&mut object) = both;
    let owner = read(&object);
    let write = written(change(&owner, SLICE, &guarded(), &around(), 0));
    let asked = &write.body["spec"]["template"]["spec"]["containers"][0]["resources"];
    let amounts = json!({GPU: "0", SLICE: "1"});
    assert_eq!(*asked, json!({"limits": amounts, "requests": amounts}));
    let lines = fragment(&owner, &owner.containers[0], GPU, SLICE);
    assert_eq!(lines.matches("nvidia.com/mig-1g.10gb: 1 # in place of nvidia.com/gpu").count(), 2);
}

#[test]
fn zero_of_a_resource_is_not_asked_for() {
    let mut pod = read(&changed(&guarded())).pod_with(SLICE);
    let amounts = |pod: &Value| pod["spec"]["containers"][1]["resources"]["limits"].clone();
    // The pod that nodes are looked for has one of the slice, whatever it had.
    assert_eq!(amounts(&pod)[SLICE], "1");
    pod["spec"]["nodeName"] = json!("n");
    pod["spec"]["containers"][1]["resources"]["limits"] = json!({GPU: "0"});
    let as_pod = |pod: &Value| serde_json::from_value::<Pod>(pod.clone()).expect("a pod");
    assert!(!uses_gpus(&as_pod(&pod)));
    // Volcano counts what it gives out in annotations alone.
    let mut shares = pod;
    shares["metadata"]["annotations"] = json!({"volcano.sh/gpu-index": "0"});
    assert!(uses_gpus(&as_pod(&shares)));
    shares["status"]["phase"] = json!("Succeeded");
    assert!(!uses_gpus(&as_pod(&shares)));
    let mut object = deployment();
    *resources(&mut object) = json!({"limits": {GPU: "0"}});
    assert!(read(&object).asks().is_err_and(|why| why.starts_with("no container")));
}

#[test]
fn pods_that_would_end_first_need_slices_that_are_free() {
    let ends = |patch: &dyn Fn(&mut Value)| {
        let mut object = deployment();
        patch(&mut object);
        let owner = read(&object);
        let short = Around { free: 1, ..around() };
        let enough = Around { free: 2, ..around() };
        let is_refused = |around: &Around| {
            matches!(change(&owner, SLICE, &guarded(), around, 0), NextRequests::Refused(_))
        };
        assert!(!is_refused(&enough), "{owner:?}");
        is_refused(&short)
    };
    let rolling = |surge: Value, unavailable: Value| {
        let fields = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        ends(&|object| object["spec"]["strategy"]["rollingUpdate"] = fields.clone())
    };
    assert!(!ends(&|_| {}));
    assert!(!rolling(json!(1), json!(0)));
    assert!(!rolling(json!("25%"), json!("99%")));
    assert!(!rolling(json!(0), json!(1)));
    assert!(rolling(json!(0), json!(2)));
    assert!(rolling(json!("0%"), json!("100%")));
    assert!(ends(&|object| object["spec"]["strategy"] = json!({"type": "Recreate"})));
    assert!(ends(&|object| object["kind"] = json!("StatefulSet")));
    // No pod, nothing to end.
    assert!(!ends(&|object| {
        object["kind"] = json!("StatefulSet");
        object["spec"]["replicas"] = json!(0);
    }));
    // Neither a pod more nor one less: Kubernetes ends one.
    let mut object = deployment();
    object["spec"]["strategy"]["rollingUpdate"] = json!({"maxSurge": 0, "maxUnavailable": 0});
    object["spec"]["replicas"] = json!(1);
    assert!(read(&object).ends_pods().is_some());
}

#[test]
fn one_container_with_one_gpu_changes_and_others_are_refused() {
    let refused = |patch: &dyn Fn(&mut Value), words: &str| {
        let mut object = deployment();
        patch(&mut object);
        match change(&read(&object), SLICE, &guarded(), &around(), 0) {
            NextRequests::Refused(why) => assert!(why.contains(words), "{why}"),
            other => panic!("{words}: {other:?}"),
        }
    };
    refused(&|object| *resources(object) = json!({}), "no container of its pod template");
    refused(&|object| *resources(object) = json!({"limits": {GPU: "2"}}), "requests 2 × nvidia");
    let both = json!({"limits": {GPU: "1", SLICE: "1"}});
    refused(&|object| *resources(object) = both.clone(), "requests 1 × nvidia.com/gpu, 1 ×");
    let one = deployment()["spec"]["template"]["spec"]["containers"][1].clone();
    let spec = |object: &mut Value, key: &str, value: Value| {
        object["spec"]["template"]["spec"][key] = value;
    };
    refused(&|object| spec(object, "initContainers", json!([one])), "containers c, c request");
    let init = |object: &mut Value| {
        spec(object, "containers", json!([{"name": "proxy"}]));
        spec(object, "initContainers", json!([one]));
    };
    refused(&init, "init container c requests GPUs");
    refused(&|object| spec(object, "resourceClaims", json!([{"name": "g"}])), "resource claims");
    refused(&|object| object["spec"]["paused"] = json!(true), "resume its rollout");
    let broken = json!({FORMER_REQUESTS: "{"});
    let mut object = deployment();
    object["metadata"]["annotations"] = broken;
    let told = Owner::read(&object).expect_err("no record");
    assert!(told.starts_with("prod/Deployment/chat: annotation dovetail.dev/former-requests"));
}

#[test]
fn what_a_tool_writes_is_left_to_it_and_a_guard_lets_others_wait() {
    let owner = read(&deployment());
    let tool = Around { tool: Some("Argo CD application x".to_owned()), ..around() };
    let next = change(&owner, SLICE, &guarded(), &tool, 0);
    assert_eq!(next, NextRequests::Manifest("Argo CD application x".to_owned()));
    let held = Around { held: Some("waiting".to_owned()), ..around() };
    let next = change(&owner, SLICE, &guarded(), &held, 0);
    assert_eq!(next, NextRequests::Waits("waiting".to_owned()));
}

#[test]
fn the_watch_begins_once_all_pods_are_replaced_and_compares_the_same_hours() {
    let mut object = deployment();
    let next = change(&read(&object), SLICE, &guarded(), &around(), 1_000);
    take(&mut object, &written(next));
    assert_eq!(rolled(&read(&object), 2_000), None, "its controller has not seen it");
    object["status"] = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1,
        "readyReplicas": 3, "availableReplicas": 3});
    assert_eq!(rolled(&read(&object), 2_000), None, "two pods are old");
    assert_eq!(read(&object).ready, 1);
    object["status"] = deployment()["status"].clone();
    object["status"]["observedGeneration"] = json!(2);
    let write = rolled(&read(&object), 50_000).expect("a watch");
    take(&mut object, &write);
    let owner = read(&object);
    let record = owner.record.clone().expect("a record");
    assert_eq!((record.step, record.since_ms), (RequestsStep::Changed, 50_000));
    assert_eq!(rolled(&owner, 60_000), None);
    assert_eq!(due(&owner, 6 * HOUR_MS), None);
    let [before, after] = due(&owner, 7 * HOUR_MS).expect("a verdict is due");
    assert_eq!(after.to_ms - after.from_ms, 6 * HOUR_MS);
    assert!(before.to_ms <= 1_000 || before.from_ms == 0, "{before:?}");
    assert!(after.from_ms >= 50_000);
    let pods = Workload::of_owner(&owner.about);
    assert_eq!(pods.pods, pods.all_pods);
}

#[test]
fn worse_gives_the_former_resource_back_and_other_verdicts_do_not() {
    for (outcome, returns, stops) in [
        (Outcome::Same, false, false),
        (Outcome::Better, false, false),
        (Outcome::Unknown, false, true),
        (Outcome::Worse, true, true),
    ] {
        let mut object = judged(outcome);
        let owner = read(&object);
        assert_eq!(decided(&owner, Outcome::Same, ""), None, "one verdict for each change");
        assert_eq!(due(&owner, u64::MAX / 2), None);
        let next = returned(&owner, &around(), 9_000);
        assert_eq!(next.is_some(), returns, "{outcome:?}");
        let gate = |object: &Value, is_of_nodes: bool| {
            gate_of_workloads(&guarded(), [read(object)].iter(), is_of_nodes)
        };
        let is_stopped = |gate: Option<Gate>| matches!(gate, Some(Gate::Stopped { .. }));
        assert_eq!(is_stopped(gate(&object, true)), stops, "{outcome:?}");
        assert_eq!(gate(&object, true), gate(&object, false));
        if let Some(next) = next {
            take(&mut object, &written(next));
            assert_eq!(*resources(&mut object), json!({"limits": {GPU: "1"}}));
            assert_eq!(returned(&read(&object), &around(), 9_000), None);
            assert!(is_stopped(gate(&object, false)), "the record stays");
        }
        // Other layouts start again.
        let mut other = guarded();
        other.spec.keep_whole = 1;
        assert_eq!(gate_of_workloads(&other, [read(&object)].iter(), true), None);
    }
    // Pods that would end first wait for a GPU.
    let mut object = judged(Outcome::Worse);
    object["spec"]["strategy"] = json!({"type": "Recreate"});
    let next = returned(&read(&object), &around(), 0);
    assert!(matches!(next, Some(NextRequests::Waits(why)) if why.contains("only 0 of 2")));
}

/// A workload that stops changes does so after it was deleted, too: by the status of the policy.
#[test]
fn a_verdict_that_stops_is_remembered_when_its_workload_is_deleted() {
    for (outcome, stops) in
        [(Outcome::Same, false), (Outcome::Unknown, true), (Outcome::Worse, true)]
    {
        let mut policy = guarded();
        let owner = read(&judged(outcome));
        let found = roll_out(&policy, [].into_iter(), stopped_by(&policy, [&owner].into_iter()));
        assert_eq!(found.is_some(), stops, "{outcome:?}");
        let report = PolicyReport { roll_out: found, ..PolicyReport::default() };
        let patch = status_patch(report, None, &Value::Null, 0).expect("a patch");
        policy.status = patch["status"].clone();
        let expected = match stops {
            // Its verdict is none on a node.
            false => Gate::Canary,
            true => Gate::Stopped {
                by: Subject::Workload("prod/Deployment/chat".to_owned()),
                outcome,
                why: owner.record.and_then(|record| record.watch).expect("a watch").why,
            },
        };
        assert_eq!(gate(&policy, [].into_iter()), expected);
        // It is reported again, and other layouts start again.
        let again = roll_out(&policy, [].into_iter(), [].into_iter());
        assert_eq!(again.map(|one| one.workload), stops.then(|| "prod/Deployment/chat".to_owned()));
        policy.spec.keep_whole = 1;
        assert_eq!(gate(&policy, [].into_iter()), Gate::Canary);
    }
}

#[test]
fn one_workload_is_watched_at_a_time_and_nodes_may_follow_pods_that_wait_for_them() {
    let mut object = deployment();
    let next = change(&read(&object), SLICE, &guarded(), &around(), 1_000);
    take(&mut object, &written(next));
    let gate = |object: &Value, is_of_nodes: bool| {
        gate_of_workloads(&guarded(), [read(object)].iter(), is_of_nodes)
    };
    let waits = Some(Gate::Waits(Subject::Workload("prod/Deployment/chat".to_owned())));
    assert_eq!((gate(&object, false), gate(&object, true)), (waits.clone(), None));
    let watched = changed(&guarded());
    assert_eq!((gate(&watched, false), gate(&watched, true)), (waits.clone(), waits.clone()));
    // What others have changed since is not watched any more.
    let mut taken_over = watched.clone();
    *resources(&mut taken_over) = json!({"limits": {GPU: "1", SLICE: "1"}});
    assert_eq!(gate(&taken_over, true), None);
    assert_eq!(due(&read(&taken_over), 7 * HOUR_MS), None);
    assert_eq!(decided(&read(&taken_over), Outcome::Worse, ""), None);
    let back = written(roll_back(&read(&taken_over), &around(), 0));
    take(&mut taken_over, &back);
    assert_eq!(*resources(&mut taken_over), json!({"limits": {GPU: "1"}}));
    let stopped = gate(&taken_over, true);
    let is_stopped = |gate: &Option<Gate>| {
        matches!(gate, Some(Gate::Stopped { outcome: Outcome::RolledBack, .. }))
    };
    assert!(is_stopped(&stopped), "{stopped:?}");
    // A policy without a guard waits for nothing.
    assert_eq!(gate_of_workloads(&policy(Value::Null), [read(&watched)].iter(), true), None);
    let stopped_node = Gate::Stopped {
        by: Subject::Node("n".to_owned()),
        outcome: Outcome::Worse,
        why: String::new(),
    };
    assert_eq!(stopped_node.clone().and(waits.clone()), stopped_node);
    assert_eq!(Gate::Canary.and(None), Gate::Canary);
    assert_eq!(Gate::Open.and(waits.clone()), waits.clone().expect("a gate"));
    let changes = Gate::Changes { node: "n".to_owned() };
    assert_eq!(changes.clone().and(waits), changes);
}

//! `moves: restartable` and `waitMinutes` on a real API server with its controllers and
//! kube-scheduler, beside a GPU Operator that is played, under the rights of deploy/sharing.

use std::collections::BTreeSet;
use std::process::Stdio;

use dovetail_testkit::cluster;
use serde_json::{Value, json};

use crate::partition_apply::{Setting, policy, tainted};

/// Two nodes cut for small pods, with one replica of a service on each.
fn setting() -> Setting {
    let options =
        cluster::Options { scheduler: true, controller_manager: true, ..Default::default() };
    let small = [vec![("1g.10gb", 7)], vec![("1g.10gb", 7)]];
    let setting = Setting::with(&["n0", "n1"], &small, ("nvidia\\.com/mig-1g\\.10gb", 14), options);
    setting.set_up();
    let labels = json!({"app": "chat"});
    setting.kubectl(&["cordon", "n1"]);
    setting.create(&json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "chat", "namespace": "default"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i",
                "resources": {"limits": {"nvidia.com/mig-1g.10gb": "1"}}}]}}}}));
    setting.waits_for("deployment/chat", "{.status.readyReplicas}=1");
    setting.kubectl(&["uncordon", "n1"]);
    setting.kubectl(&["cordon", "n0"]);
    setting.kubectl(&["scale", "deployment/chat", "--replicas=2"]);
    setting.waits_for("deployment/chat", "{.status.readyReplicas}=2");
    setting.kubectl(&["uncordon", "n0"]);
    // No more than both replicas are enough for its budget.
    setting.create(&json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "chat", "namespace": "default"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": labels}}}));
    setting.waits_for("pdb/chat", "{.status.currentHealthy}=2");
    // Where an autoscaler decides the number of replicas, none is added.
    setting.create(&json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "chat", "namespace": "default"},
        "spec": {"minReplicas": 2, "maxReplicas": 3, "metrics": [
            {"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 80}}}],
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat"}}}));
    // It fits on no GPU as they are.
    setting.create(&json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "big", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i",
            "resources": {"limits": {"nvidia.com/mig-7g.80gb": "1"}}}]}}));
    setting
}

/// Pods stay where they are, and `apply` says so of each node.
fn stay_because_of_their_pods(applied: &Value, nodes: &[&str]) {
    let rows = applied["nodes"].as_array().expect("nodes");
    let named: Vec<&str> = rows.iter().filter_map(|row| row["node"].as_str()).collect();
    assert_eq!(named, nodes, "{applied}");
    for row in rows {
        let why = row["problem"].as_str().unwrap_or_default();
        assert_eq!(row["outcome"], "stays", "{applied}");
        assert!(why.starts_with("pods use GPUs of the node"), "{why}");
    }
}

/// Names and nodes of the replicas.
fn replicas(setting: &Setting) -> BTreeSet<(String, String)> {
    let pods = setting.get(&["pods", "-l", "app=chat"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let pods = pods["items"].as_array().expect("pods").iter();
    pods.map(|pod| (text(&pod["metadata"]["name"]), text(&pod["spec"]["nodeName"]))).collect()
}

fn reasons(setting: &Setting, kind: &str) -> Vec<(String, String)> {
    let events = setting.get(&["events"]);
    let events = events["items"].as_array().expect("events").iter();
    let of = events.filter(|event| event["involvedObject"]["kind"] == kind);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    of.map(|event| (text(&event["reason"]), text(&event["message"]))).collect()
}

fn patch(setting: &Setting, object: [&str; 2], spec: &Value) {
    let patch = json!({"spec": spec}).to_string();
    setting.kubectl(&["patch", object[0], object[1], "--type=merge", "-p", &patch]);
}

#[test]
fn a_replica_moves_to_another_node_once_its_budget_allows_it_and_its_node_is_cut() {
    let setting = setting();
    let before = replicas(&setting);
    let moved = before.iter().find(|(_, node)| node == "n0").expect("a replica on n0").0.clone();
    setting.create(&policy("shared", json!({"mode": "mig", "apply": true})));
    let never = setting.apply("");
    stay_because_of_their_pods(&never, &["n0", "n1"]);

    // A slice of seven for two minutes.
    let restartable = |budget: u32| {
        let budget = json!({"movedGpuSecondsPerHour": budget});
        patch(
            &setting,
            ["sharingpolicy", "shared"],
            &json!({"moves": "restartable", "budget": budget}),
        );
    };
    restartable(10);
    let spent = setting.apply("");
    let row = &spent["nodes"][0];
    assert_eq!((&row["node"], &row["outcome"]), (&json!("n0"), &json!("stays")), "{spent}");
    let why = row["problem"].as_str().unwrap_or_default();
    assert!(why.contains("would lose 18 GPU-seconds") && why.contains("has 10 left"), "{why}");
    restartable(100);
    plans_say_what_moves(&setting, &moved);

    // The server refuses: the node waits, and says so.
    let refused = setting.apply("--move-wait 1s");
    let row = &refused["nodes"][0];
    assert_eq!(row["outcome"], "Emptying", "{refused}");
    let why = row["problem"].as_str().unwrap_or_default();
    assert!(why.contains(&moved) && why.contains("disruption budget chat needs 2"), "{why}");
    assert_eq!(replicas(&setting), before);
    assert!(tainted(&setting.get(&["node", "n0"])));
    let shared = setting.get(&["sharingpolicy", "shared"]);
    assert_eq!(shared["status"]["step"], "Changing", "{shared}");
    assert_eq!(shared["status"]["receipts"][0]["problem"], *why, "{shared}");

    // A run that is killed is continued by the next one.
    is_killed_while_it_waits(&setting);
    assert_eq!(replicas(&setting), before);
    patch(&setting, ["pdb", "chat"], &json!({"minAvailable": 1}));
    setting.waits_for("pdb/chat", "{.status.disruptionsAllowed}=1");
    let done = setting.apply("");
    let row = &done["nodes"][0];
    assert_eq!((&row["node"], &row["outcome"]), (&json!("n0"), &json!("Done")), "{done}");
    assert_eq!(row["moves"][0]["is_evicted"], true, "{done}");

    // It went to the other node, and what was pending starts.
    setting.waits_for("deployment/chat", "{.status.readyReplicas}=2");
    let nodes: Vec<String> = replicas(&setting).into_iter().map(|(_, node)| node).collect();
    assert_eq!(nodes, ["n1", "n1"]);
    setting.waits_for("pod/big", "{.status.phase}=Running");
    assert!(!tainted(&setting.get(&["node", "n0"])));
    receipts_name_what_was_moved(&setting, &moved);
    replicas_are_replaced_before_they_are_evicted(&setting);
    assert_eq!(setting.refused(), BTreeSet::new());
}

/// The disruption budget allows no eviction unless a third replica is ready.
fn replicas_are_replaced_before_they_are_evicted(setting: &Setting) {
    setting.kubectl(&["delete", "hpa", "chat"]);
    patch(setting, ["pdb", "chat"], &json!({"minAvailable": 2}));
    setting.waits_for("pdb/chat", "{.status.disruptionsAllowed}=0");
    setting.waits_for("deployment/chat", "{.status.updatedReplicas}=2");
    let budget = json!({"percentPerDay": 100, "movedGpuSecondsPerHour": 1_000});
    patch(setting, ["sharingpolicy", "shared"], &json!({"budget": budget}));
    setting.create(&requests("large", "nvidia.com/mig-7g.80gb", &json!({})));
    let before: BTreeSet<String> = replicas(setting).into_iter().map(|(name, _)| name).collect();
    let done = setting.apply("");
    let row = &done["nodes"][0];
    assert_eq!((&row["node"], &row["outcome"]), (&json!("n1"), &json!("Done")), "{done}");
    setting.waits_for("pod/large", "{.status.phase}=Running");
    setting.waits_for("deployment/chat", "{.status.readyReplicas}=2");
    let deployment = setting.get(&["deployment", "chat"]);
    assert_eq!(deployment["spec"]["replicas"], 2, "{deployment}");
    assert!(deployment["metadata"]["annotations"].get("dovetail.dev/replacing").is_none());
    let after = replicas(setting);
    assert!(after.iter().all(|(name, node)| node == "n0" && !before.contains(name)), "{after:?}");
}

fn plans_say_what_moves(setting: &Setting, moved: &str) {
    let dry = setting.apply("--dry-run");
    let planned = &dry["nodes"][0];
    assert_eq!(planned["outcome"], "planned", "{dry}");
    let why = planned["problem"].as_str().unwrap_or_default();
    assert!(why.contains("cannot be evicted now") && why.contains("budget chat needs 2"), "{why}");
    let row = &planned["moves"][0];
    assert_eq!((&row["pod"], &row["to"]), (&json!(format!("default/{moved}")), &json!("n1")));
    let object = setting.get(&["sharingpolicy", "shared"]);
    let mut object = policy("shared", object["spec"].clone());
    object["spec"]["nodeSelector"] = json!({});
    setting.folder.write("policy.json", &object.to_string());
    // A pod must be pending for a minute before it counts here.
    let later = "--policy policy.json --at 2100-01-01T00:00:00Z";
    for kind in ["nodes", "pods"] {
        setting.folder.write(&format!("{kind}.json"), &setting.get(&[kind, "-A"]).to_string());
    }
    let call = format!("partition plan --from nodes.json --from pods.json {later}");
    let plan = setting.folder.json(&call);
    assert_eq!(plan["moves"], json!([row]), "{plan}");
    assert_eq!(plan["accepted"], json!({"7g.80gb": 1}), "{plan}");
    let text = setting.folder.call(&call).out;
    assert!(text.contains("to node n1: 18 GPU-seconds lost"), "{text}");
}

fn is_killed_while_it_waits(setting: &Setting) {
    let call = format!(
        "partition apply --settle 0s --config-delay 2s --pending-for 0s --kubeconfig {}",
        setting.kubeconfig
    );
    let mut command = setting.folder.command(&call);
    let mut child = command.stderr(Stdio::piped()).spawn().expect("the program");
    let told = std::io::BufReader::new(child.stderr.take().expect("a pipe"));
    let mut lines = std::io::BufRead::lines(told);
    let waits = |line: &String| line.contains("waiting to evict default/chat");
    assert!(lines.any(|line| waits(&line.expect("text"))));
    child.kill().expect("it runs");
    child.wait().expect("an end");
}

fn receipts_name_what_was_moved(setting: &Setting, moved: &str) {
    let words = format!("moved default/{moved} (to node n1): 18 GPU-seconds lost");
    let shared = setting.get(&["sharingpolicy", "shared"]);
    assert_eq!(shared["status"]["receipts"][0]["moved"], *words, "{shared}");
    for kind in ["Node", "ReplicaSet"] {
        let events = reasons(setting, kind);
        let is_said = |(reason, message): &(String, String)| {
            reason == "PodMoved"
                && message.starts_with(&format!("evicting default/{moved}"))
                && message.contains("the layout of node n0 changes from")
        };
        assert_eq!(events.iter().filter(|event| is_said(event)).count(), 1, "{events:?}");
    }
    let ended = reasons(setting, "Node").into_iter().find(|(reason, _)| reason == "Repartitioned");
    assert!(ended.is_some_and(|(_, message)| message.ends_with(&words)));
}

pub(crate) fn requests(pod: &str, resource: &str, annotations: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": pod, "namespace": "default", "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "i",
            "resources": {"limits": {resource: "1"}}}]}})
}

#[test]
fn a_node_takes_no_new_pods_until_a_pod_with_a_declared_run_time_finishes() {
    let options = cluster::Options { scheduler: true, ..Default::default() };
    let small = [vec![("1g.10gb", 7)], vec![("1g.10gb", 7)]];
    let setting = Setting::with(&["n0"], &small, ("nvidia\\.com/mig-1g\\.10gb", 14), options);
    setting.set_up();
    let slice = "nvidia.com/mig-1g.10gb";
    setting.create(&requests("ends", slice, &json!({"dovetail.dev/runtime": "10m"})));
    setting.waits_for("pod/ends", "{.status.phase}=Running");
    setting.create(&requests("big", "nvidia.com/mig-7g.80gb", &json!({})));
    setting.create(&policy("shared", json!({"mode": "mig", "apply": true, "waitMinutes": 5})));
    let too_long = setting.apply("");
    // It may run for 10 minutes.
    stay_because_of_their_pods(&too_long, &["n0"]);

    patch(&setting, ["sharingpolicy", "shared"], &json!({"waitMinutes": 15}));
    let waits = setting.apply("");
    let row = &waits["nodes"][0];
    assert_eq!((&row["node"], &row["outcome"]), (&json!("n0"), &json!("Emptying")), "{waits}");
    assert_eq!(row["moves"][0]["pod"], "default/ends", "{waits}");
    let until = row["moves"][0]["waits_until"].as_str().expect("a time");
    assert_eq!(row["problem"], format!("waiting until {until} for default/ends to finish"));
    assert!(tainted(&setting.get(&["node", "n0"])));
    // A free slice is there, and no pod gets it.
    setting.create(&requests("late", slice, &json!({})));
    setting.kubectl(&["wait", "pod/late", "--for=condition=PodScheduled=false", "--timeout=120s"]);

    setting.kubectl(&["delete", "pod", "ends", "--now"]);
    let done = setting.apply("");
    let row = &done["nodes"][0];
    assert_eq!((&row["node"], &row["outcome"]), (&json!("n0"), &json!("Done")), "{done}");
    setting.waits_for("pod/big", "{.status.phase}=Running");
    assert!(!tainted(&setting.get(&["node", "n0"])));
    assert_eq!(setting.refused(), BTreeSet::new());
}

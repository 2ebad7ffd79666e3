//! Queues on a real server: what it takes, what it says where it does not, and what people see.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dovetail_cluster::queues::definition;
use dovetail_scheduler::Options;
use dovetail_testkit::ControlPlane;
use dovetail_testkit::binaries::Program;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::schedule::{PATIENCE, Running, create_nodes, pause, pod};

fn definition_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../deploy/queue-definition.yaml")
}

#[test]
fn the_manifest_is_the_definition() {
    let text = std::fs::read_to_string(definition_file()).expect("the manifest");
    assert_eq!(text, definition().manifest(), "run `cargo xtask codegen queues`");
}

/// Runs kubectl on some input; what it says, and whether it was content.
pub(crate) fn kubectl(
    control_plane: &ControlPlane,
    arguments: &[&str],
    input: &str,
) -> (String, bool) {
    let program = control_plane.cluster().program(Program::Kubectl).expect("kubectl").to_owned();
    let mut child = Command::new(program)
        .args(arguments)
        .env("KUBECONFIG", control_plane.kubeconfig())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kubectl");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("a pipe that is read");
    drop(stdin);
    let output = child.wait_with_output().expect("an end");
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), output.status.success())
}

/// A server that knows queues.
pub(crate) fn install(control_plane: &ControlPlane) {
    install_from(control_plane, &definition_file(), "crd/queues.dovetail.dev");
}

/// A server that knows the kind of a definition.
pub(crate) fn install_from(control_plane: &ControlPlane, file: &Path, definition: &str) {
    let file = file.to_str().expect("a path");
    let (said, is_done) = kubectl(control_plane, &["apply", "-f", file], "");
    assert!(is_done, "{said}");
    let wait = ["wait", "--for=condition=Established", definition, "--timeout=120s"];
    let (said, is_done) = kubectl(control_plane, &wait, "");
    assert!(is_done, "{said}");
}

pub(crate) fn queue(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "dovetail.dev/v1alpha1", "kind": "Queue",
        "metadata": {"name": name}, "spec": spec})
}

pub(crate) fn create(control_plane: &ControlPlane, object: &Value) {
    control_plane.create(object).expect("a new object");
}

/// A pod of a native group. It is not made through a typed client, whose types do not know of
/// groups.
pub(crate) fn member(name: &str, gpus: u32, group: &str) -> Value {
    let mut pod = pod(name, gpus);
    (pod["apiVersion"], pod["kind"]) = (json!("v1"), json!("Pod"));
    pod["metadata"]["namespace"] = json!("default");
    pod["spec"]["schedulingGroup"] = json!({"podGroupName": group});
    pod
}

fn assert_refused(control_plane: &ControlPlane, name: &str, spec: Value, why: &str) {
    let object = queue(name, spec).to_string();
    let (said, is_taken) = kubectl(control_plane, &["create", "-f", "-"], &object);
    assert!(!is_taken && said.contains(why), "{why}\nis not in\n{said}");
}

/// What the server refuses, and what it says then.
fn refusals(control_plane: &ControlPlane) {
    let gpus = |amount: Value| json!({"nvidia.com/gpu": amount});
    for (name, spec, why) in [
        ("own", json!({"parent": "own"}), "spec.parent: a queue cannot be its own parent"),
        (
            "much",
            json!({"guaranteed": gpus(json!(9)), "limit": gpus(json!("8"))}),
            "spec.guaranteed: must not exceed spec.limit for any resource",
        ),
        ("minus", json!({"limit": gpus(json!(-1))}), "spec.limit: amounts must not be negative"),
        ("text", json!({"guaranteed": gpus(json!("eight"))}), "spec.guaranteed.nvidia.com/gpu"),
        ("weightless", json!({"weight": 0}), "spec.weight: Invalid value: 0"),
        ("lender", json!({"borrowing": "Always"}), "supported values: \"Never\", \"WhenFree\""),
        (
            "chooser",
            json!({"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In"}]}}),
            "In and NotIn need values, Exists and DoesNotExist take none",
        ),
        ("typo", json!({"garanteed": gpus(json!(1))}), "unknown field \"spec.garanteed\""),
    ] {
        assert_refused(control_plane, name, spec, why);
    }
    let long = "q".repeat(64);
    let why = "pods name a queue in a label, so it has at most 63 characters";
    assert_refused(control_plane, &long, json!({}), why);
}

async fn group(client: &Client) -> Value {
    let kind = GroupVersionKind::gvk("scheduling.k8s.io", "v1beta1", "PodGroup");
    let kind = ApiResource::from_gvk_with_plural(&kind, "podgroups");
    let groups = Api::<DynamicObject>::default_namespaced_with(client.clone(), &kind);
    let group = groups.get("train").await.expect("a group");
    let conditions = group.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions
        .into_iter()
        .find(|one| one["type"] == "PodGroupInitiallyScheduled")
        .unwrap_or_default()
}

/// The lines of `kubectl get queues`, without the age.
fn lines(control_plane: &ControlPlane) -> Vec<String> {
    let (said, is_done) = kubectl(control_plane, &["get", "queues"], "");
    assert!(is_done, "{said}");
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[..words.len() - 1].join(" ")
    };
    said.lines().map(line).collect()
}

pub(crate) async fn until(what: &str, mut enough: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !enough().await {
            pause().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{what} in time"));
}

/// Three queues, one of which has no parent, and a gang of one of them.
fn create_objects(control_plane: &ControlPlane) {
    let gpus = |amount: u32| json!({"nvidia.com/gpu": amount});
    for (name, spec) in [
        ("research", json!({"guaranteed": gpus(12)})),
        ("vision", json!({"parent": "research", "guaranteed": gpus(8), "namespaceSelector": {}})),
        ("lost", json!({"parent": "nowhere"})),
    ] {
        create(control_plane, &queue(name, spec));
    }
    let train = json!({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "default", "labels": {"dovetail.dev/queue": "vision"}},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}});
    create(control_plane, &train);
}

/// Lets both queues borrow up to a limit.
fn let_borrow(control_plane: &ControlPlane) {
    let limit = json!({"nvidia.com/gpu": 20});
    let wider = json!({"spec": {"borrowing": "WhenFree", "limit": limit}}).to_string();
    for name in ["vision", "research"] {
        let patch = ["patch", "queue", name, "--type=merge", "-p", &wider];
        let (said, is_done) = kubectl(control_plane, &patch, "");
        assert!(is_done, "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_are_validated_counted_and_shown() {
    let control_plane = ControlPlane::fresh().expect("a control plane");
    if !control_plane.has_gangs("queues_are_validated_counted_and_shown") {
        return;
    }
    install(&control_plane);
    refusals(&control_plane);
    create_objects(&control_plane);
    let client = control_plane.client().await.expect("a client");
    create_nodes(&Api::<Node>::all(client.clone()), 4).await;
    let scheduler = {
        let config = control_plane.config().await.expect("a kubeconfig");
        Running::start(config, Options::default())
    };
    let pods = Api::<Pod>::default_namespaced(client.clone());
    // A gang of two nodes is more than its queue may have.
    for name in ["m0", "m1"] {
        create(&control_plane, &member(name, 8, "train"));
    }
    let why = "queue vision is guaranteed 8 nvidia.com/gpu and does not borrow: it uses 0, and 16 \
               more would be needed, more than the queue may ever use: raise its quota or limit, \
               or request less";
    until("the condition of the group", async || {
        let says = group(&client).await;
        says["reason"] == "WaitingForQuota" && says["status"] == "False" && says["message"] == why
    })
    .await;
    let condition = |pod: &Pod| {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.clone());
        let scheduled = conditions.into_iter().flatten().find(|one| one.type_ == "PodScheduled");
        scheduled.and_then(|one| Some((one.reason?, one.message?)))
    };
    until("the conditions of its pods", async || {
        let all = [pods.get("m0").await, pods.get("m1").await];
        all.iter().all(|pod| {
            let says = condition(pod.as_ref().expect("a pod"));
            says == Some(("WaitingForQuota".to_owned(), why.to_owned()))
        })
    })
    .await;
    let header = "NAME PARENT GPUS GUARANTEED LIMIT BORROWED PENDING SHARE READY";
    let waiting = [
        header,
        "lost nowhere 0 0 0 0.0% False",
        "research 0 12 0 1 0.0% True",
        "vision research 0 8 0 1 0.0% True",
    ];
    until("the status of all queues", async || lines(&control_plane) == waiting).await;
    let_borrow(&control_plane);
    until("a group that has started", async || {
        let says = group(&client).await;
        says["status"] == "True" && says["reason"] == "Scheduled"
    })
    .await;
    let running = [
        header,
        "lost nowhere 0 0 0 0.0% False",
        "research 16 12 20 4 0 50.0% True",
        "vision research 16 8 20 8 0 50.0% True",
    ];
    until("the status of all queues", async || lines(&control_plane) == running).await;
    scheduler.stop().await;
    let (described, _) = kubectl(&control_plane, &["get", "queue", "lost", "-o", "json"], "");
    let lost: Value = serde_json::from_str(&described).expect("JSON");
    let ready = &lost["status"]["conditions"][0];
    assert_eq!(ready["reason"], "ParentMissing");
    let message = "its parent nowhere does not exist: create it, or name another in spec.parent";
    assert_eq!(ready["message"], message);
}

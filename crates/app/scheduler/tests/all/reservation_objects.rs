//! Reservations on a real server: admitted, refused, in force, ended; who starts meanwhile.

use std::path::{Path, PathBuf};

use dovetail_cluster::reservations::definition;
use dovetail_scheduler::Options;
use dovetail_testkit::ControlPlane;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use serde_json::{Value, json};

use crate::queue_objects::{self, create, install_from, kubectl, until};
use crate::schedule::{Running, create_nodes, pod};

fn definition_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../deploy/reservation-definition.yaml")
}

#[test]
fn the_manifest_is_the_definition() {
    let text = std::fs::read_to_string(definition_file()).expect("the manifest");
    assert_eq!(text, definition().manifest(), "run `cargo xtask codegen reservations`");
}

/// A server that knows reservations.
pub(crate) fn install(control_plane: &ControlPlane) {
    install_from(control_plane, &definition_file(), "crd/reservations.dovetail.dev");
}

/// Nodes of eight GPUs for a queue, from and to so many seconds from now.
pub(crate) fn reservation(name: &str, queue: &str, nodes: u32, (from, to): (i64, i64)) -> Value {
    let at = |seconds: i64| (Timestamp::now() + SignedDuration::from_secs(seconds)).to_string();
    json!({"apiVersion": "dovetail.dev/v1alpha1", "kind": "Reservation",
        "metadata": {"name": name},
        "spec": {"queue": queue, "count": nodes, "requests": {"nvidia.com/gpu": 8},
            "from": at(from), "to": at(to)}})
}

pub(crate) fn status(control_plane: &ControlPlane, name: &str) -> Value {
    let path = format!("/apis/dovetail.dev/v1alpha1/reservations/{name}");
    control_plane.object(&path).unwrap_or_default()["status"].clone()
}

/// What the server refuses, and what it says then.
fn refusals(control_plane: &ControlPlane) {
    let good = || reservation("wrong", "vision", 1, (0, 60));
    let mut both = good();
    both["spec"]["job"] = json!("default/mine");
    let mut backwards = good();
    backwards["spec"]["to"] = json!("2020-01-01T00:00:00Z");
    let mut vague = good();
    vague["spec"]["from"] = json!("tomorrow");
    let mut empty = good();
    empty["spec"]["requests"] = json!({});
    for (object, why) in [
        (both, "spec: name a queue or a job, not both"),
        (backwards, "spec.to: must be later than spec.from"),
        (vague, "spec.from"),
        (empty, "spec.requests"),
    ] {
        let (said, is_taken) = kubectl(control_plane, &["create", "-f", "-"], &object.to_string());
        assert!(!is_taken && said.contains(why), "{why}\nis not in\n{said}");
    }
}

async fn node_of(pods: &Api<Pod>, name: &str) -> Option<String> {
    pods.get(name).await.expect("a pod").spec.and_then(|spec| spec.node_name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reserved_nodes_are_for_the_queue_alone_and_free_when_the_reservation_is_over() {
    let control_plane = ControlPlane::fresh().expect("a control plane");
    queue_objects::install(&control_plane);
    install(&control_plane);
    refusals(&control_plane);
    let all = json!({"namespaceSelector": {}});
    create(&control_plane, &queue_objects::queue("vision", all));
    for object in [
        reservation("later", "vision", 1, (1_800, 7_200)),
        reservation("now", "vision", 1, (-60, 3_600)),
        reservation("much", "vision", 3, (0, 3_600)),
        reservation("over", "vision", 1, (-60, -30)),
    ] {
        create(&control_plane, &object);
    }
    let client = control_plane.client().await.expect("a client");
    create_nodes(&Api::<Node>::all(client.clone()), 2).await;
    let config = control_plane.config().await.expect("a kubeconfig");
    let scheduler = Running::start(config, Options::default());
    for (name, phase) in
        [("later", "Admitted"), ("now", "Active"), ("much", "Refused"), ("over", "Ended")]
    {
        until(phase, async || status(&control_plane, name)["phase"] == phase).await;
    }
    let now = status(&control_plane, "now");
    assert_eq!((&now["pods"], now["nodes"].as_array().map(Vec::len)), (&json!(1), Some(1)));
    let much = status(&control_plane, "much");
    assert!(much["message"].as_str().expect("a reason").starts_with("no room"), "{much}");

    let pods = Api::<Pod>::default_namespaced(client.clone());
    let (mut mine, mut theirs) = (pod("mine", 8), pod("theirs", 8));
    for pod in [&mut mine, &mut theirs] {
        (pod["apiVersion"], pod["kind"]) = (json!("v1"), json!("Pod"));
        pod["metadata"]["namespace"] = json!("default");
    }
    mine["metadata"]["labels"] = json!({"dovetail.dev/queue": "vision"});
    create(&control_plane, &theirs);
    until("the condition of a pod that waits", async || {
        let pod = pods.get("theirs").await.expect("a pod");
        let conditions = pod.status.and_then(|status| status.conditions);
        conditions.into_iter().flatten().any(|one| one.type_ == "PodScheduled")
    })
    .await;
    create(&control_plane, &mine);
    until("the start of the queue's pod", async || node_of(&pods, "mine").await.is_some()).await;
    assert_eq!(node_of(&pods, "mine").await.as_deref(), now["nodes"][0].as_str());
    assert_eq!(node_of(&pods, "theirs").await, None, "both nodes are reserved");
    let (said, is_done) = kubectl(&control_plane, &["delete", "reservation", "later"], "");
    assert!(is_done, "{said}");
    until("the start of the other pod", async || node_of(&pods, "theirs").await.is_some()).await;
    scheduler.stop().await;
}

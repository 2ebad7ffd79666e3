//! The kubelets of all nodes against a real API server.

use std::time::Duration;

use dovetail_testkit::cluster::Options;
use dovetail_testkit::{ControlPlane, EXIT_CODE, KubeletOptions, Kubelets, MachineShape, RUN_MS};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

/// How long anything may take on a busy machine.
const WITHIN: Duration = Duration::from_secs(120);

pub(crate) async fn create_nodes(client: &Client, names: &[&str]) {
    let shape = "8xH100".parse::<MachineShape>().unwrap();
    let nodes = Api::<Node>::all(client.clone());
    for name in names {
        let node: Node = serde_json::from_value(shape.node(name)).unwrap();
        nodes.create(&PostParams::default(), &node).await.unwrap();
    }
}

fn pod(name: &str, gpus: u32) -> Value {
    let gpus = gpus.to_string();
    json!({
        "metadata": { "name": name, "annotations": {} },
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 30,
            "containers": [{
                "name": "main",
                "image": "none",
                "resources": { "requests": { "nvidia.com/gpu": gpus }, "limits": { "nvidia.com/gpu": gpus } },
            }],
        },
    })
}

async fn create(pods: &Api<Pod>, pod: Value) {
    let pod: Pod = serde_json::from_value(pod).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
}

pub(crate) async fn bind(client: &Client, namespace: &str, pod: &str, node: &str) {
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": { "name": pod },
        "target": { "kind": "Node", "name": node },
    });
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    let params = PostParams::default();
    pods.create_subresource::<Value, Value>("binding", pod, &params, &binding).await.unwrap();
}

async fn status(pods: &Api<Pod>, name: &str) -> (String, String, String) {
    let status = pods.get(name).await.unwrap().status.unwrap_or_default();
    let text = Option::unwrap_or_default;
    (text(status.phase), text(status.reason), text(status.message))
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_are_admitted_in_bind_order_run_end_and_go_also_across_a_crash_of_the_server() {
    let control_plane = ControlPlane::start(Options::default()).unwrap();
    let namespace = control_plane.namespace("kubelets").await.unwrap();
    let client = control_plane.client().await.unwrap();
    let pods = Api::<Pod>::namespaced(client.clone(), namespace.name());
    create_nodes(&client, &["a", "b"]).await;
    let options =
        KubeletOptions { terminate_after: Duration::from_millis(20), ..Default::default() };
    let kubelets = Kubelets::start(client.clone(), options);
    kubelets.wait_until_listed(WITHIN).await.unwrap();

    // The name says nothing about the order: the third bind is the one too many.
    for (name, gpus) in [("z", 5), ("y", 3), ("a", 1)] {
        create(&pods, pod(name, gpus)).await;
        bind(&client, namespace.name(), name, "a").await;
    }
    let counts = kubelets.wait_until(WITHIN, |counts| counts.transitions() == 3).await.unwrap();
    assert_eq!((counts.running, counts.rejected), (2, 1));
    let (phase, reason, message) = status(&pods, "a").await;
    assert_eq!((phase.as_str(), reason.as_str()), ("Failed", "OutOfnvidia.com/gpu"));
    let text = "Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, \
                requested: 1, used: 8, capacity: 8";
    assert_eq!(message, text);

    // A deleted pod gives back its room when its containers end.
    pods.delete("z", &DeleteParams::default()).await.unwrap();
    kubelets.wait_until(WITHIN, |counts| counts.deleted == 1).await.unwrap();
    assert_eq!(kubelets.pods_on("a"), 1);

    // Devices that broke unseen, and an allocatable that drops in the open.
    kubelets.break_devices("b", "nvidia.com/gpu", 2);
    create(&pods, pod("broken", 3)).await;
    bind(&client, namespace.name(), "broken", "b").await;
    kubelets.wait_until(WITHIN, |counts| counts.rejected == 2).await.unwrap();
    assert_eq!(status(&pods, "broken").await.1, "UnexpectedAdmissionError");
    kubelets.set_allocatable("a", "nvidia.com/gpu", "3").await.unwrap();
    create(&pods, pod("late", 1)).await;

    // What happens while the server is down is told when it is back.
    control_plane.kill_api_server().unwrap();
    control_plane.start_api_server().unwrap();
    bind(&client, namespace.name(), "late", "a").await;
    let mut short = pod("short", 1);
    short["metadata"]["annotations"] = json!({ RUN_MS: "10", EXIT_CODE: "3" });
    create(&pods, short).await;
    bind(&client, namespace.name(), "short", "b").await;
    let counts = kubelets.wait_until(WITHIN, |counts| counts.rejected == 3 && counts.ended == 2);
    let counts = counts.await.unwrap();
    assert_eq!(
        (status(&pods, "late").await.1.as_str(), counts.refused),
        ("OutOfnvidia.com/gpu", 0)
    );
    let short = pods.get("short").await.unwrap().status.unwrap();
    assert_eq!(short.phase.as_deref(), Some("Failed"));
    let ended = short.container_statuses.unwrap()[0].state.clone().unwrap().terminated.unwrap();
    assert_eq!(ended.exit_code, 3);
    // The condition that the binding wrote is still there.
    let conditions = short.conditions.unwrap();
    assert!(conditions.iter().any(|condition| condition.type_ == "PodScheduled"), "{conditions:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_kube_scheduler_binds_runs() {
    let options = Options { scheduler: true, controller_manager: true, ..Options::default() };
    let control_plane = ControlPlane::start(options).unwrap();
    let namespace = control_plane.namespace("scheduled").await.unwrap();
    let client = control_plane.client().await.unwrap();
    create_nodes(&client, &["a", "b"]).await;
    let kubelets = Kubelets::start(client.clone(), KubeletOptions::default());
    let pods = Api::<Pod>::namespaced(client.clone(), namespace.name());
    for number in 0..8 {
        create(&pods, pod(&format!("pod-{number}"), 2)).await;
    }
    let counts = kubelets.wait_until(WITHIN, |counts| counts.transitions() == 8).await.unwrap();
    assert_eq!(counts.running, 8);
    assert_eq!((kubelets.pods_on("a"), kubelets.pods_on("b")), (4, 4));
    let listed = pods.list(&ListParams::default()).await.unwrap();
    let phases = listed.iter().map(|pod| pod.status.as_ref()?.phase.as_deref());
    assert!(phases.into_iter().all(|phase| phase == Some("Running")));
    control_plane.cluster().check_alive().unwrap();
}

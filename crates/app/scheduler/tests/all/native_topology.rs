//! Native groups that must not leave a topology domain, on a real server.

use dovetail_scheduler::Options;
use dovetail_testkit::{ControlPlane, KubeletOptions, Kubelets, MachineShape};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::gang_run::{group, member, pods_as_written};
use crate::schedule::{PATIENCE, Running, pause, pod};

const RACK: &str = "topology.kubernetes.io/rack";

/// Nodes of eight GPUs, two in each of two racks.
async fn create_racks(client: &Client) {
    let nodes = Api::<Node>::all(client.clone());
    let shape = "8xH100".parse::<MachineShape>().expect("a shape");
    for (at, rack) in ["a", "b", "a", "b"].into_iter().enumerate() {
        let mut node = shape.node(&format!("n{at}"));
        node["metadata"]["labels"][RACK] = json!(rack);
        let node = serde_json::from_value(node).expect("a node");
        nodes.create(&PostParams::default(), &node).await.expect("a new node");
    }
}

fn groups(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("scheduling.k8s.io", "v1beta1", "PodGroup");
    let resource = ApiResource::from_gvk_with_plural(&kind, "podgroups");
    Api::default_namespaced_with(client.clone(), &resource)
}

/// Two pods with a node each that share a rack.
async fn create_pair(client: &Client, number: usize) {
    let mut group = group(&format!("g{number}"), 2);
    group["spec"]["schedulingConstraints"] = json!({"topology": [{"key": RACK}]});
    let group = serde_json::from_value(group).expect("a group");
    groups(client).create(&PostParams::default(), &group).await.expect("a new group");
    for at in 0..2 {
        create(client, member(number, at, 8)).await;
    }
}

async fn create(client: &Client, pod: Value) {
    let pod = serde_json::from_value(pod).expect("a pod");
    let pods = pods_as_written(client);
    pods.create(&PostParams::default(), &pod).await.expect("a new pod");
}

async fn node_of(client: &Client, pod: &str) -> String {
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let pod = pods.get(pod).await.expect("a pod");
    pod.spec.and_then(|spec| spec.node_name).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_native_group_is_in_one_rack_or_says_that_no_rack_has_room() {
    let control_plane = ControlPlane::fresh().expect("a control plane");
    if !control_plane.has_gangs("a_native_group_is_in_one_rack_or_says_that_no_rack_has_room") {
        return;
    }
    let client = control_plane.client().await.expect("a client");
    create_racks(&client).await;
    let kubelets = Kubelets::start(client.clone(), KubeletOptions::default());
    // One node of rack a is taken: only rack b has room for a pair.
    let mut filler = pod("filler", 8);
    filler["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "n0"});
    create(&client, filler).await;
    create_pair(&client, 0).await;
    let kept = groups(&client).get("g0").await.expect("a group").data;
    assert_eq!(kept["spec"]["schedulingConstraints"]["topology"][0]["key"], RACK);
    let config = control_plane.config().await.expect("a kubeconfig");
    let scheduler = Running::start(config, Options::default());
    kubelets.wait_until(PATIENCE, |counts| counts.running == 3).await.expect("pods that run");
    let mut nodes = [node_of(&client, "g0-0").await, node_of(&client, "g0-1").await];
    nodes.sort();
    assert_eq!(nodes, ["n1", "n3"]);
    create_pair(&client, 1).await;
    let says = async {
        loop {
            let group = groups(&client).get("g1").await.expect("a group").data;
            let condition = group["status"]["conditions"][0].clone();
            if condition["reason"] == "Unschedulable" {
                return condition["message"].as_str().unwrap_or_default().to_owned();
            }
            pause().await;
        }
    };
    let message = tokio::time::timeout(PATIENCE, says).await.expect("a reason in time");
    let text = "0/4 nodes are available for all 2 pods at once within one rack";
    assert!(message.starts_with(text), "{message}");
    assert_eq!(node_of(&client, "g1-0").await, "");
    scheduler.stop().await;
}

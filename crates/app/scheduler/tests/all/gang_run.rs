//! Gangs through the whole scheduler: one that cannot be completed, and a leader that is killed.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_cluster::world::{self, Patience};
use dovetail_scheduler::Options;
use dovetail_testkit::binaries::Release;
use dovetail_testkit::{ControlPlane, FakeApi, KubeletOptions, Kubelets};
use futures_util::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::freeze::Process;
use crate::schedule::{
    PATIENCE, Running, assert_within, config, create_nodes, fake_nodes, held, pause, pod, until,
};

pub(crate) fn group(name: &str, min: usize) -> Value {
    json!({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
        "metadata": {"name": name}, "spec": {"schedulingPolicy": {"gang": {"minCount": min}}}})
}

pub(crate) fn member(group: usize, at: usize, gpus: u32) -> Value {
    let mut pod = pod(&format!("g{group}-{at}"), gpus);
    pod["spec"]["schedulingGroup"] = json!({"podGroupName": format!("g{group}")});
    pod
}

/// Bound pods of each gang, by the name of its group.
pub(crate) fn bound_of_gangs(pods: &[Value]) -> BTreeMap<String, usize> {
    let mut bound = BTreeMap::new();
    for pod in pods {
        let group = pod["spec"]["schedulingGroup"]["podGroupName"].as_str().unwrap_or_default();
        let is_bound = pod["spec"]["nodeName"].is_string();
        *bound.entry(group.to_owned()).or_default() += usize::from(is_bound);
    }
    bound
}

/// Two pods of four were bound by a leader that is gone, and there is no room for the other two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_that_cannot_be_completed_is_deleted_pod_by_pod() {
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, 2);
    api.create("podgroups", "default", &group("g0", 4)).expect("a new group");
    for at in 0..4 {
        let mut pod = member(0, at, 8);
        if at < 2 {
            pod["metadata"]["annotations"] = json!({"dovetail.dev/decision": "0-1/4"});
            pod["spec"]["nodeName"] = json!(format!("n{at}"));
        }
        api.create("pods", "default", &pod).expect("a new pod");
    }
    let patience = Patience { complete_within_ms: 200, ..Patience::default() };
    let world = world::Settings { patience, ..world::Settings::default() };
    let scheduler = Running::start(config(&api), Options { world, ..Options::default() });
    // A kubelet would let them go: they are marked.
    let marked = || {
        let pods = api.all("pods");
        let goes = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_string();
        let names = pods.iter().filter(goes).map(|pod| pod["metadata"]["name"].clone());
        let mut names: Vec<Value> = names.collect();
        // Pods that no node holds back are gone at once.
        names.extend(
            (0..2)
                .map(|at| json!(format!("g0-{at}")))
                .filter(|name| !pods.iter().any(|pod| pod["metadata"]["name"] == *name)),
        );
        names.len()
    };
    until(&api, || marked() == 2).await;
    assert_eq!(api.bound().len(), 0);
    // Each says why it was stopped.
    let client = Client::try_from(config(&api)).expect("a client");
    let events: Api<Event> = Api::namespaced(client, "default");
    let is_it = |event: &Event| event.reason.as_deref() == Some("GangIncomplete");
    let all = async || events.list(&ListParams::default()).await.expect("events").items;
    let told = async {
        while all().await.iter().filter(|event| is_it(event)).count() < 2 {
            pause().await;
        }
    };
    tokio::time::timeout(PATIENCE, told).await.expect("an event of each");
    scheduler.stop().await;
}

/// Pods that are sent as they are written: the types of the client know no groups, and would drop
/// them without a word.
pub(crate) fn pods_as_written(client: &Client) -> Api<DynamicObject> {
    Api::default_namespaced_with(client.clone(), &ApiResource::erase::<Pod>(&()))
}

/// Gangs as pods alone say them, for servers without PodGroups of their own.
fn labelled_member(group: usize, at: usize, size: usize) -> Value {
    let mut pod = pod(&format!("g{group}-{at}"), 1);
    pod["metadata"]["labels"] = json!({"dovetail.dev/gang": format!("g{group}")});
    pod["metadata"]["annotations"] = json!({"dovetail.dev/min-members": size.to_string()});
    pod
}

async fn create_groups(client: &Client, gangs: usize, size: usize) {
    let kind = GroupVersionKind::gvk("scheduling.k8s.io", "v1beta1", "PodGroup");
    let resource = ApiResource::from_gvk_with_plural(&kind, "podgroups");
    let groups = Api::<DynamicObject>::default_namespaced_with(client.clone(), &resource);
    for gang in 0..gangs {
        let group = serde_json::from_value(group(&format!("g{gang}"), size)).expect("a group");
        groups.create(&PostParams::default(), &group).await.expect("a new group");
    }
}

async fn create_gangs(client: &Client, release: Release, gangs: usize, size: usize) {
    if release.has_gangs() {
        create_groups(client, gangs, size).await;
    }
    let pods = pods_as_written(client);
    let all = (0..gangs * size).map(|at| (at / size, at % size));
    let creating = stream::iter(all).for_each_concurrent(16, |(gang, at)| {
        let pod =
            if release.has_gangs() { member(gang, at, 1) } else { labelled_member(gang, at, size) };
        let pod = serde_json::from_value(pod).expect("a pod");
        let pods = &pods;
        async move { drop(pods.create(&PostParams::default(), &pod).await.expect("a new pod")) }
    });
    creating.await;
}

/// The gang of a pod that was decided about with others, as its decision says.
fn gang_decided_together(pod: &Pod) -> Option<String> {
    let decision = pod.metadata.annotations.as_ref()?.get("dovetail.dev/decision")?;
    let gang = pod.metadata.name.as_ref()?.split_once('-')?.0;
    decision.contains('/').then(|| gang.to_owned())
}

/// Eight groups of eight on a real server, native ones where it has them; the leader is killed when
/// some of them run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gangs_are_whole_after_the_leader_was_killed() {
    let control_plane = ControlPlane::fresh().expect("a control plane");
    let client = control_plane.client().await.expect("a client");
    create_nodes(&Api::<Node>::all(client.clone()), 8).await;
    let kubelets = Kubelets::start(client.clone(), KubeletOptions::default());
    let running = |count| kubelets.wait_until(PATIENCE, move |counts| counts.running >= count);

    let old = Process::start(control_plane.kubeconfig(), "old");
    let killing = async {
        running(11).await.expect("pods that run");
        drop(old);
    };
    let release = control_plane.cluster().release();
    tokio::join!(create_gangs(&client, release, 8, 8), killing);
    let new = Process::start(control_plane.kubeconfig(), "new");
    let counts = running(64).await.expect("all gangs run");
    assert_eq!(counts.rejected, 0);
    let pods = Api::<Pod>::default_namespaced(client);
    let all = pods.list(&ListParams::default()).await.expect("all pods").items;
    assert_eq!(all.len(), 64);
    let decided_together: BTreeSet<String> = all.iter().filter_map(gang_decided_together).collect();
    assert_eq!(decided_together.len(), 8, "{decided_together:?}");
    assert_within(held(&all));
    drop(new);
}

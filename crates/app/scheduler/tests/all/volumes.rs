//! Claims that get their volumes after the decision: the loop of the scheduler without its wires,
//! then a real server of which the test is the provisioner.

use std::collections::BTreeMap;

use dovetail_cluster::world::ObjectReport;
use dovetail_control::order::{OrderEnd, PodOrder};
use dovetail_control::schedule::News;
use dovetail_objects::{Kind, SELECTED_NODE};
use dovetail_plan::PreemptionConfig;
use dovetail_plan::engine::EngineConfig;
use dovetail_scheduler::Options;
use dovetail_testkit::ControlPlane;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::gangs::{Cluster, member, names, native, node, pod};
use crate::preempt_orders::high;
use crate::schedule::{PATIENCE, Running, create_nodes, elected, pause};
use crate::server::Server;

/// Nodes, and a class whose volumes are made where pods go.
fn cluster(nodes: usize) -> Cluster {
    let mut server = Server::default();
    (0..nodes).for_each(|at| node(&mut server, at));
    let class = json!({"provisioner": "disks", "volumeBindingMode": "WaitForFirstConsumer"});
    server.apply(Kind::StorageClass, "", "local", class);
    Cluster::over(server)
}

fn claim() -> Value {
    json!({"spec": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}})
}

fn with_claim(mut pod: Value, claim: &str) -> Value {
    pod["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]);
    pod
}

/// Decides and binds; which claims are to get which nodes. They are told so.
fn choices(cluster: &mut Cluster) -> BTreeMap<String, String> {
    assert_eq!(cluster.run(), names(&[]));
    let mut chosen = BTreeMap::new();
    while let Some(order) = cluster.scheduler.next_order() {
        let PodOrder::SelectNode { claim, version, node } = &order else { panic!("{order:?}") };
        let key = (Kind::Claim, claim.namespace.to_string(), claim.name.to_string());
        let is_it = cluster.server.objects[&key]["metadata"]["resourceVersion"] == **version;
        if is_it {
            cluster.server.change(&key, |claim| {
                claim["metadata"]["annotations"][SELECTED_NODE] = json!(node);
            });
            chosen.insert(claim.name.to_string(), node.clone());
        }
        let end = if is_it { OrderEnd::Done } else { OrderEnd::Gone };
        cluster.scheduler.order_ended(&order, end, cluster.now_ms);
    }
    chosen
}

fn change(cluster: &mut Cluster, claim: &str, change: impl FnOnce(&mut Value)) {
    cluster.server.change(&(Kind::Claim, "blue".to_owned(), claim.to_owned()), change);
}

/// The provisioner makes a volume that only this node reaches.
fn provision(cluster: &mut Cluster, claim: &str, node: &str) {
    let term = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
    let volume = json!({"spec": {"csi": {"driver": "disks", "volumeHandle": claim},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}}});
    let name = format!("pv-{claim}");
    cluster.server.apply(Kind::PersistentVolume, "", &name, volume);
    change(cluster, claim, |claim| {
        claim["spec"]["volumeName"] = json!(name);
        claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = json!("yes");
    });
}

fn said(cluster: &mut Cluster) -> Vec<String> {
    let news = cluster.scheduler.news().into_iter();
    let reports = news.filter_map(|news| match news {
        News::Object(
            report @ (ObjectReport::Refused { .. }
            | ObjectReport::WaitsForVolumes { .. }
            | ObjectReport::WaitsForVolumesOfOthers { .. }
            | ObjectReport::GroupWaitsForVolumes { .. }
            | ObjectReport::GroupWaits { .. }),
        ) => Some(report.to_string()),
        News::Inconsistent(error) => panic!("{error}"),
        _ => None,
    });
    reports.collect()
}

#[test]
fn a_pod_is_bound_when_its_claim_has_its_volume_and_holds_its_room_until_then() {
    let mut cluster = cluster(1);
    cluster.server.apply(Kind::Claim, "blue", "data", claim());
    cluster.create("p", with_claim(pod(8), "data"));
    assert_eq!(choices(&mut cluster), BTreeMap::from([("data".to_owned(), "n0".to_owned())]));
    assert_eq!(
        said(&mut cluster),
        ["pod blue/p waits for volumes: capacity is reserved for it on n0 until its claim data \
             has its volume there"]
    );
    cluster.create("other", pod(8));
    assert_eq!(choices(&mut cluster), BTreeMap::new(), "it is told once");
    assert!(
        cluster.scheduler.world().pods().pending_pod("blue", "p").is_some(),
        "it says why it waits"
    );
    provision(&mut cluster, "data", "n0");
    assert_eq!(cluster.run(), names(&["p"]));
    cluster.delete(Kind::Pod, "blue", "p");
    assert_eq!(cluster.run(), names(&["other"]));
}

#[test]
fn a_gang_starts_when_all_its_claims_have_volumes() {
    let mut cluster = cluster(2);
    for at in 0..2 {
        cluster.server.apply(Kind::Claim, "blue", &format!("c{at}"), claim());
        cluster.create(&format!("p{at}"), with_claim(member(8, 2, 2), &format!("c{at}")));
    }
    let chosen = choices(&mut cluster);
    let mut nodes: Vec<&String> = chosen.values().collect();
    nodes.sort();
    assert_eq!(nodes, ["n0", "n1"]);
    provision(&mut cluster, "c0", &chosen["c0"]);
    cluster.pass(300_000);
    assert_eq!(choices(&mut cluster), BTreeMap::new());
    provision(&mut cluster, "c1", &chosen["c1"]);
    assert_eq!(cluster.run(), names(&["p0", "p1"]));
}

#[test]
fn all_of_a_gang_and_its_group_say_which_volumes_are_still_missing() {
    let mut cluster = cluster(1);
    let spec = json!({"schedulingPolicy": {"gang": {"minCount": 3}}});
    cluster.server.apply(Kind::PodGroup, "blue", "train", json!({"spec": spec}));
    for at in 0..2 {
        cluster.server.apply(Kind::Claim, "blue", &format!("c{at}"), claim());
        cluster.create(&format!("p{at}"), with_claim(native(1), &format!("c{at}")));
    }
    cluster.create("p2", native(1));
    assert_eq!(choices(&mut cluster).len(), 2);
    let room = "waits for volumes: capacity is reserved for it on n0 until";
    let group = "podgroup blue/train waits for volumes: capacity is reserved for its pods until";
    assert_eq!(
        said(&mut cluster),
        [
            format!("pod blue/p0 {room} its claim c0 has its volume there"),
            format!("pod blue/p1 {room} its claim c1 has its volume there"),
            format!("pod blue/p2 {room} claims c0, c1 of its gang have their volumes"),
            format!("{group} claims c0, c1 of its gang have their volumes"),
        ]
    );
    assert!(cluster.scheduler.world().pods().pending_pod("blue", "p2").is_some(), "it says so");
    cluster.pass(2_000);
    provision(&mut cluster, "c0", "n0");
    assert_eq!(choices(&mut cluster), BTreeMap::new());
    assert_eq!(
        said(&mut cluster),
        [
            format!("pod blue/p0 {room} claim c1 of its gang has its volume"),
            format!("pod blue/p1 {room} its claim c1 has its volume there"),
            format!("pod blue/p2 {room} claim c1 of its gang has its volume"),
            format!("{group} claim c1 of its gang has its volume"),
        ]
    );
    // The provisioner takes it back: the pod is tried again, and its group does not say that it is
    // left untouched.
    change(&mut cluster, "c1", |claim| claim["metadata"]["annotations"] = json!({}));
    assert_eq!(cluster.run(), names(&[]));
    let told = said(&mut cluster);
    let expected = "podgroup blue/train waits for members: podgroup blue/train has 2 of the 3 pods that start together, \
                    and one of its pods could not start and is retried: its events give the reason";
    assert!(told.iter().any(|text| text == expected), "{told:?}");
}

#[test]
fn a_claim_that_goes_is_waited_for() {
    let mut cluster = cluster(1);
    cluster.server.apply(Kind::Claim, "blue", "data", claim());
    cluster.create("p", with_claim(pod(1), "data"));
    choices(&mut cluster);
    said(&mut cluster);
    change(&mut cluster, "data", |claim| {
        claim["metadata"]["deletionTimestamp"] = json!("2030-03-17T17:46:40Z");
    });
    assert_eq!(cluster.run(), names(&[]));
    let told = said(&mut cluster);
    assert!(told[0].starts_with("pod blue/p could not start: "), "{told:?}");
    cluster.delete(Kind::Claim, "blue", "data");
    cluster.pass(1_000);
    assert_eq!(cluster.run(), names(&[]));
    let told = said(&mut cluster);
    let missing = "pod blue/p could not start: persistentvolumeclaim \"data\" not found: create it";
    assert_eq!(told.last().map(String::as_str), Some(missing));
    cluster.server.apply(Kind::Claim, "blue", "data", claim());
    assert_eq!(choices(&mut cluster).len(), 1);
    provision(&mut cluster, "data", "n0");
    assert_eq!(cluster.run(), names(&["p"]));
}

#[test]
fn a_claim_that_changed_meanwhile_is_told_again() {
    let mut cluster = cluster(1);
    cluster.server.apply(Kind::Claim, "blue", "data", claim());
    cluster.create("p", with_claim(pod(1), "data"));
    assert_eq!(cluster.run(), names(&[]));
    change(&mut cluster, "data", |claim| claim["metadata"]["labels"] = json!({"a": "b"}));
    let order = cluster.scheduler.next_order().expect("a choice");
    cluster.scheduler.order_ended(&order, OrderEnd::Gone, cluster.now_ms);
    assert_eq!(choices(&mut cluster).len(), 1);
    provision(&mut cluster, "data", "n0");
    assert_eq!(cluster.run(), names(&["p"]));
}

#[test]
fn what_the_provisioner_cannot_make_gives_the_room_back_and_is_tried_again() {
    let mut cluster = cluster(1);
    cluster.server.apply(Kind::Claim, "blue", "c0", claim());
    cluster.create("p0", with_claim(member(4, 2, 2), "c0"));
    cluster.create("p1", member(4, 2, 2));
    assert_eq!(choices(&mut cluster).len(), 1);
    cluster.create("other", pod(8));
    cluster.watch();
    said(&mut cluster);
    change(&mut cluster, "c0", |claim| claim["metadata"]["annotations"] = json!({}));
    assert_eq!(cluster.run(), names(&["other"]), "the room is free");
    assert_eq!(
        said(&mut cluster),
        ["pod blue/p0 could not start: claim c0 got no volume on node n0: provisioner disks \
             rejected the node, and events of the claim show why; dovetail retries"]
    );
    cluster.delete(Kind::Pod, "blue", "other");
    assert_eq!(choices(&mut cluster), BTreeMap::new(), "not at once");
    cluster.pass(1_000);
    assert_eq!(choices(&mut cluster).len(), 1);
    provision(&mut cluster, "c0", "n0");
    assert_eq!(cluster.run(), names(&["p0", "p1"]));
}

/// Nothing of them has begun: the decision is given up, its pods wait, and none is deleted.
#[test]
fn who_waits_for_volumes_makes_room_without_being_stopped() {
    let mut cluster = cluster(2);
    let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
    let config = EngineConfig { preemption, ..EngineConfig::default() };
    cluster = Cluster::with(std::mem::take(&mut cluster.server), config);
    for at in 0..2 {
        cluster.server.apply(Kind::Claim, "blue", &format!("c{at}"), claim());
        cluster.create(&format!("p{at}"), with_claim(member(8, 2, 2), &format!("c{at}")));
    }
    let chosen = choices(&mut cluster);
    assert_eq!(chosen.len(), 2);
    cluster.create("high", high(8));
    let mut binds = cluster.run();
    binds.extend(cluster.run());
    let orders: Vec<PodOrder> = std::iter::from_fn(|| cluster.scheduler.next_order()).collect();
    let stops =
        |order: &&PodOrder| matches!(order, PodOrder::Evict { .. } | PodOrder::Unmark { .. });
    assert_eq!(orders.iter().filter(stops).count(), 0, "{orders:?}");
    assert_eq!(binds, names(&["high"]), "the room is there at once");
    // When it goes, the gang goes on.
    cluster.delete(Kind::Pod, "blue", "high");
    cluster.run();
    (0..2).for_each(|at| provision(&mut cluster, &format!("c{at}"), &chosen[&format!("c{at}")]));
    assert_eq!(cluster.run(), names(&["p0", "p1"]));
}

#[test]
fn a_volume_that_does_not_come_in_time_gives_the_room_back() {
    let mut cluster = cluster(1);
    cluster.server.apply(Kind::Claim, "blue", "data", claim());
    cluster.create("p", with_claim(pod(8), "data"));
    assert_eq!(choices(&mut cluster).len(), 1);
    cluster.create("other", pod(8));
    cluster.pass(599_999);
    assert_eq!(cluster.run(), names(&[]));
    assert_eq!(cluster.scheduler.due_ms(), Some(cluster.now_ms + 1));
    said(&mut cluster);
    cluster.pass(1);
    assert_eq!(cluster.run(), names(&["other"]));
    assert!(said(&mut cluster)[0].contains("no volume on node n0 within 600 s"));
}

#[test]
fn a_volume_made_elsewhere_leads_its_pod_there() {
    let mut cluster = cluster(2);
    cluster.server.apply(Kind::Claim, "blue", "data", claim());
    cluster.create("p", with_claim(pod(8), "data"));
    let chosen = choices(&mut cluster)["data"].clone();
    let elsewhere = if chosen == "n0" { "n1" } else { "n0" };
    provision(&mut cluster, "data", elsewhere);
    let bind = cluster.decide().pop().expect("a bind");
    assert_eq!(&*bind.node, elsewhere);
}

#[test]
fn who_cannot_be_told_of_says_what_the_server_answers() {
    let mut cluster = cluster(1);
    cluster.server.apply(Kind::Claim, "blue", "data", claim());
    cluster.create("p", with_claim(pod(8), "data"));
    cluster.run();
    said(&mut cluster);
    let order = cluster.scheduler.next_order().expect("a choice");
    let refused = OrderEnd::Refused { code: 403, message: "no right".to_owned() };
    cluster.scheduler.order_ended(&order, refused, cluster.now_ms);
    cluster.run();
    assert_eq!(
        said(&mut cluster),
        ["pod blue/p could not start: node n0 cannot be selected for claim data: the API server \
          rejected it (403): no right; dovetail retries"]
    );
}

/// The objects of a real server that a provisioner deals with.
struct Storage {
    claims: Api<PersistentVolumeClaim>,
    volumes: Api<PersistentVolume>,
}

impl Storage {
    async fn new(client: Client) -> Self {
        let class = json!({"metadata": {"name": "local"}, "provisioner": "disks",
            "volumeBindingMode": "WaitForFirstConsumer"});
        let class = serde_json::from_value(class).expect("a class");
        let classes = Api::<StorageClass>::all(client.clone());
        classes.create(&PostParams::default(), &class).await.expect("a new class");
        let claims = Api::default_namespaced(client.clone());
        Self { claims, volumes: Api::all(client) }
    }

    async fn create(&self, name: &str) {
        let mut claim = claim();
        claim["metadata"]["name"] = json!(name);
        let claim = serde_json::from_value(claim).expect("a claim");
        self.claims.create(&PostParams::default(), &claim).await.expect("a new claim");
    }

    /// Waits until a claim is told a node.
    async fn chosen(&self, name: &str) -> String {
        let chosen = async {
            loop {
                let claim = self.claims.get(name).await.expect("the claim");
                let node = claim.metadata.annotations.and_then(|mut all| all.remove(SELECTED_NODE));
                if let Some(node) = node {
                    return node;
                }
                pause().await;
            }
        };
        tokio::time::timeout(PATIENCE, chosen).await.expect("a choice in time")
    }

    async fn merge(&self, name: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        self.claims.patch(name, &PatchParams::default(), &patch).await.expect("a changed claim");
    }

    /// Makes the volume of a claim where it is wanted, and binds both.
    async fn provision(&self, name: &str) {
        let node = self.chosen(name).await;
        let term = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
        let volume = json!({"metadata": {"name": format!("pv-{name}")}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local", "csi": {"driver": "disks", "volumeHandle": name},
            "claimRef": {"namespace": "default", "name": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}}});
        let volume = serde_json::from_value(volume).expect("a volume");
        self.volumes.create(&PostParams::default(), &volume).await.expect("a new volume");
        let bound = json!({"pv.kubernetes.io/bind-completed": "yes"});
        let volume = json!({"volumeName": format!("pv-{name}")});
        self.merge(name, json!({"metadata": {"annotations": bound}, "spec": volume})).await;
    }
}

fn real_pod(name: &str, gpus: u32, gang: Option<&str>) -> Pod {
    let mut pod = with_claim(crate::schedule::pod(name, gpus), name);
    if let Some(gang) = gang {
        pod["metadata"]["labels"] = json!({"dovetail.dev/gang": gang});
        pod["metadata"]["annotations"] = json!({"dovetail.dev/min-members": "2"});
    }
    serde_json::from_value(pod).expect("a pod")
}

/// The node of each pod once all have one.
async fn nodes_of(pods: &Api<Pod>, names: &[&str]) -> Vec<String> {
    let placed = async {
        loop {
            let all = pods.list(&ListParams::default()).await.expect("all pods").items;
            let node = |name: &&str| {
                let mut of = all.iter().filter(|pod| pod.metadata.name.as_deref() == Some(*name));
                of.next()?.spec.as_ref()?.node_name.clone()
            };
            if let Some(nodes) = names.iter().map(node).collect::<Option<Vec<_>>>() {
                return nodes;
            }
            pause().await;
        }
    };
    tokio::time::timeout(PATIENCE, placed).await.expect("binds in time")
}

/// Waits until a pod says why it waits, in this word.
async fn says(pods: &Api<Pod>, name: &str, word: &str) -> String {
    let said = async {
        loop {
            let pod = pods.get(name).await.expect("the pod");
            let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
            let mut ours = conditions.into_iter().filter(|one| one.type_ == "PodScheduled");
            if let Some(one) = ours.find(|one| one.reason.as_deref() == Some(word)) {
                return one.message.unwrap_or_default();
            }
            pause().await;
        }
    };
    tokio::time::timeout(PATIENCE, said).await.expect("a condition in time")
}

/// A pod, a gang of which each pod has a claim, and a provisioner that fails once: on a real
/// server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provisioner_learns_the_nodes_and_pods_start_with_their_volumes() {
    let control_plane = ControlPlane::fresh().expect("a control plane");
    let client = control_plane.client().await.expect("a client");
    create_nodes(&Api::<Node>::all(client.clone()), 3).await;
    let storage = Storage::new(client.clone()).await;
    let pods = Api::<Pod>::default_namespaced(client);
    for (name, gang) in [("single", None), ("g0", Some("gang")), ("g1", Some("gang"))] {
        storage.create(name).await;
        pods.create(&PostParams::default(), &real_pod(name, 8, gang)).await.expect("a new pod");
    }
    let config = control_plane.config().await.expect("a kubeconfig");
    let scheduler = Running::start(config, Options { dry_run: false, ..elected("one") });

    let message = says(&pods, "single", "WaitingForVolumes").await;
    assert!(message.contains("until its claim single has its volume"), "{message}");
    storage.chosen("single").await;
    let back = json!({"metadata": {"annotations": {SELECTED_NODE: null}}});
    storage.merge("single", back).await;
    let message = says(&pods, "single", "SchedulerError").await;
    assert!(message.contains("provisioner disks rejected the node"), "{message}");
    storage.provision("single").await;
    let single = nodes_of(&pods, &["single"]).await;

    storage.provision("g0").await;
    storage.chosen("g1").await;
    let g0 = pods.get("g0").await.expect("the pod").spec.and_then(|spec| spec.node_name);
    assert_eq!(g0, None, "it waits for the volume of the other");
    storage.provision("g1").await;
    let mut nodes = nodes_of(&pods, &["g0", "g1"]).await;
    nodes.extend(single);
    nodes.sort();
    assert_eq!(nodes, ["n0", "n1", "n2"]);
    scheduler.stop().await;
}

//! Extended resources that a device class maps to devices: the loop of the scheduler without its
//! wires.

use dovetail_control::bind::{BindOutcome, BindReport, Cause};
use dovetail_control::order::PodOrder;
use dovetail_objects::Kind;
use dovetail_plan::PreemptionConfig;
use dovetail_plan::engine::EngineConfig;
use serde_json::{Value, json};

use crate::device_claims::{carry_out, claim_of, devices, node_of, run, slice};
use crate::gangs::{Cluster, names};
use crate::server::{Key, Server};

/// Nodes with devices of class `gpu`, which has the name of a resource, and what device plugins
/// offer of that.
fn cluster(resource: &str, nodes: &[(usize, usize)]) -> Cluster {
    Cluster::over(server(resource, nodes))
}

fn server(resource: &str, nodes: &[(usize, usize)]) -> Server {
    let mut server = Server::default();
    let selectors = json!([{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]);
    let class = json!({"spec": {"selectors": selectors, "extendedResourceName": resource}});
    server.apply(Kind::DeviceClass, "", "gpu", class);
    for (at, (devices, by_plugin)) in nodes.iter().enumerate() {
        let mut allocatable = json!({"cpu": "96", "memory": "1Ti", "pods": "110"});
        if *by_plugin > 0 {
            allocatable[resource] = json!(by_plugin.to_string());
        }
        let status = json!({"allocatable": allocatable, "capacity": allocatable});
        server.apply(Kind::Node, "", &format!("n{at}"), json!({"status": status}));
        if *devices > 0 {
            slice(&mut server, at, *devices);
        }
    }
    server
}

fn asking(resource: &str, count: usize) -> Value {
    json!({"spec": {"schedulerName": "dovetail", "containers": [{"name": "c",
        "resources": {"requests": {"cpu": "1", resource: count.to_string()}}}]}})
}

/// The claims that there are.
fn claims(cluster: &Cluster) -> Vec<Key> {
    let keys = cluster.server.objects.keys();
    keys.filter(|(kind, ..)| *kind == Kind::DeviceClaim).cloned().collect()
}

/// The name of the claim of a pod, as its status says.
fn claim_named_by(cluster: &Cluster, pod: &str) -> String {
    let pod = &cluster.server.objects[&(Kind::Pod, "blue".to_owned(), pod.to_owned())];
    let name = &pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"];
    name.as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_pod_gets_a_claim_for_devices_where_no_device_plugin_offers_its_resource() {
    let resource = "example.com/gpu";
    let mut cluster = cluster(resource, &[(1, 0), (2, 0)]);
    cluster.create("p", asking(resource, 2));
    assert_eq!(run(&mut cluster), names(&["p"]));
    assert_eq!(node_of(&cluster, "p"), "n1", "n0 has one device");
    let name = claim_named_by(&cluster, "p");
    assert_eq!(devices(&cluster, &name), ["n1/d0", "n1/d1"]);
    let pod = cluster.server.objects[&(Kind::Pod, "blue".to_owned(), "p".to_owned())].clone();
    let request = "container-0-request-1";
    let mappings = &pod["status"]["extendedResourceClaimStatus"]["requestMappings"];
    let mapping = json!({"containerName": "c", "resourceName": resource, "requestName": request});
    assert_eq!(*mappings, json!([mapping]));
    let claim = claim_of(&cluster, &name);
    let uid = &pod["metadata"]["uid"];
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid,
        "controller": true});
    let meta = &claim["metadata"];
    assert_eq!(meta["ownerReferences"], json!([owner]));
    assert_eq!(meta["annotations"]["resource.kubernetes.io/extended-resource-claim"], "true");
    assert_eq!(meta["finalizers"], json!(["resource.kubernetes.io/delete-protection"]));
    let exactly = json!({"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2});
    assert_eq!(
        claim["spec"]["devices"]["requests"],
        json!([{"name": request, "exactly": exactly}])
    );
    assert_eq!(claim["status"]["reservedFor"][0]["uid"], *uid);
}

#[test]
fn a_node_has_its_resource_by_its_device_plugin_or_by_devices() {
    for resource in ["example.com/gpu", "nvidia.com/gpu"] {
        let mut cluster = cluster(resource, &[(0, 1), (1, 0), (0, 0)]);
        for at in 0..3 {
            cluster.create(&format!("p{at}"), asking(resource, 1));
        }
        let bound = run(&mut cluster);
        assert_eq!(bound.len(), 2, "{:?}", cluster.reports());
        let mut nodes: Vec<String> = bound.iter().map(|pod| node_of(&cluster, pod)).collect();
        nodes.sort();
        assert_eq!(nodes, ["n0", "n1"], "{resource}");
        assert_eq!(claims(&cluster).len(), 1, "the plugin needs no claim");
        // The pod with the claim ends, and so does its claim: its device is free again.
        let with_claim = bound.iter().find(|pod| node_of(&cluster, pod) == "n1").expect("a pod");
        cluster.delete(Kind::Pod, "blue", with_claim);
        assert_eq!(run(&mut cluster), names(&[]), "its claim has the device");
        let (_, _, claim) = claims(&cluster).pop().expect("a claim");
        cluster.delete(Kind::DeviceClaim, "blue", &claim);
        // The pod was tried too early, and is tried again.
        cluster.pass(31_000);
        assert_eq!(run(&mut cluster).len(), 1, "{resource}");
    }
}

#[test]
fn a_resource_that_stands_for_a_class_is_served_by_its_devices() {
    let mut cluster = cluster("example.com/gpu", &[(1, 0)]);
    let resource = "deviceclass.resource.kubernetes.io/gpu";
    for name in ["p", "q"] {
        cluster.create(name, asking(resource, 1));
    }
    cluster.create("other", asking("example.com/gpu", 1));
    assert_eq!(run(&mut cluster).len(), 1, "both names are for the same device");
    assert_eq!(claims(&cluster).len(), 1);
}

#[test]
fn the_claim_of_a_pod_that_is_not_bound_is_deleted_and_the_pod_is_tried_again() {
    let resource = "example.com/gpu";
    let mut cluster = cluster(resource, &[(1, 0)]);
    cluster.create("p", asking(resource, 1));
    let bind = loop {
        if let Some(bind) = cluster.decide().pop() {
            break bind;
        }
        let order = cluster.scheduler.next_order().expect("a write before the bind");
        carry_out(&mut cluster, &order);
    };
    assert_eq!(claims(&cluster).len(), 1);
    let cause = Cause::Refused { code: 403, message: "no".to_owned() };
    let report =
        BindReport { bind, outcome: BindOutcome::NotBound(cause), answered_in_ms: Some(1) };
    cluster.scheduler.outcome(report, cluster.now_ms);
    assert_eq!(run(&mut cluster), names(&[]), "it pauses");
    assert_eq!(claims(&cluster), [], "finalizer and claim are gone");
    cluster.pass(2_000);
    assert_eq!(run(&mut cluster), names(&["p"]));
    assert_eq!(claims(&cluster).len(), 1);
}

#[test]
fn a_claim_is_created_with_its_finalizer_so_that_three_writes_come_before_the_bind() {
    let resource = "nvidia.com/gpu";
    let mut cluster = cluster(resource, &[(1, 0)]);
    cluster.create("p", asking(resource, 1));
    for _ in 0..3 {
        assert_eq!(cluster.run(), names(&[]));
        let order = cluster.scheduler.next_order().expect("a write");
        carry_out(&mut cluster, &order);
    }
    assert_eq!(cluster.run(), names(&["p"]));
}

#[test]
fn the_next_leader_deletes_the_claim_that_the_last_one_left_and_starts_the_pod() {
    let resource = "nvidia.com/gpu";
    // Created, allocation, status of the pod.
    for writes in 1..=3 {
        let mut cluster = cluster(resource, &[(2, 0)]);
        cluster.create("p", asking(resource, 2));
        for _ in 0..writes {
            assert_eq!(cluster.run(), names(&[]));
            let order = cluster.scheduler.next_order().expect("a write");
            carry_out(&mut cluster, &order);
        }
        let left = claims(&cluster);
        assert_eq!(left.len(), 1, "after {writes} writes");
        let uid = cluster.server.objects[&left[0]]["metadata"]["uid"].clone();
        let mut next = Cluster::over(cluster.server);
        assert_eq!(run(&mut next), names(&["p"]), "after {writes} writes");
        let now = claims(&next);
        assert_eq!(now, left, "one claim, of the same name");
        assert_ne!(next.server.objects[&now[0]]["metadata"]["uid"], uid);
        assert_eq!(devices(&next, &claim_named_by(&next, "p")).len(), 2);
    }
}

#[test]
fn a_gang_goes_where_devices_are_free_for_all_its_pods() {
    let resource = "nvidia.com/gpu";
    let mut cluster = cluster(resource, &[(2, 0), (1, 0), (3, 0)]);
    for at in 0..7 {
        let mut pod = asking(resource, 1);
        pod["metadata"] = json!({"labels": {"dovetail.dev/gang": "train"}, "annotations":
            {"dovetail.dev/min-members": "7", "dovetail.dev/max-members": "7"}});
        cluster.create(&format!("p{at}"), pod);
    }
    assert_eq!(run(&mut cluster), names(&[]), "six devices are too few");
    assert_eq!(claims(&cluster), []);
    slice(&mut cluster.server, 1, 2);
    assert_eq!(run(&mut cluster).len(), 7, "{:?}", cluster.reports());
    assert_eq!(claims(&cluster).len(), 7);
}

/// The devices of a victim are free only when its claim is gone, after it.
#[test]
fn one_pod_is_preempted_for_a_pod_that_waits_for_its_device() {
    let resource = "nvidia.com/gpu";
    let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
    let config = EngineConfig { preemption, ..EngineConfig::default() };
    let mut cluster = Cluster::with(server(resource, &[(1, 0), (1, 0)]), config);
    for name in ["p", "q"] {
        cluster.create(name, asking(resource, 1));
    }
    assert_eq!(run(&mut cluster).len(), 2);
    let mut urgent = asking(resource, 1);
    urgent["spec"]["priority"] = json!(7);
    cluster.create("urgent", urgent);
    let victims = evictions(&mut cluster);
    assert_eq!(victims.len(), 1, "{victims:?}");
    cluster.delete(Kind::Pod, "blue", &victims[0]);
    for _ in 0..3 {
        assert_eq!(evictions(&mut cluster), names(&[]), "the claim has the device still");
        cluster.pass(31_000);
    }
    let claim = claims(&cluster).into_iter().find(|(.., name)| name.starts_with(&victims[0]));
    cluster.delete(Kind::DeviceClaim, "blue", &claim.expect("its claim").2);
    cluster.pass(31_000);
    assert_eq!(run(&mut cluster), names(&["urgent"]));
}

/// Decides; the pods that are to be evicted.
fn evictions(cluster: &mut Cluster) -> Vec<String> {
    assert_eq!(cluster.run(), names(&[]));
    let orders = std::iter::from_fn(|| cluster.scheduler.next_order());
    let evicted = orders.filter_map(|order| match &order {
        PodOrder::Evict { pod, .. } => Some(pod.name.to_string()),
        _ => None,
    });
    evicted.collect()
}

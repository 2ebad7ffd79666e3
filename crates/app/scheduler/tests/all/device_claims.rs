//! Pods with claims of devices: the loop of the scheduler without its wires.

use dovetail_cluster::world::{ClaimPart, ClaimWrite};
use dovetail_control::order::{OrderEnd, PodOrder};
use dovetail_objects::Kind;
use serde_json::{Value, json};

use crate::gangs::{Cluster, member, names, node, pod};
use crate::server::Server;

/// Nodes, and so many devices of class `gpu` on each.
pub(crate) fn cluster(devices: &[usize]) -> Cluster {
    let mut server = Server::default();
    let selectors = json!([{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]);
    server.apply(Kind::DeviceClass, "", "gpu", json!({"spec": {"selectors": selectors}}));
    for (at, devices) in devices.iter().enumerate() {
        node(&mut server, at);
        slice(&mut server, at, *devices);
    }
    Cluster::over(server)
}

pub(crate) fn slice(server: &mut Server, at: usize, devices: usize) {
    let name = format!("n{at}");
    let devices: Vec<Value> = (0..devices).map(|at| json!({"name": format!("d{at}")})).collect();
    let pool = json!({"name": name, "generation": 1, "resourceSliceCount": 1});
    let spec = json!({"driver": "gpu.example.com", "nodeName": name, "pool": pool,
        "devices": devices});
    server.apply(Kind::ResourceSlice, "", &name, json!({"spec": spec}));
}

/// A claim of so many devices.
pub(crate) fn claim(cluster: &mut Cluster, name: &str, count: usize) {
    let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}});
    let spec = json!({"devices": {"requests": [request]}});
    cluster.server.apply(Kind::DeviceClaim, "blue", name, json!({"spec": spec}));
}

pub(crate) fn with_claim(mut pod: Value, claim: &str) -> Value {
    pod["spec"]["resourceClaims"] = json!([{"name": "c", "resourceClaimName": claim}]);
    pod
}

/// The server carries out what is ordered, until nothing more is; which pods are bound.
pub(crate) fn run(cluster: &mut Cluster) -> Vec<String> {
    let mut bound = Vec::new();
    loop {
        bound.extend(cluster.run());
        let orders: Vec<PodOrder> = std::iter::from_fn(|| cluster.scheduler.next_order()).collect();
        if orders.is_empty() {
            bound.sort();
            return bound;
        }
        orders.iter().for_each(|order| carry_out(cluster, order));
    }
}

pub(crate) fn carry_out(cluster: &mut Cluster, order: &PodOrder) {
    let PodOrder::WriteClaim(write) = order else { panic!("{order:?}") };
    let end = if is_carried_out(cluster, write) { OrderEnd::Done } else { OrderEnd::Gone };
    cluster.scheduler.order_ended(order, end, cluster.now_ms);
}

fn is_carried_out(cluster: &mut Cluster, write: &ClaimWrite) -> bool {
    let key = match &write.what {
        ClaimPart::Pod(pod) => (Kind::Pod, "blue".to_owned(), pod.to_string()),
        _ => (Kind::DeviceClaim, "blue".to_owned(), write.claim.name.to_string()),
    };
    let server = &mut cluster.server;
    let known = server.objects.get(&key).map(|object| object["metadata"].clone());
    match (&write.what, known) {
        (ClaimPart::New, None) => {
            server.apply(key.0, &key.1, &key.2, write.patch.clone());
            return true;
        }
        (ClaimPart::New, Some(_)) | (_, None) => return false,
        (ClaimPart::Deletion, Some(known)) => {
            match known["finalizers"].as_array().is_some_and(|all| !all.is_empty()) {
                true => server.change(&key, |claim| {
                    claim["metadata"]["deletionTimestamp"] = json!("2026-11-01T10:00:00Z");
                }),
                false => server.delete(&key),
            }
            return true;
        }
        (_, Some(known)) if known["resourceVersion"] != *write.version => return false,
        (ClaimPart::Metadata | ClaimPart::Status | ClaimPart::Pod(_), Some(_)) => {}
    }
    let is_metadata = write.patch["metadata"]["finalizers"].is_array();
    assert_eq!(write.what == ClaimPart::Metadata, is_metadata, "each part has its own address");
    server.change(&key, |object| merge(object, &write.patch));
    true
}

/// RFC 7386.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in patch {
        match value.is_null() {
            true => _ = target.as_object_mut().and_then(|fields| fields.remove(name)),
            false => merge(&mut target[name], value),
        }
    }
}

pub(crate) fn claim_of(cluster: &Cluster, name: &str) -> Value {
    cluster.server.objects[&(Kind::DeviceClaim, "blue".to_owned(), name.to_owned())].clone()
}

/// Devices of a claim as `pool/device`.
pub(crate) fn devices(cluster: &Cluster, claim: &str) -> Vec<String> {
    let claim = claim_of(cluster, claim);
    let results = claim["status"]["allocation"]["devices"]["results"].as_array().cloned();
    let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
    let name = |one: Value| format!("{}/{}", text(&one["pool"]), text(&one["device"]));
    results.unwrap_or_default().into_iter().map(name).collect()
}

pub(crate) fn node_of(cluster: &Cluster, pod: &str) -> String {
    let key = (Kind::Pod, "blue".to_owned(), pod.to_owned());
    cluster.server.objects[&key]["spec"]["nodeName"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_claim_has_its_devices_and_is_reserved_before_its_pod_is_bound() {
    let mut cluster = cluster(&[1, 2]);
    claim(&mut cluster, "two", 2);
    cluster.create("p", with_claim(pod(1), "two"));
    assert_eq!(cluster.run(), names(&[]), "nothing is bound before the claim is written");
    assert_eq!(run(&mut cluster), names(&["p"]));
    assert_eq!(node_of(&cluster, "p"), "n1", "n0 has one device");
    assert_eq!(devices(&cluster, "two"), ["n1/d0", "n1/d1"]);
    let claim = claim_of(&cluster, "two");
    assert_eq!(
        claim["metadata"]["finalizers"],
        json!(["resource.kubernetes.io/delete-protection"])
    );
    let selector = &claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0];
    assert_eq!(selector["matchFields"][0]["values"], json!(["n1"]));
    let pod = &cluster.server.objects[&(Kind::Pod, "blue".to_owned(), "p".to_owned())];
    let consumer = json!({"resource": "pods", "name": "p", "uid": pod["metadata"]["uid"]});
    assert_eq!(claim["status"]["reservedFor"], json!([consumer]));
}

#[test]
fn devices_are_given_once_and_who_gets_none_says_what_excludes_them() {
    let mut cluster = cluster(&[2, 1]);
    for at in 0..4 {
        claim(&mut cluster, &format!("c{at}"), 1);
        cluster.create(&format!("p{at}"), with_claim(pod(1), &format!("c{at}")));
    }
    assert_eq!(run(&mut cluster).len(), 3);
    let mut given: Vec<String> =
        (0..4).flat_map(|at| devices(&cluster, &format!("c{at}"))).collect();
    given.sort();
    assert_eq!(given, ["n0/d0", "n0/d1", "n1/d0"]);
    let reports = cluster.reports().join("\n");
    let says =
        "cannot allocate all claims: n0 comes closest of 2 nodes with devices: request r of claim";
    assert!(reports.contains(says) && reports.contains("2 in use"), "{reports}");
    // One ends, its controller frees the claim, and the last one starts.
    let first = (0..4).find(|at| !devices(&cluster, &format!("c{at}")).is_empty()).expect("one");
    cluster.delete(Kind::Pod, "blue", &format!("p{first}"));
    cluster.delete(Kind::DeviceClaim, "blue", &format!("c{first}"));
    assert_eq!(run(&mut cluster).len(), 1);
}

#[test]
fn a_claim_that_pods_share_keeps_them_together_and_names_all_of_them() {
    let mut cluster = cluster(&[1, 1]);
    claim(&mut cluster, "one", 1);
    for at in 0..3 {
        cluster.create(&format!("p{at}"), with_claim(pod(1), "one"));
    }
    assert_eq!(run(&mut cluster), names(&["p0", "p1", "p2"]));
    let nodes: Vec<String> = (0..3).map(|at| node_of(&cluster, &format!("p{at}"))).collect();
    assert!(nodes.iter().all(|node| *node == nodes[0]), "{nodes:?}");
    let reserved = claim_of(&cluster, "one")["status"]["reservedFor"].as_array().map(Vec::len);
    assert_eq!(reserved, Some(3));
}

#[test]
fn a_gang_gets_the_devices_of_all_its_pods_or_none() {
    let mut cluster = cluster(&[1, 1]);
    for at in 0..3 {
        claim(&mut cluster, &format!("c{at}"), 1);
        cluster.create(&format!("p{at}"), with_claim(member(8, 3, 3), &format!("c{at}")));
    }
    assert_eq!(run(&mut cluster), names(&[]));
    let given: usize = (0..3).map(|at| devices(&cluster, &format!("c{at}")).len()).sum();
    assert_eq!(given, 0, "nothing is written of a gang that does not fit");
    node(&mut cluster.server, 2);
    slice(&mut cluster.server, 2, 1);
    assert_eq!(run(&mut cluster), names(&["p0", "p1", "p2"]));
}

/// A member whose claim for so many devices is made for it from a template.
pub(crate) fn with_own_claim(cluster: &mut Cluster, name: &str, mut pod: Value, count: usize) {
    pod["spec"]["resourceClaims"] = json!([{"name": "c", "resourceClaimTemplateName": "t"}]);
    cluster.create(name, pod);
    let (pod, made) = ((Kind::Pod, "blue".to_owned(), name.to_owned()), format!("{name}-c"));
    let uid = cluster.server.objects[&pod]["metadata"]["uid"].clone();
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid,
        "controller": true});
    claim(cluster, &made, count);
    let key = (Kind::DeviceClaim, "blue".to_owned(), made.clone());
    cluster.server.change(&key, |claim| claim["metadata"]["ownerReferences"] = json!([owner]));
    let statuses = json!([{"name": "c", "resourceClaimName": made}]);
    cluster.server.change(&pod, |pod| pod["status"]["resourceClaimStatuses"] = statuses.clone());
}

/// A node has CPU for all of them, and devices for some: the gang is spread as the devices are.
#[test]
fn a_gang_puts_as_many_pods_on_a_node_as_get_devices_there() {
    let mut cluster = cluster(&[2, 5, 4]);
    for at in 0..5 {
        with_own_claim(&mut cluster, &format!("p{at}"), member(1, 5, 5), 2);
    }
    assert_eq!(run(&mut cluster).len(), 5, "{:?}", cluster.reports());
    let mut given: Vec<String> =
        (0..5).flat_map(|at| devices(&cluster, &format!("p{at}-c"))).collect();
    given.sort();
    given.dedup();
    assert_eq!(given.len(), 10, "each device is given once: {given:?}");
}

/// Devices of two nodes draw from one counter: who takes one leaves nothing on the other node.
#[test]
fn a_device_that_another_nodes_device_used_up_is_not_waited_for_in_a_circle() {
    let mut cluster = cluster(&[0, 0]);
    let draws = json!([{"counterSet": "s", "counters": {"c": {"value": "1"}}}]);
    let device = |name: &str| json!({"devices": [{"name": name, "consumesCounters": draws}]});
    let counters = json!([{"name": "s", "counters": {"c": {"value": "1"}}}]);
    for (name, node, rest) in [
        ("counters", "n0", json!({"sharedCounters": counters})),
        ("first", "n0", device("d0")),
        ("second", "n1", device("d1")),
    ] {
        let pool = json!({"name": "shared", "generation": 1, "resourceSliceCount": 3});
        let mut spec = json!({"driver": "gpu.example.com", "nodeName": node, "pool": pool});
        merge(&mut spec, &rest);
        cluster.server.apply(Kind::ResourceSlice, "", name, json!({"spec": spec}));
    }
    for at in 0..2 {
        claim(&mut cluster, &format!("c{at}"), 1);
        cluster.create(&format!("p{at}"), with_claim(pod(0), &format!("c{at}")));
    }
    assert_eq!(run(&mut cluster).len(), 1, "{:?}", cluster.reports());
}

/// They are decided one after the other: none is refused what the one before it took.
#[test]
fn gangs_that_come_together_get_devices_without_a_pause() {
    let mut cluster = cluster(&[2, 2, 2]);
    for gang in ["a", "b", "c"] {
        for at in 0..2 {
            let mut pod = member(1, 2, 2);
            pod["metadata"]["labels"]["dovetail.dev/gang"] = json!(gang);
            with_own_claim(&mut cluster, &format!("{gang}{at}"), pod, 1);
        }
    }
    let all = names(&["a0", "a1", "b0", "b1", "c0", "c1"]);
    assert_eq!(run(&mut cluster), all, "{:?}", cluster.reports());
}

/// A gang grows beside its pods that run: their devices are theirs, and do not count twice.
#[test]
fn a_gang_that_grows_counts_the_devices_of_its_pods_once() {
    let mut cluster = cluster(&[4]);
    for at in 0..3 {
        with_own_claim(&mut cluster, &format!("p{at}"), member(1, 2, 5), 1);
    }
    assert_eq!(run(&mut cluster), names(&[]), "more members may come");
    cluster.now_ms += 600_000;
    assert_eq!(run(&mut cluster), names(&["p0", "p1", "p2"]));
    for at in 3..5 {
        with_own_claim(&mut cluster, &format!("p{at}"), member(1, 2, 5), 1);
    }
    assert_eq!(run(&mut cluster).len(), 1, "{:?}", cluster.reports());
}

#[test]
fn the_next_leader_goes_on_where_the_last_one_stopped() {
    for writes in 1..=2 {
        let mut cluster = cluster(&[1, 1]);
        claim(&mut cluster, "one", 1);
        cluster.create("p", with_claim(pod(1), "one"));
        for _ in 0..writes {
            assert_eq!(cluster.run(), names(&[]));
            let order = cluster.scheduler.next_order().expect("a write");
            carry_out(&mut cluster, &order);
        }
        let before = devices(&cluster, "one");
        assert_eq!(before.len(), writes - 1, "the finalizer comes first");
        let mut next = Cluster::over(cluster.server);
        assert_eq!(run(&mut next), names(&["p"]));
        let after = devices(&next, "one");
        assert!(before.is_empty() || before == after, "what was written stays");
        assert!(after[0].starts_with(&node_of(&next, "p")));
    }
}

#[test]
fn a_claim_that_is_deleted_while_it_is_written_ends_the_decision_of_its_pod_alone() {
    let mut cluster = cluster(&[1, 1]);
    for at in 0..2 {
        claim(&mut cluster, &format!("c{at}"), 1);
        cluster.create(&format!("p{at}"), with_claim(pod(1), &format!("c{at}")));
    }
    assert_eq!(cluster.run(), names(&[]));
    let orders: Vec<PodOrder> = std::iter::from_fn(|| cluster.scheduler.next_order()).collect();
    assert_eq!(orders.len(), 2, "a finalizer of each");
    cluster.delete(Kind::DeviceClaim, "blue", "c1");
    orders.iter().for_each(|order| carry_out(&mut cluster, order));
    assert_eq!(run(&mut cluster), names(&["p0"]));
    claim(&mut cluster, "c1", 1);
    cluster.pass(31_000);
    assert_eq!(run(&mut cluster), names(&["p1"]), "before the first attempt would time out");
}

#[test]
fn what_was_written_for_a_pod_that_is_not_bound_is_taken_back() {
    let mut cluster = cluster(&[1]);
    claim(&mut cluster, "one", 1);
    cluster.create("p", with_claim(pod(1), "one"));
    for _ in 0..2 {
        assert_eq!(cluster.run(), names(&[]));
        let order = cluster.scheduler.next_order().expect("a write");
        carry_out(&mut cluster, &order);
    }
    let bind = cluster.decide().pop().expect("a bind");
    let cause = dovetail_control::bind::Cause::Refused { code: 403, message: "no".to_owned() };
    let outcome = dovetail_control::bind::BindOutcome::NotBound(cause);
    let report = dovetail_control::bind::BindReport { bind, outcome, answered_in_ms: Some(1) };
    cluster.scheduler.outcome(report, cluster.now_ms);
    let order = cluster.scheduler.next_order().expect("a write");
    carry_out(&mut cluster, &order);
    let status = claim_of(&cluster, "one")["status"].clone();
    assert_eq!((&status["allocation"], &status["reservedFor"]), (&json!(null), &json!(null)));
    // Others may have them meanwhile.
    claim(&mut cluster, "other", 1);
    cluster.create("q", with_claim(pod(1), "other"));
    assert_eq!(run(&mut cluster), names(&["q"]));
}

#[test]
fn a_pod_with_a_feature_that_is_not_understood_is_left_and_says_which() {
    let mut cluster = cluster(&[1]);
    let exactly = json!({"deviceClassName": "gpu", "count": 1, "warpSpeed": true});
    let spec = json!({"devices": {"requests": [{"name": "r", "exactly": exactly}]}});
    cluster.server.apply(Kind::DeviceClaim, "blue", "odd", json!({"spec": spec}));
    cluster.create("p", with_claim(pod(1), "odd"));
    assert_eq!(run(&mut cluster), names(&[]));
    let reports = cluster.reports().join("\n");
    assert!(reports.contains("request r: field warpSpeed is not understood"), "{reports}");
}

#[test]
fn a_rule_that_taints_devices_keeps_pods_from_them_until_it_is_gone() {
    let mut cluster = cluster(&[1, 1]);
    let taint = json!({"key": "example.com/broken", "effect": "NoSchedule"});
    let rule = |pool: &str| json!({"spec": {"deviceSelector": {"pool": pool}, "taint": taint}});
    cluster.server.apply(Kind::DeviceTaintRule, "", "first", rule("n0"));
    for at in 0..2 {
        claim(&mut cluster, &format!("c{at}"), 1);
        cluster.create(&format!("p{at}"), with_claim(pod(1), &format!("c{at}")));
    }
    assert_eq!(run(&mut cluster).len(), 1);
    let reports = cluster.reports().join("\n");
    let says = "1 with the taint example.com/broken:NoSchedule of DeviceTaintRule first";
    assert!(reports.contains(says), "{reports}");
    cluster.delete(Kind::DeviceTaintRule, "", "first");
    assert_eq!(run(&mut cluster).len(), 1);
}

/// A cluster with one device on each of two nodes, which must be attached before its pod starts.
fn with_conditions() -> Cluster {
    let mut cluster = cluster(&[1, 1]);
    for at in 0..2 {
        let key = (Kind::ResourceSlice, String::new(), format!("n{at}"));
        cluster.server.change(&key, |slice| {
            slice["spec"]["devices"][0]["bindingConditions"] = json!(["Attached"]);
            slice["spec"]["devices"][0]["bindingFailureConditions"] = json!(["Broken"]);
        });
    }
    claim(&mut cluster, "one", 1);
    cluster.create("p", with_claim(pod(1), "one"));
    cluster
}

/// The driver says something of the device of the claim.
fn driver_says(cluster: &mut Cluster, kind: &str) {
    let key = (Kind::DeviceClaim, "blue".to_owned(), "one".to_owned());
    cluster.server.change(&key, |claim| {
        let device = &claim["status"]["allocation"]["devices"]["results"][0];
        let condition = json!({"type": kind, "status": "True", "message": "by its fabric"});
        claim["status"]["devices"] = json!([{"driver": device["driver"], "pool": device["pool"],
            "device": device["device"], "conditions": [condition]}]);
    });
}

#[test]
fn a_pod_is_bound_when_its_devices_are_ready() {
    let mut cluster = with_conditions();
    assert_eq!(run(&mut cluster), names(&[]));
    let allocation = claim_of(&cluster, "one")["status"]["allocation"].clone();
    let device = &allocation["devices"]["results"][0];
    assert_eq!(device["bindingConditions"], json!(["Attached"]));
    assert_eq!(device["bindingFailureConditions"], json!(["Broken"]));
    assert!(allocation["allocationTimestamp"].is_string(), "{allocation}");
    let reports = cluster.reports().join("\n");
    assert!(reports.contains("until device gpu.example.com/n0/d0 is ready"), "{reports}");
    driver_says(&mut cluster, "Attached");
    assert_eq!(run(&mut cluster), names(&["p"]));
    assert_eq!(devices(&cluster, "one"), ["n0/d0"]);
}

#[test]
fn a_claim_gets_devices_again_when_its_device_fails() {
    let mut cluster = with_conditions();
    assert_eq!(run(&mut cluster), names(&[]));
    driver_says(&mut cluster, "Broken");
    assert_eq!(run(&mut cluster), names(&[]));
    let status = claim_of(&cluster, "one")["status"].clone();
    let left = [&status["allocation"], &status["reservedFor"], &status["devices"]];
    assert!(left.iter().all(|field| field.is_null()), "{status}");
    let reports = cluster.reports().join("\n");
    assert!(reports.contains("is not ready (Broken: by its fabric)"), "{reports}");
    // After a pause it gets a device again.
    cluster.pass(2_000);
    assert_eq!(run(&mut cluster), names(&[]));
    driver_says(&mut cluster, "Attached");
    assert_eq!(run(&mut cluster), names(&["p"]));
}

#[test]
fn a_claim_gets_devices_again_when_its_device_is_late() {
    let mut cluster = with_conditions();
    assert_eq!(run(&mut cluster), names(&[]));
    cluster.pass(599_000);
    assert_eq!(run(&mut cluster), names(&[]));
    assert_eq!(devices(&cluster, "one"), ["n0/d0"], "it may take ten minutes");
    cluster.pass(2_000);
    assert_eq!(run(&mut cluster), names(&[]));
    assert!(devices(&cluster, "one").is_empty());
    let reports = cluster.reports().join("\n");
    assert!(reports.contains("was not ready on node n0 within 600 s"), "{reports}");
}

#[test]
fn the_next_leader_counts_from_when_a_claim_got_its_devices() {
    let mut cluster = with_conditions();
    assert_eq!(run(&mut cluster), names(&[]));
    let (now_ms, server) = (cluster.now_ms, cluster.server);
    let mut next = Cluster::over(server);
    next.pass(now_ms + 590_000 - next.now_ms);
    assert_eq!(run(&mut next), names(&[]));
    assert_eq!(devices(&next, "one"), ["n0/d0"]);
    next.pass(11_000);
    assert_eq!(run(&mut next), names(&[]));
    assert!(devices(&next, "one").is_empty());
}

//! Gangs whose members have different ResourceClaims: by other templates, of other classes.

use dovetail_objects::Kind;
use serde_json::{Value, json};

use crate::device_claims::{claim, cluster, devices, node_of, run, with_claim, with_own_claim};
use crate::gangs::{Cluster, member, names, node};

/// Offers so many devices of class `nic` on a node.
fn nics(cluster: &mut Cluster, at: usize, count: usize) {
    let selectors = json!([{"cel": {"expression": "device.driver == 'nic.example.com'"}}]);
    let class = json!({"spec": {"selectors": selectors}});
    cluster.server.apply(Kind::DeviceClass, "", "nic", class);
    let devices: Vec<Value> = (0..count).map(|at| json!({"name": format!("c{at}")})).collect();
    let pool = json!({"name": format!("n{at}"), "generation": 1, "resourceSliceCount": 1});
    let spec = json!({"driver": "nic.example.com", "nodeName": format!("n{at}"), "pool": pool,
        "devices": devices});
    cluster.server.apply(Kind::ResourceSlice, "", &format!("nics-{at}"), json!({"spec": spec}));
}

/// A member whose own claim, by template `u`, is for so many devices of class `nic`.
fn with_nics(cluster: &mut Cluster, name: &str, pod: Value, count: usize) {
    with_own_claim(cluster, name, pod, count);
    let key = (Kind::DeviceClaim, "blue".to_owned(), format!("{name}-c"));
    cluster.server.change(&key, |claim| {
        claim["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = json!("nic");
    });
    let key = (Kind::Pod, "blue".to_owned(), name.to_owned());
    cluster.server.change(&key, |pod| {
        pod["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = json!("u");
    });
}

fn given(cluster: &Cluster, pods: &[&str]) -> Vec<String> {
    let of = |pod: &&str| devices(cluster, &format!("{pod}-c"));
    let mut given: Vec<String> = pods.iter().flat_map(of).collect();
    given.sort();
    given
}

#[test]
fn members_with_claims_of_two_classes_start_together_or_not_at_all() {
    let mut cluster = cluster(&[2, 0]);
    nics(&mut cluster, 1, 1);
    for name in ["p0", "p1"] {
        with_own_claim(&mut cluster, name, member(1, 4, 4), 1);
    }
    for name in ["p2", "p3"] {
        with_nics(&mut cluster, name, member(1, 4, 4), 1);
    }
    let all = ["p0", "p1", "p2", "p3"];
    assert_eq!(run(&mut cluster), names(&[]), "one nic is missing");
    assert_eq!(given(&cluster, &all), names(&[]), "nothing is written of a gang that does not fit");
    node(&mut cluster.server, 2);
    nics(&mut cluster, 2, 1);
    assert_eq!(run(&mut cluster), names(&all), "{:?}", cluster.reports());
    assert_eq!(given(&cluster, &all), ["n0/d0", "n0/d1", "n1/c0", "n2/c0"]);
    assert_eq!([node_of(&cluster, "p0"), node_of(&cluster, "p1")], ["n0", "n0"]);
}

/// Whichever member and whichever node comes first, the small one leaves the large one its devices.
#[test]
fn members_with_claims_of_several_counts_fit_where_any_order_of_them_does() {
    for nodes in [[3, 2], [2, 3]] {
        for (small, large) in [("p0", "p1"), ("p1", "p0")] {
            let mut cluster = cluster(&nodes);
            with_own_claim(&mut cluster, "p0", member(1, 2, 2), if small == "p0" { 2 } else { 3 });
            with_own_claim(&mut cluster, "p1", member(1, 2, 2), if small == "p0" { 3 } else { 2 });
            let case = format!("{nodes:?}, {large} is large");
            assert_eq!(run(&mut cluster), names(&["p0", "p1"]), "{case}: {:?}", cluster.reports());
            assert_eq!(given(&cluster, &["p0", "p1"]).len(), 5, "{case}");
        }
    }
}

/// On one node, members of both kinds draw from the same devices.
#[test]
fn members_with_claims_of_several_counts_share_the_devices_of_a_node() {
    let mut cluster = cluster(&[4]);
    for (at, count) in [1, 2, 2].into_iter().enumerate() {
        with_own_claim(&mut cluster, &format!("p{at}"), member(1, 3, 3), count);
    }
    let all = ["p0", "p1", "p2"];
    assert_eq!(run(&mut cluster), names(&[]), "five devices are needed");
    assert_eq!(given(&cluster, &all), names(&[]));
    crate::device_claims::slice(&mut cluster.server, 0, 5);
    assert_eq!(run(&mut cluster), names(&all), "{:?}", cluster.reports());
    assert_eq!(given(&cluster, &all).len(), 5);
}

/// Offers devices of these sizes on a node, of class `gpu`.
fn sized(cluster: &mut Cluster, at: usize, sizes: &[&str]) {
    let device = |(number, size): (usize, &&str)| {
        let attributes = json!({"size": {"string": size}});
        json!({"name": format!("d{number}"), "attributes": attributes})
    };
    let devices: Vec<Value> = sizes.iter().enumerate().map(device).collect();
    let pool = json!({"name": format!("n{at}"), "generation": 1, "resourceSliceCount": 1});
    let spec = json!({"driver": "gpu.example.com", "nodeName": format!("n{at}"), "pool": pool,
        "devices": devices});
    cluster.server.apply(Kind::ResourceSlice, "", &format!("n{at}"), json!({"spec": spec}));
}

/// A member whose own claim is for one device that meets an expression.
fn with_selector(cluster: &mut Cluster, name: &str, pod: Value, expression: &str) {
    with_own_claim(cluster, name, pod, 1);
    let key = (Kind::DeviceClaim, "blue".to_owned(), format!("{name}-c"));
    cluster.server.change(&key, |claim| {
        claim["spec"]["devices"]["requests"][0]["exactly"]["selectors"] =
            json!([{"cel": {"expression": expression}}]);
    });
}

const BIG: &str = "device.attributes['gpu.example.com'].size == 'big'";

/// Each kind by itself fits on any node: together they are spread as the devices are.
#[test]
fn members_with_other_selectors_share_the_devices_of_nodes() {
    for nodes in [vec![1, 1, 1, 1], vec![2, 2], vec![3, 1], vec![1, 3], vec![4]] {
        let mut cluster = cluster(&nodes);
        for name in ["p0", "p1"] {
            with_own_claim(&mut cluster, name, member(1, 4, 4), 1);
        }
        for name in ["p2", "p3"] {
            let expression = "device.driver == 'gpu.example.com'";
            with_selector(&mut cluster, name, member(1, 4, 4), expression);
        }
        let all = ["p0", "p1", "p2", "p3"];
        assert_eq!(run(&mut cluster), names(&all), "{nodes:?}: {:?}", cluster.reports());
        let mut devices = given(&cluster, &all);
        devices.dedup();
        assert_eq!(devices.len(), 4, "{nodes:?}: {devices:?}");
    }
}

/// Three kinds, of which each two fit on the first node.
#[test]
fn members_of_three_kinds_share_the_devices_of_a_node() {
    for last in [1, 2] {
        let mut cluster = cluster(&[2, last]);
        with_own_claim(&mut cluster, "p0", member(1, 3, 3), 1);
        for (name, size) in [("p1", "x"), ("p2", "y")] {
            let expression = format!("device.driver != '{size}'");
            with_selector(&mut cluster, name, member(1, 3, 3), &expression);
        }
        let all = ["p0", "p1", "p2"];
        assert_eq!(run(&mut cluster), names(&all), "{:?}", cluster.reports());
        let mut devices = given(&cluster, &all);
        devices.dedup();
        assert_eq!(devices.len(), 3, "{devices:?}");
    }
}

/// The member that takes any device is decided first, and leaves the other the one that it needs.
#[test]
fn members_of_a_node_get_devices_that_suit_all_of_them() {
    let mut cluster = cluster(&[0]);
    sized(&mut cluster, 0, &["big", "small"]);
    with_own_claim(&mut cluster, "p0", member(2, 2, 2), 1);
    with_selector(&mut cluster, "p1", member(1, 2, 2), BIG);
    assert_eq!(run(&mut cluster), names(&["p0", "p1"]), "{:?}", cluster.reports());
    assert_eq!(devices(&cluster, "p0-c"), ["n0/d1"]);
    assert_eq!(devices(&cluster, "p1-c"), ["n0/d0"]);
}

/// Fewer devices suit one member: it is placed first, whichever node comes first.
#[test]
fn members_whose_devices_are_scarce_are_placed_first() {
    for sizes in [["big", "small"], ["small", "big"]] {
        for (any, choosy) in [("p0", "p1"), ("p1", "p0")] {
            let mut cluster = cluster(&[0, 0]);
            sized(&mut cluster, 0, &sizes[..1]);
            sized(&mut cluster, 1, &sizes[1..]);
            for name in ["p0", "p1"] {
                match name == any {
                    true => with_own_claim(&mut cluster, name, member(1, 2, 2), 1),
                    false => with_selector(&mut cluster, name, member(1, 2, 2), BIG),
                }
            }
            let case = format!("{sizes:?}, {choosy} needs the big one");
            assert_eq!(run(&mut cluster), names(&["p0", "p1"]), "{case}: {:?}", cluster.reports());
            assert_ne!(node_of(&cluster, "p0"), node_of(&cluster, "p1"), "{case}");
        }
    }
}

/// Claims that are not made from templates are not counted: the one that gets nothing is named.
#[test]
fn a_claim_that_is_left_without_a_device_is_named_with_its_pod() {
    let mut cluster = cluster(&[1]);
    for at in 0..2 {
        claim(&mut cluster, &format!("c{at}"), 1);
        cluster.create(&format!("p{at}"), with_claim(member(1, 2, 2), &format!("c{at}")));
    }
    assert_eq!(run(&mut cluster), names(&[]));
    let reports = cluster.reports().join("\n");
    let says = "node n0 did not have enough free devices for resourceclaim \"c1\" of pod p1";
    assert!(reports.contains(says), "{reports}");
    assert!(reports.contains("use one ResourceClaimTemplate for its pods"), "{reports}");
}

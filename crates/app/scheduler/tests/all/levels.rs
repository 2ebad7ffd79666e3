//! Topology levels: labels of nodes, HyperNodes and Topologies of Kueue say where nodes are; gangs
//! ask for levels.

use std::collections::BTreeSet;

use dovetail_objects::{Kind, WorkloadKind};
use serde_json::{Value, json};

use crate::gangs::{Cluster, member, names, node, pod};

/// Four nodes of eight GPUs with these labels.
fn nodes(labels: [Value; 4]) -> Cluster {
    let mut cluster = Cluster::of(0);
    for (at, labels) in labels.into_iter().enumerate() {
        node(&mut cluster.server, at);
        let key = (Kind::Node, String::new(), format!("n{at}"));
        cluster.server.change(&key, |node| {
            for (label, value) in labels.as_object().expect("labels") {
                node["metadata"]["labels"][label] = value.clone();
            }
        });
    }
    cluster
}

fn racks(label: &str) -> Cluster {
    nodes(["a", "b", "a", "b"].map(|rack| json!({label: rack})))
}

/// Two members of a gang that need a node each.
fn create_pair(cluster: &mut Cluster, annotations: Value) {
    for at in 0..2 {
        let mut pod = member(8, 2, 2);
        for (key, value) in annotations.as_object().expect("annotations") {
            pod["metadata"]["annotations"][key] = value.clone();
        }
        cluster.create(&format!("p{at}"), pod);
    }
}

fn nodes_of(cluster: &Cluster, pods: &[&str]) -> BTreeSet<String> {
    let node = |pod: &&str| {
        let key = (Kind::Pod, "blue".to_owned(), (*pod).to_owned());
        cluster.server.objects[&key]["spec"]["nodeName"].as_str().unwrap_or("none").to_owned()
    };
    pods.iter().map(node).collect()
}

fn is_one_rack(nodes: &BTreeSet<String>) -> bool {
    [["n0", "n2"], ["n1", "n3"]].iter().any(|rack| nodes.iter().eq(rack.iter()))
}

#[test]
fn a_gang_is_in_one_domain_of_the_level_that_it_requires() {
    for label in ["topology.k8s.aws/network-node-layer-3", "fabric.topograph.run/tier-0"] {
        let mut cluster = racks(label);
        // One node of each rack is taken, n0 and then whichever is left: no rack has room for both.
        let mut filler = pod(8);
        filler["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "n0"});
        cluster.create("filler", filler);
        assert_eq!(cluster.run(), names(&["filler"]));
        create_pair(&mut cluster, json!({"dovetail.dev/topology-required": "rack"}));
        assert_eq!(cluster.run(), names(&["p0", "p1"]));
        assert_eq!(nodes_of(&cluster, &["p0", "p1"]), ["n1", "n3"].map(str::to_owned).into());
    }
}

#[test]
fn a_level_that_no_node_carries_is_named_and_the_pods_wait() {
    let mut cluster = racks("topology.kubernetes.io/rack");
    create_pair(&mut cluster, json!({"dovetail.dev/topology-required": "clique"}));
    assert_eq!(cluster.run(), names(&[]));
    let report = cluster.reports().remove(0);
    assert!(
        report.starts_with(
            "pod blue/p0 is skipped: gang blue/train: it requests topology level `clique`, but no \
             node has one of its labels (nvidia.com/gpu.clique,"
        ),
        "{report}"
    );
    // As soon as nodes carry it, it is one like the others.
    for (at, clique) in ["x", "y", "x", "y"].iter().enumerate() {
        let key = (Kind::Node, String::new(), format!("n{at}"));
        cluster.server.change(&key, |node| {
            node["metadata"]["labels"]["nvidia.com/gpu.clique"] = json!(clique);
        });
    }
    assert_eq!(cluster.run(), names(&["p0", "p1"]));
    assert!(is_one_rack(&nodes_of(&cluster, &["p0", "p1"])));
}

/// Two labels of one level that group the nodes differently are not one level: who names the second
/// is not served by the first. Where they group them alike either does.
#[test]
fn a_label_that_groups_nodes_otherwise_than_the_first_of_its_level_is_refused() {
    let (first, second) = ("topology.kubernetes.io/rack", "cloud.google.com/gce-topology-subblock");
    let of = |racks: [&str; 4]| {
        let mut at = racks.iter().zip(["s1", "s2", "s1", "s2"]);
        let mut labels = || at.next().map(|(rack, sub)| json!({first: rack, second: sub}));
        nodes(std::array::from_fn(|_| labels().expect("four nodes")))
    };
    let asks = json!({"kai.scheduler/topology-required-placement": second});
    for racks in [["same", "same", "same", "same"], ["a", "b", "c", "d"]] {
        let mut cluster = of(racks);
        create_pair(&mut cluster, asks.clone());
        assert_eq!(cluster.run(), names(&[]), "{racks:?}");
        let told = cluster.reports().join("\n");
        assert!(told.contains(second) && told.contains("groups the nodes differently"), "{told}");
        // One of them is taken off the nodes.
        for at in 0..4 {
            let key = (Kind::Node, String::new(), format!("n{at}"));
            cluster.server.change(&key, |node| {
                node["metadata"]["labels"].as_object_mut().expect("labels").remove(first);
            });
        }
        assert_eq!(cluster.run().len(), 2, "{racks:?}");
    }
    let mut cluster = of(["a", "b", "a", "b"]);
    create_pair(&mut cluster, asks);
    assert_eq!(cluster.run().len(), 2);
}

#[test]
fn a_preferred_level_above_the_required_one_makes_no_difference() {
    let mut cluster = nodes(["a", "b", "a", "b"].map(
        |rack| json!({"topology.kubernetes.io/rack": rack, "topology.kubernetes.io/zone": "z"}),
    ));
    let levels = json!({"dovetail.dev/topology-required": "rack", "dovetail.dev/topology-preferred": "zone"});
    create_pair(&mut cluster, levels);
    assert_eq!(cluster.run(), names(&["p0", "p1"]));
    assert!(is_one_rack(&nodes_of(&cluster, &["p0", "p1"])));
}

#[test]
fn hyper_nodes_say_where_nodes_are_and_volcano_groups_ask_for_their_tiers() {
    let mut cluster = nodes([json!({}), json!({}), json!({}), json!({})]);
    let group =
        json!({"minMember": 2, "networkTopology": {"mode": "hard", "highestTierAllowed": 1}});
    cluster.server.apply(Kind::VolcanoGroup, "blue", "train", json!({"spec": group}));
    for at in 0..2 {
        let mut pod = pod(8);
        pod["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": "train"});
        cluster.create(&format!("p{at}"), pod);
    }
    assert_eq!(cluster.run(), names(&[]));
    assert!(cluster.reports()[0].contains("no node has one of its labels"));
    for (name, pattern) in [("s0", "^n[02]$"), ("s1", "^n[13]$")] {
        let member = json!({"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}});
        let spec = json!({"tier": 1, "members": [member]});
        cluster.server.apply(Kind::HyperNode, "", name, json!({"spec": spec}));
    }
    assert_eq!(cluster.run(), names(&["p0", "p1"]));
    assert!(is_one_rack(&nodes_of(&cluster, &["p0", "p1"])));
}

#[test]
fn labels_of_a_kueue_topology_are_levels_and_each_set_of_pods_asks_for_its_own() {
    let mut cluster = racks("example.com/row");
    let levels = json!([{"nodeLabel": "example.com/hall"}, {"nodeLabel": "example.com/row"},
        {"nodeLabel": "kubernetes.io/hostname"}]);
    let job = |name: &str, pods: u32| {
        json!({"name": name, "replicas": 1, "template": {"spec": {
            "parallelism": pods, "completions": pods, "completionMode": "Indexed"}}})
    };
    let set = json!({"spec": {"replicatedJobs": [job("driver", 1), job("workers", 2)]}});
    cluster.server.apply(Kind::Workload(WorkloadKind::JobSet), "blue", "train", set);
    let worker = |replicated: &str, annotations: Value| {
        let mut pod = pod(8);
        pod["metadata"] = json!({"annotations": annotations, "labels": {
            "jobset.sigs.k8s.io/jobset-name": "train",
            "jobset.sigs.k8s.io/replicatedjob-name": replicated}});
        pod
    };
    let required = json!({"kueue.x-k8s.io/podset-required-topology": "example.com/row"});
    cluster.create("d0", worker("driver", json!({})));
    cluster.create("w0", worker("workers", required.clone()));
    cluster.create("w1", worker("workers", required.clone()));
    assert_eq!(cluster.run(), names(&[]));
    assert!(cluster.reports()[0].contains("example.com/row does not belong to a topology level"));
    cluster.server.apply(Kind::KueueTopology, "", "halls", json!({"spec": {"levels": levels}}));
    // Three nodes are more than a row has: only the workers are asked to share one.
    assert_eq!(cluster.run(), names(&["d0", "w0", "w1"]));
    let workers = nodes_of(&cluster, &["w0", "w1"]);
    assert!(is_one_rack(&workers), "{workers:?}");
    // A worker that is replaced follows the one that runs: it waits while its row is full, though
    // another is not.
    let freed = nodes_of(&cluster, &["w1"]).into_iter().next().expect("a node");
    let mut filler = pod(8);
    filler["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": freed});
    cluster.delete(Kind::Pod, "blue", "d0");
    cluster.delete(Kind::Pod, "blue", "w1");
    cluster.create("filler", filler);
    cluster.watch();
    cluster.pass(60_000);
    assert_eq!(cluster.run(), names(&["filler"]));
    cluster.create("w9", worker("workers", required));
    assert_eq!(cluster.run(), names(&[]));
    cluster.delete(Kind::Pod, "blue", "filler");
    assert_eq!(cluster.run(), names(&["w9"]));
    assert_eq!(nodes_of(&cluster, &["w9"]), [freed].into());
}

#[test]
fn labels_of_a_kai_topology_are_levels_too() {
    let mut cluster = racks("example.com/row");
    create_pair(
        &mut cluster,
        json!({"kai.scheduler/topology-required-placement": "example.com/row",
            "kai.scheduler/topology": "halls"}),
    );
    let named = "example.com/row does not belong to a topology level";
    assert_eq!(cluster.run(), names(&[]));
    assert!(cluster.reports()[0].contains(named));
    // A Topology of Kueue of the same name is another object.
    let other = json!({"spec": {"levels": [{"nodeLabel": "example.com/other"}]}});
    cluster.server.apply(Kind::KueueTopology, "", "halls", other);
    let levels = json!([{"nodeLabel": "example.com/hall"}, {"nodeLabel": "example.com/row"}]);
    cluster.server.apply(Kind::KaiTopology, "", "halls", json!({"spec": {"levels": levels}}));
    assert_eq!(cluster.run(), names(&["p0", "p1"]));
    assert!(is_one_rack(&nodes_of(&cluster, &["p0", "p1"])));
}

#[test]
fn a_member_replaced_while_nobody_led_goes_to_the_domain_of_its_gang() {
    let required = json!({"dovetail.dev/topology-required": "rack"});
    let mut cluster = racks("topology.kubernetes.io/rack");
    create_pair(&mut cluster, required);
    assert_eq!(cluster.run(), names(&["p0", "p1"]));
    let freed = nodes_of(&cluster, &["p1"]);
    cluster.delete(Kind::Pod, "blue", "p1");
    let mut replaced = member(8, 2, 2);
    replaced["metadata"]["annotations"]["dovetail.dev/topology-required"] = json!("rack");
    cluster.create("p9", replaced);
    let mut again = Cluster::over(cluster.server);
    assert_eq!(again.run(), names(&["p9"]));
    assert_eq!(nodes_of(&again, &["p9"]), freed, "three nodes are free, one of them in its rack");
}

#[test]
fn each_subgroup_is_in_one_domain_and_a_member_that_is_replaced_goes_to_that_of_its_own() {
    let mut cluster = racks("topology.kubernetes.io/rack");
    let rack = json!({"requiredTopologyLevel": "topology.kubernetes.io/rack"});
    let part = |name: &str| json!({"name": name, "minMember": 2, "topologyConstraint": rack});
    let group = json!({"spec": {"minMember": 4, "subGroups": [part("decode"), part("prefill")]}});
    cluster.server.apply(Kind::KaiGroup, "blue", "train", group);
    let of = |sub_group: &str| {
        let mut pod = pod(8);
        pod["metadata"] = json!({"annotations": {"pod-group-name": "train"},
            "labels": {"kai.scheduler/subgroup-name": sub_group}});
        pod
    };
    // In the order in which they come the first two would share a rack.
    for (name, sub_group) in [("d0", "decode"), ("p0", "prefill"), ("d1", "decode")] {
        cluster.create(name, of(sub_group));
    }
    cluster.pass(60_000);
    assert_eq!(cluster.run(), names(&[]), "one prefill pod is missing");
    cluster.create("p1", of("prefill"));
    assert_eq!(cluster.run(), names(&["d0", "d1", "p0", "p1"]));
    assert!(is_one_rack(&nodes_of(&cluster, &["d0", "d1"])));
    assert!(is_one_rack(&nodes_of(&cluster, &["p0", "p1"])));
    let freed = ["d1", "p1"].map(|name| nodes_of(&cluster, &[name]));
    cluster.delete(Kind::Pod, "blue", "d1");
    cluster.delete(Kind::Pod, "blue", "p1");
    cluster.create("p9", of("prefill"));
    cluster.create("d9", of("decode"));
    assert_eq!(cluster.run(), names(&["d9", "p9"]));
    assert_eq!(["d9", "p9"].map(|name| nodes_of(&cluster, &[name])), freed);
}

#[test]
fn kai_asks_for_a_level_by_annotations_and_in_its_group() {
    let required = "kai.scheduler/topology-required-placement";
    let label = "topology.kubernetes.io/rack";
    let of_pods = json!({required: label});
    let of_group =
        json!({"spec": {"minMember": 2, "topologyConstraint": {"requiredTopologyLevel": label}}});
    for (annotations, group) in
        [(of_pods, json!({"spec": {"minMember": 2}})), (json!({}), of_group)]
    {
        let mut cluster = racks(label);
        let mut filler = pod(8);
        filler["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "n0"});
        cluster.create("filler", filler);
        assert_eq!(cluster.run(), names(&["filler"]));
        cluster.server.apply(Kind::KaiGroup, "blue", "train", group);
        for at in 0..2 {
            let mut pod = pod(8);
            pod["metadata"] = json!({"annotations": annotations});
            pod["metadata"]["annotations"]["pod-group-name"] = json!("train");
            cluster.create(&format!("p{at}"), pod);
        }
        assert_eq!(cluster.run(), names(&["p0", "p1"]));
        assert_eq!(nodes_of(&cluster, &["p0", "p1"]), ["n1", "n3"].map(str::to_owned).into());
    }
}

/// Two nodes with room for one pod each, and one with room for two.
fn three_nodes() -> Cluster {
    let mut cluster = Cluster::of(3);
    for at in 0..2 {
        let mut filler = pod(5);
        filler["spec"]["nodeName"] = json!(format!("n{at}"));
        cluster.create(&format!("filler-{at}"), filler);
    }
    cluster
}

/// Whether both pods of a gang start, and on the one node that has room for both.
fn assert_share_a_node(mut cluster: Cluster, pods: [Value; 2], what: &str) {
    for (at, pod) in pods.into_iter().enumerate() {
        cluster.create(&format!("p{at}"), pod);
    }
    assert_eq!(cluster.run(), names(&["p0", "p1"]), "{what}");
    assert_eq!(nodes_of(&cluster, &["p0", "p1"]), ["n2".to_owned()].into(), "{what}");
}

/// The node is the narrowest level in every way of asking, also where an object names its label
/// below others.
#[test]
fn a_gang_that_requires_one_node_is_on_one_node() {
    let host = "kubernetes.io/hostname";
    let levels =
        json!({"spec": {"levels": [{"nodeLabel": "example.com/row"}, {"nodeLabel": host}]}});
    for topology in [None, Some(Kind::KueueTopology), Some(Kind::KaiTopology)] {
        let cluster = || {
            let mut cluster = three_nodes();
            if let Some(kind) = topology {
                cluster.server.apply(kind, "", "halls", levels.clone());
            }
            cluster
        };
        let of_both = |pod: Value| [pod.clone(), pod];
        for (annotation, level) in [
            ("dovetail.dev/topology-required", "node"),
            ("kueue.x-k8s.io/podset-required-topology", host),
            ("kai.scheduler/topology-required-placement", host),
        ] {
            let mut pod = member(3, 2, 2);
            pod["metadata"]["annotations"][annotation] = json!(level);
            assert_share_a_node(cluster(), of_both(pod), annotation);
        }
        let mut native = cluster();
        let spec = json!({"schedulingPolicy": {"gang": {"minCount": 2}},
            "schedulingConstraints": {"topology": [{"key": host}]}});
        native.server.apply(Kind::PodGroup, "blue", "train", json!({"spec": spec}));
        let mut pod = pod(3);
        pod["spec"]["schedulingGroup"] = json!({"podGroupName": "train"});
        assert_share_a_node(native, of_both(pod), "native");
        let mut kai = cluster();
        let spec = json!({"minMember": 2, "topologyConstraint": {"requiredTopologyLevel": host}});
        kai.server.apply(Kind::KaiGroup, "blue", "train", json!({"spec": spec}));
        let mut pod = crate::gangs::pod(3);
        pod["metadata"] = json!({"annotations": {"pod-group-name": "train"}});
        assert_share_a_node(kai, of_both(pod), "KAI");
    }
    // Without it they would be packed onto the other two.
    let mut cluster = three_nodes();
    (0..2).for_each(|at| cluster.create(&format!("p{at}"), member(3, 2, 2)));
    assert_eq!(cluster.run(), names(&["p0", "p1"]));
    assert_eq!(nodes_of(&cluster, &["p0", "p1"]), ["n0", "n1"].map(str::to_owned).into());
}

#[test]
fn settings_that_ask_for_different_levels_are_both_named() {
    let mut cluster = racks("topology.kubernetes.io/rack");
    let topology = json!([{"key": "kubernetes.io/hostname"}]);
    let spec = json!({"schedulingPolicy": {"gang": {"minCount": 1}},
        "schedulingConstraints": {"topology": topology}});
    let annotations = json!({"dovetail.dev/topology-required": "rack"});
    let group = json!({"metadata": {"annotations": annotations}, "spec": spec});
    cluster.server.apply(Kind::PodGroup, "blue", "train", group);
    let mut pod = pod(1);
    pod["spec"]["schedulingGroup"] = json!({"podGroupName": "train"});
    cluster.create("p0", pod);
    assert_eq!(cluster.run(), names(&[]));
    assert!(cluster.reports()[0].ends_with(
        "annotation dovetail.dev/topology-required requests topology level rack and \
         spec.schedulingConstraints requests node: keep only one"
    ));
}

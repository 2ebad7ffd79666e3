//! `dovetail partition plan` for pods that request several instances, or other devices beside them.

use serde_json::{Value, json};

use crate::program::Folder;

/// An idle node with so many A100s, and what it offers.
fn node(name: &str, gpus: u32, offers: &Value) -> Value {
    let mut all = json!({"cpu": "64", "memory": "512Gi", "pods": "110"});
    all.as_object_mut().unwrap().extend(offers.as_object().unwrap().clone());
    let labels = json!({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
        "nvidia.com/gpu.count": gpus.to_string(), "kubernetes.io/hostname": name});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "status": {"capacity": all, "allocatable": all,
            "conditions": [{"type": "Ready", "status": "True"}]}})
}

fn small(name: &str) -> Value {
    node(name, 1, &json!({"nvidia.com/mig-1g.10gb": "7"}))
}

/// A pod that runs on a node or is pending, with what it requests.
fn pod(name: &str, asks: &Value, priority: i32, on: Option<&str>) -> Value {
    let mut amounts = json!({"cpu": "1", "memory": "1Gi"});
    amounts.as_object_mut().unwrap().extend(asks.as_object().unwrap().clone());
    let mut spec = json!({"priority": priority, "containers": [{"name": "c", "image": "i",
        "resources": {"requests": amounts, "limits": amounts}}]});
    if let Some(node) = on {
        spec["nodeName"] = json!(node);
    }
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "creationTimestamp": "2026-11-20T11:00:00Z"},
        "spec": spec, "status": {"phase": if on.is_some() { "Running" } else { "Pending" }}})
}

fn asks(asks: &Value) -> Value {
    pod("asks", asks, 0, None)
}

fn planned(items: &[Value], policy: Option<Value>) -> Value {
    let folder = Folder::new();
    folder.write("dump.json", &json!({"kind": "List", "items": items}).to_string());
    let mut call = "partition plan --from dump.json --at 2026-11-20T12:00:00Z".to_owned();
    if let Some(spec) = policy {
        let object = json!({"apiVersion": "dovetail.dev/v1alpha1", "kind": "SharingPolicy",
            "metadata": {"name": "p"}, "spec": spec});
        folder.write("policy.json", &object.to_string());
        call += " --policy policy.json";
    }
    folder.json(&call)
}

/// The node of each GPU that a plan changes.
fn changed(plan: &Value) -> Vec<&str> {
    let rows = plan["gpus"].as_array().unwrap().iter();
    rows.filter(|row| row["from"] != row["to"]).map(|row| row["node"].as_str().unwrap()).collect()
}

#[test]
fn a_node_without_the_other_devices_of_a_pod_does_not_change_for_it() {
    let with_nic = node("z", 1, &json!({"nvidia.com/mig-1g.10gb": "7", "rdma/hca": "1"}));
    for slices in ["1", "2"] {
        for other in ["rdma/hca", "amd.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/gpu"] {
            let pod = asks(&json!({"nvidia.com/mig-3g.40gb": slices, (other): "1"}));
            let whole = node("b", 1, &json!({"nvidia.com/gpu": "1"}));
            let plan = planned(&[small("a"), whole, pod], None);
            assert_eq!(changed(&plan), [""; 0], "{other}: {plan}");
        }
        let nic = |name: &str| {
            pod(name, &json!({"nvidia.com/mig-3g.40gb": slices, "rdma/hca": "1"}), 0, None)
        };
        let plan = planned(&[small("a"), with_nic.clone(), nic("p")], None);
        assert_eq!(changed(&plan), ["z"], "{plan}");
        // Both pods together need more than the node has.
        let plan = planned(&[with_nic.clone(), nic("p"), nic("q")], None);
        let served: u32 = slices.parse().unwrap();
        assert_eq!(plan["accepted"]["3g.40gb"], json!(served), "{plan}");
    }
}

#[test]
fn the_whole_gpu_that_a_pod_needs_beside_its_instances_is_not_cut_for_it() {
    let policy = json!({"mode": "mig", "allowModeChange": true});
    let pod = asks(&json!({"nvidia.com/mig-3g.40gb": "2", "nvidia.com/gpu": "1"}));
    let whole =
        |name: &str, gpus: u32| node(name, gpus, &json!({"nvidia.com/gpu": gpus.to_string()}));
    let none = planned(&[whole("a", 1), whole("b", 1), pod.clone()], Some(policy.clone()));
    assert_eq!((changed(&none), &none["accepted"]), (vec![], &json!({})), "{none}");
    let one = planned(&[whole("a", 2), pod], Some(policy));
    assert_eq!((changed(&one), &one["accepted"]), (vec!["a"], &json!({"3g.40gb": 2})), "{one}");
}

#[test]
fn a_pod_gets_its_instances_where_the_fewest_are_removed() {
    let idle = node("b", 1, &json!({"nvidia.com/mig-3g.40gb": "2"}));
    let two = planned(&[small("a"), idle, asks(&json!({"nvidia.com/mig-3g.40gb": "2"}))], None);
    assert_eq!((changed(&two), &two["accepted"]), (vec![], &json!({"3g.40gb": 2})), "{two}");
    let nodes = [
        node("a", 2, &json!({"nvidia.com/mig-1g.10gb": "14"})),
        node("b", 2, &json!({"nvidia.com/mig-3g.40gb": "2", "nvidia.com/mig-7g.80gb": "1"})),
    ];
    let pod = asks(&json!({"nvidia.com/mig-3g.40gb": "3"}));
    let three = planned(&[nodes.to_vec(), vec![pod]].concat(), None);
    assert_eq!((changed(&three), &three["removed"]), (vec!["b"], &json!(1)), "{three}");
}

#[test]
fn a_pod_with_several_instances_may_use_all_that_is_free() {
    for (free, pod) in [
        (json!({"cpu": "4"}), json!({"nvidia.com/mig-2g.20gb": "3", "cpu": "4"})),
        (json!({"memory": "1Gi"}), json!({"nvidia.com/mig-2g.20gb": "3"})),
        (json!({"pods": "1"}), json!({"nvidia.com/mig-2g.20gb": "3"})),
    ] {
        let mut offers = json!({"nvidia.com/mig-1g.10gb": "7"});
        offers.as_object_mut().unwrap().extend(free.as_object().unwrap().clone());
        let plan = planned(&[node("a", 1, &offers), asks(&pod)], None);
        assert_eq!(plan["accepted"], json!({"2g.20gb": 3}), "{free}: {plan}");
    }
}

/// A part of its instances beside the other pods would be more compute slices than all of them, and
/// starts nothing.
#[test]
fn a_pod_with_several_instances_takes_the_place_of_pods_that_are_worth_less() {
    let single = |number: u32, priority: i32| {
        pod(&format!("s{number}"), &json!({"nvidia.com/mig-1g.10gb": "1"}), priority, None)
    };
    let two = asks(&json!({"nvidia.com/mig-3g.40gb": "2"}));
    let with = |singles: u32, priority: i32| {
        let pods = (0..singles).map(|number| single(number, priority));
        let items: Vec<Value> = [small("a"), two.clone()].into_iter().chain(pods).collect();
        planned(&items, None)["accepted"].clone()
    };
    assert_eq!(with(4, 0), json!({"1g.10gb": 0, "3g.40gb": 2}));
    // Seven slices are more than six, and a higher priority is before all.
    assert_eq!(with(7, 0), json!({"1g.10gb": 7}));
    assert_eq!(with(1, 1), json!({"1g.10gb": 1}));
}

/// Only pods that can start without a change are before those of a higher priority.
#[test]
fn a_pod_that_needs_a_change_does_not_go_before_a_higher_priority() {
    let node = node("h", 1, &json!({"nvidia.com/mig-3g.40gb": "1", "nvidia.com/mig-1g.10gb": "4"}));
    let two = json!({"nvidia.com/mig-3g.40gb": "1", "nvidia.com/mig-4g.40gb": "1"});
    let first = pod("first", &json!({"nvidia.com/mig-7g.80gb": "1"}), 1000, None);
    let policy = json!({"mode": "mig", "profiles": ["4g.40gb", "7g.80gb"]});
    let plan = planned(&[node, asks(&two), first], Some(policy));
    assert_eq!(plan["accepted"], json!({"7g.80gb": 1}), "{plan}");
}

#[test]
fn nodes_that_can_serve_nothing_cost_no_plan() {
    let mut items = vec![
        node("z", 1, &json!({"nvidia.com/mig-3g.40gb": "2"})),
        asks(&json!({"nvidia.com/mig-3g.40gb": "2"})),
    ];
    let full = json!({"nvidia.com/mig-7g.80gb": "1"});
    for name in (0..40).map(|number| format!("full-{number}")) {
        items.push(node(&name, 1, &full));
        items.push(pod(&name, &full, 0, Some(&name)));
    }
    let plan = planned(&items, None);
    assert_eq!((changed(&plan), &plan["accepted"]), (vec![], &json!({"3g.40gb": 2})), "{plan}");
}

const NO_NODE: &str = "requests several instances, and dovetail found no plan that provides all of \
                       them on one node and serves more";

#[test]
fn pods_with_several_instances_are_chosen_by_what_they_request_and_not_by_name() {
    for name in ["a", "z"] {
        let two = pod(name, &json!({"nvidia.com/mig-1g.10gb": "2"}), 0, None);
        let six = pod("b", &json!({"nvidia.com/mig-3g.40gb": "2"}), 0, None);
        let plan = planned(&[small("n"), two, six], None);
        assert_eq!((changed(&plan), &plan["accepted"]), (vec!["n"], &json!({"3g.40gb": 2})));
        assert_eq!(plan["not_planned"], json!({(NO_NODE): 1}), "{plan}");
    }
    let two = pod("a", &json!({"nvidia.com/mig-1g.10gb": "2"}), 1, None);
    let six = pod("b", &json!({"nvidia.com/mig-3g.40gb": "2"}), 0, None);
    let plan = planned(&[small("n"), two, six], None);
    assert_eq!((changed(&plan), &plan["accepted"]), (vec![], &json!({"1g.10gb": 2})), "{plan}");
}

/// Six compute slices are the most of one pod, and four and three of two pods are more. With few
/// pods all choices are tried, with many the pods that are served leave one after the other.
#[test]
fn pods_with_several_instances_take_the_place_of_one_that_is_worth_less_than_they_together() {
    let of = |name: &str, profile: &str, count: u32| {
        pod(name, &json!({(format!("nvidia.com/mig-{profile}")): count.to_string()}), 0, None)
    };
    for others in [0, 4] {
        let mut items = vec![
            small("n"),
            of("a-six", "3g.40gb", 2),
            of("four", "2g.20gb", 2),
            of("three", "1g.10gb", 3),
        ];
        items.extend((0..others).map(|number| of(&format!("two-{number}"), "1g.20gb", 2)));
        let plan = planned(&items, None);
        assert_eq!(plan["accepted"], json!({"1g.10gb": 3, "2g.20gb": 2}), "{plan}");
        assert_eq!(plan["accepted_compute_slices"], 7);
        assert_eq!(plan["not_planned"], json!({(NO_NODE): 1 + others}), "{plan}");
    }
}

/// The pod of higher priority could have its instances on either node; only elsewhere than where
/// they are idle is there room for the others, too.
#[test]
fn a_pod_goes_to_another_node_so_that_more_pods_get_their_instances() {
    let idle = node("a", 1, &json!({"nvidia.com/mig-1g.10gb": "7"}));
    let other = node("b", 1, &json!({"nvidia.com/mig-7g.80gb": "1"}));
    let first = pod("first", &json!({"nvidia.com/mig-1g.10gb": "2"}), 1, None);
    let mut second = pod("second", &json!({"nvidia.com/mig-3g.40gb": "2"}), 0, None);
    second["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "a"});
    let plan = planned(&[idle, other, first, second], None);
    assert_eq!(plan["accepted"], json!({"1g.10gb": 2, "3g.40gb": 2}), "{plan}");
    assert_eq!(plan["not_planned"], json!({}), "{plan}");
}

/// One pod may go to one node alone, and the larger one to both: each has a node where nothing
/// changes for it.
#[test]
fn a_pod_that_may_go_elsewhere_leaves_its_node_to_one_that_may_not() {
    let cpu = |of: &Value| {
        let mut offers = json!({"cpu": "3"});
        offers.as_object_mut().unwrap().extend(of.as_object().unwrap().clone());
        offers
    };
    let either = node("a", 1, &cpu(&json!({"nvidia.com/mig-2g.20gb": "2"})));
    let offers = json!({"nvidia.com/mig-2g.20gb": "1", "nvidia.com/mig-1g.10gb": "1",
        "rdma/hca": "1"});
    let only = node("b", 1, &cpu(&offers));
    let large = pod("large", &json!({"nvidia.com/mig-2g.20gb": "1", "cpu": "2"}), 0, None);
    let asks = json!({"nvidia.com/mig-1g.10gb": "1", "rdma/hca": "1", "cpu": "2"});
    let plan = planned(&[either, only, large, pod("small", &asks, 0, None)], None);
    assert_eq!(plan["accepted"], json!({"1g.10gb": 1, "2g.20gb": 1}), "{plan}");
    assert_eq!((changed(&plan), &plan["not_planned"]), (vec![], &json!({})), "{plan}");
}

/// The plans that one pod takes which no plan serves are enough for all that request the same.
#[test]
fn pods_that_no_plan_serves_leave_plans_for_the_others() {
    let mut items: Vec<Value> = (0..8).map(|number| small(&format!("n{number}"))).collect();
    let seventh = json!({"nvidia.com/mig-1g.10gb": "1"});
    items.extend([small("used"), pod("uses", &seventh, 0, Some("used"))]);
    let whole = json!({"nvidia.com/mig-7g.80gb": "1"});
    items.extend((0..8).map(|number| pod(&format!("whole-{number}"), &whole, 1, None)));
    let halves = json!({"nvidia.com/mig-3g.40gb": "2"});
    items.extend((0..4).map(|number| pod(&format!("halves-{number}"), &halves, 0, None)));
    items.push(pod("two", &json!({"nvidia.com/mig-1g.10gb": "2"}), 0, None));
    let plan = planned(&items, None);
    assert_eq!(plan["accepted"], json!({"1g.10gb": 2, "7g.80gb": 8}), "{plan}");
    assert_eq!(plan["not_planned"], json!({(NO_NODE): 4}), "{plan}");
}

/// A GPU has compute slices enough for each of the larger pods, and no layout has all instances.
#[test]
fn nodes_that_cannot_have_all_instances_of_a_pod_cost_no_plan() {
    let mut items: Vec<Value> = (0..8).map(|number| small(&format!("n{number}"))).collect();
    items.extend((1..5).map(|cpu| {
        let asks = json!({"cpu": cpu.to_string(), "nvidia.com/mig-1g.20gb": "3",
            "nvidia.com/mig-3g.40gb": "1"});
        pod(&format!("large-{cpu}"), &asks, 0, None)
    }));
    items.push(pod("two", &json!({"nvidia.com/mig-1g.10gb": "2"}), 0, None));
    let plan = planned(&items, None);
    assert_eq!((changed(&plan), &plan["accepted"]), (vec![], &json!({"1g.10gb": 2})), "{plan}");
    assert_eq!(plan["not_planned"], json!({(NO_NODE): 4}), "{plan}");
}

/// More pods than plans, of which no two request the same.
#[test]
fn many_pods_with_several_instances_are_served_by_few_plans() {
    let mut items: Vec<Value> = (0..40).map(|number| small(&format!("n{number:02}"))).collect();
    items.extend((0..40).map(|number| {
        let asks = json!({"nvidia.com/mig-3g.40gb": "2", "cpu": format!("{}m", 100 + number)});
        pod(&format!("p{number:02}"), &asks, 0, None)
    }));
    let plan = planned(&items, None);
    assert_eq!(plan["accepted"], json!({"3g.40gb": 80}), "{plan}");
    assert_eq!((changed(&plan).len(), &plan["not_planned"]), (40, &json!({})), "{plan}");
}

/// Pods that request more than there is do not raise the bound above what the GPUs have.
#[test]
fn the_upper_bound_is_no_more_than_the_gpus_have() {
    let pods = |count: u32| {
        let two = json!({"nvidia.com/mig-3g.40gb": "2"});
        (0..count).map(move |n| pod(&format!("p{n}"), &two, 0, None)).collect::<Vec<Value>>()
    };
    let offers = json!({"nvidia.com/mig-1g.10gb": "14"});
    let runs = pod("runs", &json!({"nvidia.com/mig-1g.10gb": "1"}), 0, Some("b"));
    for (items, count, bound) in [
        (vec![small("a")], 1, 6),
        (vec![small("a")], 3, 7),
        // The second node is in use: its idle instances alone are there for pods.
        (vec![small("a"), node("b", 2, &offers), runs], 9, 20),
    ] {
        let plan = planned(&[items, pods(count)].concat(), None);
        assert_eq!(plan["upper_bound_compute_slices"], bound, "{plan}");
        assert_eq!(plan["accepted_compute_slices"], 6, "{plan}");
    }
}

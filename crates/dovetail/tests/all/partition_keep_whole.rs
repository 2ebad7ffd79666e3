//! GPUs that `dovetail partition plan` leaves as they are for other pods.

use serde_json::{Value, json};

use crate::partition::{A100, changed, node, one_gpu, planned, pod};
use crate::program::Folder;

const BY_POLICY: &str = "the policy keeps free GPUs whole (keepWhole)";

/// A node with so many whole GPUs of a product.
fn whole_node(name: &str, product: &str, gpus: u32) -> Value {
    let labels =
        json!({"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": gpus.to_string()});
    node(name, &json!({"nvidia.com/gpu": gpus.to_string()}), &labels)
}

/// So many pending pods, each of which needs all of a GPU with 80 GB as one instance.
fn full_instances(count: u32) -> Vec<Value> {
    let one = |n: u32| pod(&format!("full-{n}"), "nvidia.com/mig-7g.80gb", 1, None, &json!({}));
    (0..count).map(one).collect()
}

/// The plan under a policy that lets whole GPUs be cut, with these fields.
fn plan(folder: &Folder, items: &[Value], more: &Value) -> Value {
    let mut spec = json!({"mode": "mig", "allowModeChange": true});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let object = json!({"apiVersion": "dovetail.dev/v1alpha1", "kind": "SharingPolicy",
        "metadata": {"name": "p"}, "spec": spec});
    folder.write("policy.json", &object.to_string());
    planned(folder, items, "--policy policy.json")
}

/// Both products have the MIG table of the A100 with 80 GB.
#[test]
fn gpus_of_each_product_stay_whole() {
    let folder = Folder::new();
    let nodes = vec![
        whole_node("pcie", "NVIDIA-A100-80GB-PCIe", 2),
        whole_node("sxm", "NVIDIA-A100-SXM4-80GB", 2),
    ];
    let items = [nodes, full_instances(4)].concat();
    let all = plan(&folder, &items, &json!({}));
    assert_eq!(changed(&all), ["pcie", "pcie", "sxm", "sxm"], "{all}");
    let kept = plan(&folder, &items, &json!({"keepWhole": 1}));
    assert_eq!(changed(&kept), ["pcie", "sxm"], "{kept}");
    assert_eq!(kept["left_alone"], json!({(BY_POLICY): 2}), "{kept}");
}

/// Free GPUs of a node on which pods use others stay whole, too; GPUs in use are not free.
#[test]
fn free_gpus_beside_those_in_use_count_as_whole() {
    let folder = Folder::new();
    let runs = |gpus: u32| pod("runs", "nvidia.com/gpu", gpus, Some("busy"), &json!({}));
    let nodes = [whole_node("busy", A100, 2), whole_node("idle", A100, 2)];
    for (used, keep, cut) in [(1, 1, 2), (1, 2, 1), (1, 3, 0), (2, 1, 1)] {
        let items = [nodes.to_vec(), full_instances(4), vec![runs(used)]].concat();
        let plan = plan(&folder, &items, &json!({"keepWhole": keep}));
        assert_eq!(changed(&plan), vec!["idle"; cut], "{used} used, {keep} kept: {plan}");
        let kept = plan["left_alone"].get(BY_POLICY).cloned().unwrap_or(json!(0));
        assert_eq!(kept, json!(2 - cut), "{used} used, {keep} kept: {plan}");
    }
}

/// Other layouts would take the capacity for which pods are to come.
#[test]
fn nodes_on_which_capacity_is_reserved_do_not_change() {
    let folder = Folder::new();
    let small = |name: &str| one_gpu(name, A100, "nvidia.com/mig-1g.10gb", 7);
    let items = [vec![small("free"), small("reserved")], full_instances(2)].concat();
    let plan = |version: &str, phase: &str, to: &str| {
        let reservation = json!({"apiVersion": version, "kind": "Reservation",
            "metadata": {"name": "night"},
            "spec": {"requests": {"nvidia.com/mig-1g.10gb": "1"},
                "from": "2026-11-20T08:00:00Z", "to": to},
            "status": {"phase": phase, "nodes": ["reserved"]}});
        planned(&folder, &[items.clone(), vec![reservation]].concat(), "")
    };
    let (ours, to) = ("dovetail.dev/v1alpha1", "2026-11-20T18:00:00Z");
    for phase in ["Admitted", "Active"] {
        let kept = plan(ours, phase, to);
        assert_eq!(changed(&kept), ["free"], "{phase}: {kept}");
        let why = "the Reservation night reserves capacity of the node";
        assert_eq!(kept["left_alone"], json!({(why): 1}), "{phase}");
    }
    for (version, phase, to) in [
        (ours, "Refused", to),
        (ours, "Ended", to),
        // No scheduler has reported the end.
        (ours, "Active", "2026-11-20T11:59:59Z"),
        ("scheduling.koordinator.sh/v1alpha1", "Active", to),
    ] {
        let all = plan(version, phase, to);
        assert_eq!(changed(&all), ["free", "reserved"], "{version} {phase} {to}: {all}");
    }
}

/// Whole GPUs elsewhere, or on several nodes, are of no use to such pods.
#[test]
fn pending_pods_keep_whole_the_gpus_that_they_can_use() {
    let folder = Folder::new();
    let nodes = vec![whole_node("a", A100, 2), whole_node("b", A100, 1)];
    let asks = |name: &str, gpus: u32, host: &str| {
        let on = match host {
            "" => json!({}),
            host => json!({"nodeSelector": {"kubernetes.io/hostname": host}}),
        };
        pod(name, "nvidia.com/gpu", gpus, None, &on)
    };
    for (pods, expected) in [
        (vec![], vec!["a", "a", "b"]),
        (vec![asks("w", 1, "a")], vec!["a", "b"]),
        (vec![asks("w", 1, "b")], vec!["a", "a"]),
        (vec![asks("w", 2, "")], vec!["b"]),
        (vec![asks("v", 1, ""), asks("w", 2, "")], vec![]),
        // No node has so many, and none is the one that it may go to.
        (vec![asks("w", 3, "")], vec!["a", "a", "b"]),
        (vec![asks("w", 1, "c")], vec!["a", "a", "b"]),
    ] {
        let items = [nodes.clone(), full_instances(3), pods.clone()].concat();
        let plan = plan(&folder, &items, &json!({}));
        assert_eq!(changed(&plan), expected, "{pods:?}: {plan}");
    }
    // The policy keeps one more of each product.
    let items = [nodes, full_instances(3), vec![asks("w", 1, "a")]].concat();
    let kept = plan(&folder, &items, &json!({"keepWhole": 1}));
    assert_eq!(changed(&kept), ["a"], "{kept}");
    let for_pods = "pending pods request these whole GPUs";
    assert_eq!(kept["left_alone"], json!({(for_pods): 1, (BY_POLICY): 1}), "{kept}");
}

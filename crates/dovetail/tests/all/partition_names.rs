//! `dovetail partition plan`: which names nodes offer, and what pods are told that get none.

use serde_json::{Value, json};

use crate::partition::{A100, changed, node, one_gpu, planned, pod};
use crate::program::Folder;

/// What is in capacity and not in allocatable is broken, or its plugin has just stopped.
#[test]
fn a_node_whose_instances_are_not_allocatable_is_left_alone() {
    let folder = Folder::new();
    for allocatable in ["0", "1"] {
        let mut halves = one_gpu("halves", A100, "nvidia.com/mig-3g.39gb", 2);
        halves["status"]["allocatable"]["nvidia.com/mig-3g.39gb"] = json!(allocatable);
        let asks = pod("asks", "nvidia.com/mig-4g.40gb", 1, None, &json!({}));
        let plan = planned(&folder, &[halves.clone(), asks], "");
        assert_eq!(plan["left_alone"], json!({"GPUs or instances are missing": 1}), "{plan}");
        assert_eq!((&plan["created"], changed(&plan)), (&json!(0), vec![]), "{plan}");
        folder.write("dump.json", &json!({"kind": "List", "items": [halves]}).to_string());
        let call = "audit --from dump.json --at 2026-11-20T12:00:00Z --prometheus none -o json";
        let audit = folder.call(call).out;
        assert!(!audit.contains("SHR-09"), "{audit}");
    }
}

/// The kubelet keeps a resource that has vanished at 0.
#[test]
fn a_profile_of_which_nothing_is_left_keeps_the_name_that_its_node_shows() {
    let folder = Folder::new();
    let shown = json!({"nvidia.com/mig-1g.10gb": "7", "nvidia.com/mig-3g.39gb": "0"});
    let stale = node("stale", &shown, &json!({"nvidia.com/gpu.count": "1"}));
    let asks =
        |profile: &str| pod(profile, &format!("nvidia.com/mig-{profile}"), 1, None, &json!({}));
    let plan = planned(&folder, &[stale, asks("3g.39gb"), asks("3g.40gb")], "");
    assert_eq!((&plan["accepted"], changed(&plan)), (&json!({"3g.39gb": 1}), vec!["stale"]));
    let why = "no GPU of the cluster offers the profile `3g.40gb` under this name: request \
               `3g.39gb`";
    assert_eq!(plan["not_planned"], json!({(why): 1}));
}

/// Pods start with the names that a node offers, whichever of them a plan uses.
#[test]
fn each_pod_that_no_name_serves_is_told_the_reason() {
    let folder = Folder::new();
    let asks = |more: &Value| pod("asks", "nvidia.com/mig-3g.39gb", 1, None, more);
    let shown = json!({"nvidia.com/mig-3g.39gb": "1", "nvidia.com/mig-3g.40gb": "1"});
    let both = node("both", &shown, &json!({"nvidia.com/gpu.count": "1"}));
    let plan = planned(&folder, &[both, asks(&json!({}))], "");
    let why = "a node offers the profile `3g.39gb` under this name, but GPUs that can be planned \
               provide it only as `3g.40gb`: request `3g.40gb`";
    assert_eq!(plan["not_planned"], json!({(why): 1}));
    // Only a node that the pod may not use has the name.
    let h100 = one_gpu("h100", "NVIDIA-H100-80GB-HBM3", "nvidia.com/mig-3g.39gb", 2);
    let cut = one_gpu("cut", A100, "nvidia.com/mig-1g.10gb", 7);
    let there = asks(&json!({"nodeSelector": {"kubernetes.io/hostname": "cut"}}));
    let plan = planned(&folder, &[h100, cut, there], "");
    let why = "the nodes that the pod may use offer the profile `3g.39gb` under the name `3g.40gb`";
    assert_eq!((&plan["accepted"], &plan["not_planned"]), (&json!({}), &json!({(why): 1})));
}

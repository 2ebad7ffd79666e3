//! `dovetail partition plan`: which names nodes offer, and what pods are told that get none.

use serde_json::{Value, json};

use crate::partition::{A100, changed, node, one_gpu, planned, pod, profiles, row};
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

/// SHR-08 names a node where a plan can help, and is no finding where no layout can.
#[test]
fn the_audit_names_nodes_for_missing_instances_as_the_plan_does() {
    let folder = Folder::new();
    // With pods of one namespace alone, others could use the GPUs.
    let mut beside = pod("beside", "cpu", 1, None, &json!({}));
    beside["metadata"]["namespace"] = json!("other");
    let audit = |mut items: Vec<Value>| {
        items.push(beside.clone());
        folder.write("dump.json", &json!({"kind": "List", "items": items}).to_string());
        folder
            .call("audit --from dump.json --at 2026-11-20T12:00:00Z --prometheus none -o json")
            .out
    };
    let labels = json!({"nvidia.com/gpu.count": "1"});
    let whole = node("whole", &json!({"nvidia.com/gpu": "1"}), &labels);
    let asks = |profile: &str, on: Option<&str>, count: u32| {
        pod(&format!("asks-{count}"), &format!("nvidia.com/mig-{profile}"), count, on, &json!({}))
    };
    let cut = audit(vec![whole.clone(), asks("3g.40gb", None, 1)]);
    assert!(cut.contains("SHR-08") && cut.contains("allowModeChange"), "{cut}");
    let named = audit(vec![whole, asks("3g.39gb", None, 1)]);
    assert!(named.contains("offer this profile as 3g.40gb"), "{named}");
    let full = one_gpu("full", A100, "nvidia.com/mig-1g.10gb", 7);
    let uses = asks("1g.10gb", Some("full"), 7);
    let queues = audit(vec![full, uses, asks("1g.10gb", None, 1)]);
    assert!(!queues.contains("SHR-08"), "{queues}");
    let shows = json!({"nvidia.com/mig-3g.39gb": "1", "nvidia.com/mig-1g.10gb": "3"});
    let layout = audit(vec![node("shows", &shows, &labels), asks("3g.39gb", None, 2)]);
    assert!(layout.contains("2 × 3g.39gb"), "{layout}");
    let title = "request MIG instances that no layout provides";
    assert!(layout.contains(title), "{layout}");
    // There are A100s of two sizes.
    let sizeless = one_gpu("sizeless", "NVIDIA-A100", "nvidia.com/mig-1g.10gb", 7);
    let unknown = audit(vec![sizeless, asks("3g.40gb", None, 1)]);
    let said = "GPUs whose memory size no label states: node sizeless";
    assert!(unknown.contains(said) && !unknown.contains(title), "{unknown}");
}

/// Nodes with GPUs of one model have drivers with other names: one name counts for those that show
/// neither, and pods that request the other one are told so.
#[test]
fn pods_are_told_under_which_name_other_nodes_of_the_model_provide_a_profile() {
    let folder = Folder::new();
    let full = |name: &str, profile: &str| {
        let resource = format!("nvidia.com/mig-{profile}");
        let holds = pod(&format!("on-{name}"), &resource, 2, Some(name), &json!({}));
        [one_gpu(name, A100, &resource, 2), holds]
    };
    let asks = |profile: &str, more: &Value| {
        pod(profile, &format!("nvidia.com/mig-{profile}"), 1, None, more)
    };
    let idle = one_gpu("idle", A100, "nvidia.com/mig-1g.10gb", 7);
    let why = |profile: &str, other: &str| {
        format!(
            "GPUs that provide the profile `{profile}` under this name have no room for the pod, \
             and others that it may use provide it as `{other}`"
        )
    };
    let shown = [full("old", "3g.39gb"), full("new", "3g.40gb")].concat();
    let pods = vec![asks("3g.39gb", &json!({"priority": 10})), asks("3g.40gb", &json!({}))];
    let plan = planned(&folder, &[shown.clone(), vec![idle.clone()], pods].concat(), "");
    assert_eq!(plan["accepted"], json!({"3g.39gb": 0, "3g.40gb": 1}), "{plan}");
    assert_eq!(plan["demand"], json!({"3g.39gb": 0, "3g.40gb": 1}), "{plan}");
    assert_eq!(plan["not_planned"], json!({(why("3g.39gb", "3g.40gb")): 1}), "{plan}");
    // Where nothing is left under any name, pods wait for room, and not for another name.
    let pods = vec![asks("3g.39gb", &json!({}))];
    let plan = planned(&folder, &[shown, pods].concat(), "");
    assert_eq!((&plan["demand"], &plan["not_planned"]), (&json!({"3g.39gb": 1}), &json!({})));
    // Neither is the name of the table, and the first in the alphabet counts.
    let shown = [full("old", "3g.39gb"), full("new", "3g.41gb")].concat();
    let pods = ["3g.39gb", "3g.41gb"].map(|profile| asks(profile, &json!({}))).to_vec();
    let plan = planned(&folder, &[shown, vec![idle], pods].concat(), "");
    assert_eq!(plan["accepted"], json!({"3g.39gb": 1, "3g.41gb": 0}), "{plan}");
    assert_eq!(plan["not_planned"], json!({(why("3g.41gb", "3g.39gb")): 1}), "{plan}");
}

/// An A100 has 40 or 80 GB, and other profiles with each.
#[test]
fn the_memory_of_a_gpu_decides_where_its_product_does_not_state_it() {
    let folder = Folder::new();
    let a100 = |memory: Option<&str>, small: &str| {
        let resource = format!("nvidia.com/mig-{small}");
        let mut node = one_gpu("n", "NVIDIA-A100", &resource, 7);
        if let Some(memory) = memory {
            node["metadata"]["labels"]["nvidia.com/gpu.memory"] = json!(memory);
        }
        node
    };
    let asks =
        |profile: &str| pod(profile, &format!("nvidia.com/mig-{profile}"), 1, None, &json!({}));
    let show = "partition show --from dump.json --at 2026-11-20T12:00:00Z";
    for (memory, small, half, model) in
        [("81920", "1g.10gb", "3g.40gb", "A100-80GB"), ("40960", "1g.5gb", "3g.20gb", "A100-40GB")]
    {
        let plan = planned(&folder, &[a100(Some(memory), small), asks(half)], "");
        assert_eq!((&plan["accepted"], changed(&plan)), (&json!({(half): 1}), vec!["n"]), "{plan}");
        assert_eq!(plan["gpus"][0]["model"], model, "{plan}");
        let shown = folder.json(show);
        assert_eq!(shown["nodes"][0]["model"], model, "{shown}");
    }
    let plan = planned(&folder, &[a100(None, "1g.10gb"), asks("3g.40gb")], "");
    assert_eq!((&plan["accepted"], &plan["gpus"]), (&json!({}), &json!([])), "{plan}");
    let why = "models of this name differ by their memory size, which no label of the node states";
    assert_eq!(plan["left_alone"], json!({(why): 1}), "{plan}");
    let shown = folder.json(show);
    assert_eq!(shown["nodes"][0]["model"], "NVIDIA-A100", "{shown}");
}

/// `1g.18gb` is a profile of the H200. The H100 has one that is nearly as large, under another
/// name, so the pod would never start there.
#[test]
fn a_profile_of_one_model_is_not_made_on_another() {
    let folder = Folder::new();
    let h100 = one_gpu("h100", "NVIDIA-H100-80GB-HBM3", "nvidia.com/mig-3g.40gb", 2);
    let fits = one_gpu("h100", "NVIDIA-H100-80GB-HBM3", "nvidia.com/mig-1g.20gb", 3);
    let h200 = one_gpu("h200", "NVIDIA-H200", "nvidia.com/mig-7g.141gb", 1);
    let cut = one_gpu("h200", "NVIDIA-H200", "nvidia.com/mig-1g.18gb", 3);
    let in_use = pod("runs", "nvidia.com/mig-3g.40gb", 1, Some("h100"), &json!({}));
    let asks = pod("asks", "nvidia.com/mig-1g.18gb", 1, None, &json!({}));
    let alone = planned(&folder, &[h100.clone(), asks.clone()], "");
    assert_eq!((&alone["accepted"], changed(&alone)), (&json!({}), vec![]));
    assert_eq!(alone["not_planned"], json!({"no GPU of the cluster has a profile `1g.18gb`": 1}));
    for (items, changes) in [
        (vec![h100.clone(), h200.clone()], vec!["h200"]),
        (vec![fits, h200], vec!["h200"]),
        (vec![h100, in_use, cut], vec![]),
    ] {
        let plan = planned(&folder, &[items, vec![asks.clone()]].concat(), "");
        assert_eq!((&plan["accepted"], changed(&plan)), (&json!({"1g.18gb": 1}), changes));
        assert_eq!(plan["upper_bound_compute_slices"], 1);
    }
    let size = folder.call("partition size --gpu H100 --demand 1g.18gb=1");
    assert!(size.err.contains("H100 has no profile `1g.18gb`"), "{}", size.err);
}

/// A driver has one name for a profile, which other nodes with its GPUs show.
#[test]
fn pods_get_instances_under_the_name_that_the_driver_gives_them() {
    let folder = Folder::new();
    let old = one_gpu("old", A100, "nvidia.com/mig-3g.39gb", 2);
    let cut = one_gpu("cut", A100, "nvidia.com/mig-1g.10gb", 7);
    let asks = |name: &str, profile: &str| {
        pod(name, &format!("nvidia.com/mig-{profile}"), 1, None, &json!({}))
    };
    let new = planned(&folder, &[old.clone(), cut.clone(), asks("a", "3g.40gb")], "");
    assert_eq!((&new["accepted"], changed(&new)), (&json!({}), vec![]));
    let three = ["a", "b", "c"].map(|name| asks(name, "3g.39gb"));
    let plan = planned(&folder, &[vec![old, cut], three.to_vec()].concat(), "");
    assert_eq!((&plan["accepted"], changed(&plan)), (&json!({"3g.39gb": 3}), vec!["cut"]));
    assert_eq!(profiles(row(&plan, "cut", 0), "to")[0], "3g.39gb");
    assert_eq!(plan["upper_bound_compute_slices"], 9);
}

/// A GPU that shows no name of a profile has that of its own table, whatever pods request and
/// whatever GPUs of other models show.
#[test]
fn a_profile_that_no_such_gpu_shows_has_the_name_of_the_table() {
    let folder = Folder::new();
    let h100 = one_gpu("h100", "NVIDIA-H100-80GB-HBM3", "nvidia.com/mig-1g.10gb", 7);
    let a100 = |name: &str| one_gpu("a100", A100, &format!("nvidia.com/mig-{name}"), 2);
    let asks = |name: &str, profile: &str| {
        pod(name, &format!("nvidia.com/mig-{profile}"), 1, None, &json!({}))
    };
    let (new, old) = (asks("new", "3g.40gb"), asks("old", "3g.39gb"));
    let why = "no GPU of the cluster offers the profile `3g.39gb` under this name: request \
               `3g.40gb`";
    let both = planned(&folder, &[h100.clone(), new.clone(), old.clone()], "");
    assert_eq!((&both["accepted"], changed(&both)), (&json!({"3g.40gb": 1}), vec!["h100"]));
    assert_eq!(both["not_planned"], json!({(why): 1}));
    // Neither model offers the name, so that idle instances of the A100 do not serve the pod.
    let none = planned(&folder, &[a100("3g.40gb"), h100.clone(), old.clone()], "");
    assert_eq!((&none["accepted"], changed(&none)), (&json!({}), vec![]));
    assert_eq!(none["not_planned"], json!({(why): 1}));
    // The A100 shows the other name: it serves two pods, and the H100 none of them.
    let olds = ["o1", "o2", "o3"].map(|name| asks(name, "3g.39gb")).to_vec();
    let items = [vec![a100("3g.39gb"), h100.clone()], olds].concat();
    let of_a100 = planned(&folder, &items, "");
    assert_eq!((&of_a100["accepted"], changed(&of_a100)), (&json!({"3g.39gb": 2}), vec![]));
    let of_h100 = planned(&folder, &[a100("3g.39gb"), h100, new], "");
    assert_eq!((&of_h100["accepted"], changed(&of_h100)), (&json!({"3g.40gb": 1}), vec!["h100"]));
}

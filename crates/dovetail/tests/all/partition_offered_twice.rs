//! `dovetail partition plan` on nodes whose device plugin offers each GPU, or each MIG instance,
//! several times under the name of one.

use serde_json::{Value, json};

use crate::partition::{changed, node, planned, pod};
use crate::program::Folder;

const REPLICAS: &str = "nvidia.com/gpu.replicas";

fn half() -> Value {
    pod("half", "nvidia.com/mig-3g.40gb", 1, None, &json!({}))
}

/// What the audit finds in the same dump, and in a pod of another namespace: with pods of one
/// namespace alone, others could use the GPUs.
fn audited(folder: &Folder, items: &[Value]) -> String {
    let mut beside = pod("beside", "cpu", 1, None, &json!({}));
    beside["metadata"]["namespace"] = json!("other");
    let items: Vec<&Value> = items.iter().chain([&beside]).collect();
    folder.write("audited.json", &json!({"kind": "List", "items": items}).to_string());
    let call = "audit --from audited.json --at 2026-11-20T12:00:00Z --prometheus none -o json";
    folder.call(call).out
}

#[test]
fn replicas_of_instances_are_not_planned() {
    let folder = Folder::new();
    let labelled = json!({"nvidia.com/gpu.count": "1", "nvidia.com/mig-1g.10gb.replicas": "4"});
    let by_type = json!({"nvidia.com/gpu.count": null,
        "node.kubernetes.io/instance-type": "a2-ultragpu-1g"});
    let why = "replicas of MIG instances are not planned";
    let doubtful = format!(
        "its instances need more GPUs than it has according to instance type a2-ultragpu-1g; {why}"
    );
    for (resource, labels, expected) in [
        ("nvidia.com/mig-1g.10gb", &labelled, why),
        ("nvidia.com/mig-1g.10gb.shared", &labelled, why),
        // They could be the instances of four GPUs.
        ("nvidia.com/mig-1g.10gb", &by_type, &*doubtful),
    ] {
        let mut shared = node("shared", &json!({(resource): "28"}), labels);
        let labels = shared["metadata"]["labels"].as_object_mut().unwrap();
        labels.retain(|_, value| !value.is_null());
        let objects = [shared, half()];
        let findings = audited(&folder, &objects);
        assert!(!findings.contains("SHR-08"), "{findings}");
        let plan = planned(&folder, &objects, "");
        assert!(plan["left_alone"].get(expected).is_some(), "{plan}");
        assert_eq!((&plan["gpus"], &plan["created"]), (&json!([]), &json!(0)), "{plan}");
    }
}

#[test]
fn replicas_under_the_name_of_whole_gpus_are_no_whole_gpus() {
    let folder = Folder::new();
    folder.write(
        "policy.json",
        r#"{"apiVersion": "dovetail.dev/v1alpha1", "kind": "SharingPolicy",
            "metadata": {"name": "p"}, "spec": {"mode": "mig", "allowModeChange": true}}"#,
    );
    let with_policy = "--policy policy.json";
    let marked = json!({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-SHARED"});
    let four = json!({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-SHARED", (REPLICAS): "4"});
    let eight = json!({"nvidia.com/gpu": "8"});
    // The second shows by the name of the product alone that there are replicas.
    for labels in [&four, &marked] {
        let mut shared = node("shared", &eight, labels);
        if labels.get(REPLICAS).is_none() {
            shared["metadata"]["labels"].as_object_mut().unwrap().remove("nvidia.com/gpu.count");
        }
        let objects = [shared, half()];
        let findings = audited(&folder, &objects);
        assert!(!findings.contains("SHR-08"), "{findings}");
        let plan = planned(&folder, &objects, with_policy);
        assert!(plan["left_alone"].get("the GPUs are shared by replicas").is_some(), "{plan}");
        assert_eq!((&plan["gpus"], &plan["created"]), (&json!([]), &json!(0)), "{plan}");
    }
    // Pods that wait for replicas keep no GPU whole; those that wait for any GPU do.
    let nodes =
        [node("shared", &eight, &four), node("whole", &json!({"nvidia.com/gpu": "2"}), &json!({}))];
    let on = |host: &str| json!({"nodeSelector": {"kubernetes.io/hostname": host}});
    let waits = |more: &Value| {
        let waits =
            (0..2).map(|number| pod(&format!("w{number}"), "nvidia.com/gpu", 1, None, more));
        nodes.iter().cloned().chain(waits).chain([half()]).collect::<Vec<Value>>()
    };
    let plan = planned(&folder, &waits(&on("shared")), with_policy);
    assert_eq!(changed(&plan), ["whole"], "{plan}");
    for more in [on("whole"), json!({})] {
        let plan = planned(&folder, &waits(&more), with_policy);
        assert!(changed(&plan).is_empty(), "{plan}");
    }
}

/// The kubelet keeps a resource that has vanished at 0.
#[test]
fn a_node_that_offered_replicas_before_is_planned() {
    let folder = Folder::new();
    let one = json!({"nvidia.com/gpu.count": "1"});
    let none_left = json!({"nvidia.com/gpu.count": "1", (REPLICAS): "4"});
    for (offers, labels) in [
        (json!({"nvidia.com/gpu.shared": "0", "nvidia.com/gpu": "0"}), &one),
        (json!({"nvidia.com/mig-1g.10gb.shared": "0"}), &one),
        (json!({"nvidia.com/gpu": "0"}), &none_left),
    ] {
        let mut offers = offers;
        offers["nvidia.com/mig-1g.10gb"] = json!("7");
        let plan = planned(&folder, &[node("cut", &offers, labels), half()], "");
        assert_eq!((&plan["accepted"], changed(&plan)), (&json!({"3g.40gb": 1}), vec!["cut"]));
    }
}

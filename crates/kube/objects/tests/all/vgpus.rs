//! Parts of GPUs that HAMi or Volcano allocates.

use dovetail_objects::{Node, Pod, labels};
use serde_json::{Value, json};

fn pod(annotation: (&str, &str), resources: &Value) -> Pod {
    let (key, value) = annotation;
    let object = json!({"metadata": {"name": "p", "annotations": {key: value}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": resources}}]}});
    serde_json::from_value(object).expect("a pod")
}

#[test]
fn vgpus_show_in_annotations_and_in_resources() {
    let none = json!({"nvidia.com/gpu": "1"});
    for (key, value) in [
        (
            "hami.io/vgpu-devices-allocated",
            "GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448,NVIDIA,3000,0:;",
        ),
        ("volcano.sh/vgpu-ids-new", "GPU-76f93f2b-8cd8-4dd0-e555-56418bde1457,NVIDIA,1126,0:"),
        ("volcano.sh/gpu-index", "0"),
    ] {
        assert_eq!(pod((key, value), &none).vgpu(), Some(key));
    }
    // A container without GPUs, and an annotation that says nothing of what is held.
    for (key, value) in [("hami.io/vgpu-devices-allocated", ";"), ("hami.io/vgpu-node", "n1")] {
        assert_eq!(pod((key, value), &none).vgpu(), None, "{key}");
    }
    for resource in ["nvidia.com/gpumem", "volcano.sh/vgpu-memory", "volcano.sh/gpu-memory"] {
        let found = pod(("a", "b"), &json!({resource: "1000"}));
        assert_eq!(found.vgpu(), Some(resource));
    }
    assert_eq!(pod(("a", "b"), &json!({"nvidia.com/gpucores": "0"})).vgpu(), None);
}

#[test]
fn a_node_is_taken_over_by_a_list_of_its_gpus() {
    let node = |key: &str, list: &str| -> Node {
        let object = json!({"metadata": {"name": "n", "annotations": {key: list}}});
        serde_json::from_value(object).expect("a node")
    };
    let listed = "GPU-151ae9c0-83a9-2dd1-8981-b5f44c021a58,10,81559,NVIDIA-H100,true:";
    for key in [labels::HAMI_REGISTER, labels::VOLCANO_REGISTER] {
        assert_eq!(node(key, listed).vgpu_register(), Some((key, listed)));
        assert_eq!(node(key, "").vgpu_register(), None);
    }
    assert_eq!(node("hami.io/node-handshake", "Requesting_1").vgpu_register(), None);
}

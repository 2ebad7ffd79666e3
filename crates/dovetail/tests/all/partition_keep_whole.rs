//! Whole GPUs that `dovetail partition plan` does not cut.

use serde_json::{Value, json};

use crate::partition::{changed, node, planned, pod};
use crate::program::Folder;

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
}

//! What the generated cluster of `--example` lacks for a plan that changes something: MIG instances
//! that no pod uses, and pods that wait for instances of another profile.

use anyhow::{Context, Result};
use dovetail_inventory::dump::read_objects;
use dovetail_model::labels::{NVIDIA_GPU, NVIDIA_MIG};
use dovetail_sources::example::NAME;
use serde_json::json;

use crate::objects::Objects;

/// A node of the cluster with eight free H100s.
const NODE: &str = "ip-10-0-0-1.ec2.internal";

/// Pods that wait for half a GPU each.
const PENDING: usize = 4;

/// Cuts the GPUs of one node of the generated cluster into the smallest instances, and adds pods
/// that need larger ones.
///
/// # Errors
/// A generated cluster without the node.
pub(crate) fn add(objects: &mut Objects) -> Result<()> {
    let seen = objects.nodes.get_mut(NODE);
    let node = &mut seen.with_context(|| format!("the generated cluster has no {NODE}"))?.node;
    for amounts in [&mut node.allocatable, &mut node.capacity] {
        let gpus = amounts.extended.remove(NVIDIA_GPU).unwrap_or(0);
        amounts.extended.insert(format!("{NVIDIA_MIG}1g.10gb"), 7 * gpus);
    }
    let asked = json!({"cpu": "4", "memory": "32Gi", (format!("{NVIDIA_MIG}3g.40gb")): "1"});
    let pod = |number: usize| {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("serve-summaries-{number}"), "namespace": "search",
                "creationTimestamp": "2026-11-20T11:30:00Z"},
            "spec": {"tolerations": [{"operator": "Exists"}], "containers": [{"name": "server",
                "image": "server", "resources": {"requests": asked, "limits": asked}}]},
            "status": {"phase": "Pending"}})
    };
    let pods: Vec<_> = (0..PENDING).map(pod).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": pods}).to_string();
    read_objects(list.as_bytes(), NAME, objects)?;
    Ok(())
}

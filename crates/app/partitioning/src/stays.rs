//! Why the GPUs of a node stay as they are.

use dovetail_objects::Pod;
use dovetail_sharing::guard::{other_master, rests};
use dovetail_sharing::names::{NVIDIA_DRIVER, RECORD};
use dovetail_sharing::{PolicySpec, Record, uses_gpus};

use crate::objects::{Objects, SeenNode};

/// Why the GPUs of a node stay as they are now, if they do. `pods`: those on the node.
pub(crate) fn stays(
    name: &str,
    seen: &SeenNode,
    pods: &[&Pod],
    objects: &Objects,
    policy: &PolicySpec,
    now_ms: u64,
) -> Option<String> {
    let label = |key: &str| seen.node.meta.labels.get(key);
    let record = seen.annotations.get(RECORD).map(|text| Record::read(text));
    let record = match record.transpose() {
        Ok(record) => record,
        Err(error) => {
            return Some(format!(
                "annotation {RECORD} is invalid ({error}); if no change is under way, remove it"
            ));
        }
    };
    if let Some(master) = other_master(&seen.annotations, label, record.as_ref()) {
        return Some(master);
    }
    if objects.dra_nodes.contains(name) {
        return Some(format!("the DRA driver {NVIDIA_DRIVER} gives its GPUs away"));
    }
    if !policy.selects(label) {
        return Some("the policy's nodeSelector does not select the node".to_owned());
    }
    if seen.node.unschedulable {
        return Some("the node is cordoned".to_owned());
    }
    if let Some(why) = rests(label, record.as_ref(), now_ms) {
        return Some(why);
    }
    let why = "pods use GPUs of the node, and the API does not say which";
    pods.iter().any(|pod| uses_gpus(pod)).then(|| why.to_owned())
}

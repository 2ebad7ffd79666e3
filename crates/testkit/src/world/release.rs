//! What an older release makes of a world that is written for the newest.

use serde_json::Value;

use super::GeneratedCluster;
use crate::binaries::Release;

impl GeneratedCluster {
    /// The world as servers and schedulers of a release see it: what they do not know, or do not
    /// look at with their default feature gates, is left out.
    #[must_use]
    pub fn known_to(&self, release: Release) -> Self {
        let mut world = self.clone();
        if release == Release::V1_35 {
            for node in &mut world.nodes {
                take(node, &["status"], "declaredFeatures");
            }
            world.pods.iter_mut().chain(&mut world.pending).for_each(forget_newer_fields);
            for driver in &mut world.csi_drivers {
                take(driver, &["spec"], "preventPodSchedulingIfMissing");
            }
        }
        world
    }
}

fn forget_newer_fields(pod: &mut Value) {
    // Resizes of pod-level resources are behind a gate that is off. Of a resize of containers that
    // release takes the larger state of each container, where newer ones take the larger sum: it
    // stands in docs/internals/kubernetes.md as a difference.
    for field in [
        "allocatedResources",
        "resources",
        "containerStatuses",
        "initContainerStatuses",
        "conditions",
    ] {
        take(pod, &["status"], field);
    }
    // Nodes that declare features are behind a gate that is off, so nothing asks for them.
    take(pod, &["spec"], "hostUsers");
    let containers = pod.pointer_mut("/spec/containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        take(container, &[], "restartPolicyRules");
        let mounts = container.get_mut("volumeMounts").and_then(Value::as_array_mut);
        for mount in mounts.into_iter().flatten() {
            take(mount, &[], "bindMountOptions");
        }
    }
}

/// Takes a field out of the object at a path of fields, if all of it is there.
fn take(object: &mut Value, path: &[&str], field: &str) -> Option<Value> {
    let mut inner = object;
    for step in path {
        inner = inner.get_mut(step)?;
    }
    inner.as_object_mut()?.remove(field)
}

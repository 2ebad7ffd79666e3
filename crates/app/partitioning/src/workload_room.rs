//! Where the pods of a workload could go if they asked for another resource.

use dovetail_inventory::facts::manager;
use dovetail_model::Requirement;
use dovetail_objects::Pod;
use dovetail_sharing::Owner;

use crate::eligible::{Target, holders, requirement};
use crate::objects::Objects;
use crate::rooms::{Rooms, UnitShare};

/// A workload is read so often again if it changes while it is read.
pub(crate) const MOST_READS: u32 = 5;

/// Pods are not counted beyond this many.
const MOST: u64 = 10_000;

/// What one of its pods needs if it asks for one of a resource; `None` if that is not known.
fn needs(owner: &Owner, resource: &str, objects: &Objects) -> Option<Requirement> {
    let pod: Pod = serde_json::from_value(owner.pod_with(resource)).ok()?;
    requirement(&pod, objects).ok()
}

/// Whether a node could take a pod, if it had nothing else: taints, labels, CPU and memory.
pub(crate) fn could_take(
    owner: &Owner,
    resource: &str,
    objects: &Objects,
) -> impl Fn(&str) -> bool {
    let needs = needs(owner, resource, objects);
    move |name: &str| {
        let target = objects.nodes.get(name).map(|seen| Target::of(seen, name, objects, &[]));
        // What is not known is left to the scheduler.
        target.zip(needs.as_ref()).is_none_or(|(target, needs)| target.takes(needs))
    }
}

/// How many of a resource are free on nodes which take the pods, up to one for each pod: besides
/// what pending pods get there.
pub(crate) fn free(owner: &Owner, resource: &str, objects: &Objects) -> u64 {
    let Some(needs) = needs(owner, resource, objects) else { return 0 };
    // Whether it may be beside others, and where its volumes are, is not checked here.
    if !needs.rules.is_empty() || !needs.attachments.is_empty() {
        return 0;
    }
    let holders = holders(objects);
    let mut rooms = Rooms::besides("", objects, &holders);
    let share = UnitShare::named(resource);
    let pods = 0..owner.replicas.min(MOST);
    pods.take_while(|_| rooms.take(&needs, (resource, 1), Some(share)).is_some()).count() as u64
}

/// Who undoes a change of a workload, and where it belongs; `None` if no tool writes it.
pub(crate) fn tool(owner: &Owner) -> Option<String> {
    manager(owner.metadata()).map(|manager| manager.advice())
}

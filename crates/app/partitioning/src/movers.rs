//! The pods that would have to move so that a node can change: whether they may, where they go, and
//! what they lose.

use std::collections::BTreeMap;

use dovetail_gpus::node_gpus;
use dovetail_model::Requirement;
use dovetail_objects::Pod;
use dovetail_sharing::{Movable, MoveFacts, PodMove, uses_gpus};

use crate::eligible::requirement;
use crate::objects::{Objects, SeenNode};
use crate::rooms::{Rooms, asked};

/// A pod that may be moved.
pub(crate) struct Mover {
    pub(crate) one: PodMove,
    pub(crate) resource: String,
    pub(crate) count: i64,
    /// What it has of a GPU, in thousandths.
    pub(crate) gpu_milli: i64,
    needs: Requirement,
    /// Whether it may wait for the new layout: it has checkpoints, or a replica is ready elsewhere.
    may_wait: bool,
}

impl Mover {
    /// Makes it wait for the new layout of its node, which takes so long.
    pub(crate) fn wait(&mut self, change_ms: u64) {
        self.one.lost_gpu_ms += gpu_ms(self.gpu_milli, change_ms);
    }
}

fn gpu_ms(gpu_milli: i64, ms: u64) -> u64 {
    ms.saturating_mul(gpu_milli.unsigned_abs()) / 1_000
}

/// The pods of a node that use its GPUs, if all of them may be moved.
///
/// # Errors
/// The first that may not, and why.
pub(crate) fn movers(
    seen: &SeenNode,
    pods: &[&Pod],
    objects: &Objects,
    now_ms: u64,
) -> Result<Vec<Mover>, String> {
    let pods = pods.iter().filter(|pod| uses_gpus(pod));
    let of = |pod: &&Pod| {
        let name = format!("{}/{}", pod.meta.namespace, pod.meta.name);
        mover(&name, pod, seen, objects, now_ms)
            .map_err(|why| format!("pod {name} may not be moved: {why}"))
    };
    pods.map(of).collect()
}

fn mover(
    name: &str,
    pod: &Pod,
    seen: &SeenNode,
    objects: &Objects,
    now_ms: u64,
) -> Result<Mover, String> {
    let none = MoveFacts::default();
    let key = (pod.meta.namespace.to_string(), pod.meta.name.to_string());
    let facts = objects.moves.get(&key).unwrap_or(&none);
    let uid = facts.owner.as_ref().map(|owner| &*owner.uid).unwrap_or_default();
    let ready = |is_counted: &dyn Fn(&Pod) -> bool| {
        let of_owner = objects.moves.iter().filter(|(key, facts)| {
            facts.is_ready
                && facts.owner.as_ref().is_some_and(|owner| owner.uid == uid)
                && objects.pods.get(*key).is_some_and(is_counted)
        });
        of_owner.count()
    };
    let movable = facts.movable(pod, ready(&|_| true))?;
    let owner = facts.owner.clone().ok_or("no controller would recreate it")?;
    let (resource, count) = asked(pod).ok_or("it uses GPUs under several resource names")?;
    let is_replica = movable == Movable::Replica;
    let may_wait = !is_replica || ready(&|other| other.node != pod.node) > 0;
    let gpus = node_gpus(&seen.node, seen.hami()).ok_or("its node has no GPUs")?;
    let units = gpus.units.iter().find(|units| units.resource == resource);
    let gpu_milli = units.map_or(1_000 * count, |units| units.parts.milli(0, count));
    let started_ms = pod.scheduled_ms.max(pod.meta.created_ms);
    let lost_gpu_ms = gpu_ms(gpu_milli, facts.lost_ms(movable, started_ms, now_ms));
    let uid = pod.meta.uid.to_string();
    let (pod_name, to, evicted_ms) = (name.to_owned(), String::new(), None);
    Ok(Mover {
        one: PodMove { pod: pod_name, uid, owner, is_replica, to, lost_gpu_ms, evicted_ms },
        resource: resource.to_owned(),
        count,
        gpu_milli,
        needs: requirement(pod, objects)?,
        may_wait,
    })
}

/// Finds a node with room now for each pod; those without one wait for the new layout of their own
/// node, where they may.
///
/// # Errors
/// The first that has no room and may not wait.
pub(crate) fn place(
    movers: &mut [Mover],
    node: &str,
    objects: &Objects,
    holders: &BTreeMap<&str, Vec<&Pod>>,
) -> Result<(), String> {
    let mut rooms = Rooms::besides(node, objects, holders);
    for mover in movers {
        // Whether it may be beside others, and where its volumes are, is not checked here.
        let is_free = mover.needs.rules.is_empty() && mover.needs.attachments.is_empty();
        let found = match is_free {
            true => rooms.take(&mover.needs, &mover.resource, mover.count),
            false => None,
        };
        match found {
            Some(node) => node.clone_into(&mut mover.one.to),
            None if mover.may_wait => {}
            None => {
                return Err(format!(
                    "pod {} may not be moved: no other node has room for it, and no replica elsewhere is ready",
                    mover.one.pod
                ));
            }
        }
    }
    Ok(())
}

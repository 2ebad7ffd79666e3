//! The pods that would have to leave so that a node can change: those that finish soon, and of the
//! others whether they may move, where they go, and what they lose.

use std::collections::BTreeMap;

use dovetail_gpus::node_gpus;
use dovetail_model::Requirement;
use dovetail_objects::Pod;
use dovetail_sharing::{Movable, MoveFacts, Moves, ObjectName, PodMove, PolicySpec, uses_gpus};

use crate::eligible::requirement;
use crate::ends::ends_ms;
use crate::objects::{Objects, SeenNode};
use crate::rooms::{Rooms, UnitShare, asked};
use crate::stays::IN_USE;
use crate::waiting::amounts;

/// A pod that may be moved, or finishes soon.
pub(crate) struct Mover {
    pub(crate) one: PodMove,
    pub(crate) resource: String,
    pub(crate) count: i64,
    /// What it has of GPUs.
    share: UnitShare,
    /// When it is expected to finish, if the node waits for that.
    ends_ms: Option<u64>,
    needs: Requirement,
    /// Whether it may wait for the new layout: it has checkpoints, or a replica is ready elsewhere.
    may_wait: bool,
}

impl Mover {
    /// Whether it moves back to its node, once the new layout is there.
    pub(crate) fn comes_back(&self) -> bool {
        self.one.waits_until_ms.is_none() && self.one.to.is_empty()
    }

    /// CPU, memory, disk and pod slots that are free on its node when it has left.
    pub(crate) fn frees(&self) -> [i64; 4] {
        amounts(&self.needs.resources)
    }

    /// Makes it wait for the new layout of its node, which takes so long.
    pub(crate) fn wait(&mut self, change_ms: u64) {
        let lost_ms = self.one.lost_gpu_ms + gpu_ms(self.share.milli, change_ms);
        self.one.lost_gpu_ms = in_whole_seconds(lost_ms);
    }
}

/// GPU time that a node with so many GPUs loses by taking no new pods until the last of these has
/// finished, if any finish by themselves.
pub(crate) fn idle_gpu_ms(gpus: usize, movers: &[Mover], now_ms: u64) -> u64 {
    let Some(last_ms) = movers.iter().filter_map(|mover| mover.ends_ms).max() else { return 0 };
    let used = |mover: &Mover| {
        let ends_ms = mover.ends_ms.unwrap_or(last_ms);
        gpu_ms(mover.share.milli, ends_ms.saturating_sub(now_ms))
    };
    let all_ms = (gpus as u64).saturating_mul(last_ms.saturating_sub(now_ms));
    all_ms.saturating_sub(movers.iter().map(used).sum())
}

/// What a pod loses counts in whole GPU-seconds, so that budgets, totals and rows say the same.
fn in_whole_seconds(gpu_ms: u64) -> u64 {
    gpu_ms.next_multiple_of(1_000)
}

fn gpu_ms(gpu_milli: i64, ms: u64) -> u64 {
    ms.saturating_mul(gpu_milli.unsigned_abs()) / 1_000
}

/// The pods of a node that use its GPUs, if each of them finishes soon enough for the policy, or
/// may be moved.
///
/// # Errors
/// The first that may not, and why.
pub(crate) fn movers(
    seen: &SeenNode,
    pods: &[&Pod],
    (objects, policy): (&Objects, &PolicySpec),
    now_ms: u64,
) -> Result<Vec<Mover>, String> {
    let pods = pods.iter().filter(|pod| uses_gpus(pod));
    let of = |pod: &&Pod| -> Result<Mover, String> {
        let name = format!("{}/{}", pod.meta.namespace, pod.meta.name);
        let until_ms = now_ms + u64::from(policy.wait_minutes) * 60_000;
        if let Some(ends_ms) = ends_ms(pod).filter(|at| (now_ms + 1..=until_ms).contains(at)) {
            return waited(&name, pod, seen, objects, (ends_ms, until_ms));
        }
        if policy.moves == Moves::Never {
            return Err(IN_USE.to_owned());
        }
        mover(&name, pod, seen, objects, now_ms)
            .map_err(|why| format!("pod {name} may not be moved: {why}"))
    };
    pods.map(of).collect()
}

/// A pod that finishes by itself, expected then; the node waits for it until the second time.
fn waited(
    name: &str,
    pod: &Pod,
    seen: &SeenNode,
    objects: &Objects,
    (ends_ms, until_ms): (u64, u64),
) -> Result<Mover, String> {
    let (resource, count, share) = share(pod, seen)?;
    let (pod_name, uid) = (pod.meta.name.to_string(), pod.meta.uid.to_string());
    let owner = ObjectName {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        namespace: pod.meta.namespace.to_string(),
        name: pod_name,
        uid: uid.clone(),
    };
    let key = (pod.meta.namespace.to_string(), pod.meta.name.to_string());
    let facts = objects.moves.get(&key);
    Ok(Mover {
        one: PodMove {
            pod: name.to_owned(),
            uid,
            owner: facts.and_then(|facts| facts.owner.clone()).unwrap_or(owner),
            is_replica: false,
            to: String::new(),
            lost_gpu_ms: 0,
            adds_replica: false,
            evicted_ms: None,
            waits_until_ms: Some(until_ms),
        },
        resource,
        count,
        share,
        ends_ms: Some(ends_ms),
        needs: requirement(pod, objects).unwrap_or_default(),
        may_wait: false,
    })
}

/// The resource of a pod's GPUs, how many it has, and what it has of GPUs.
fn share(pod: &Pod, seen: &SeenNode) -> Result<(String, i64, UnitShare), String> {
    let (resource, count) = asked(pod).ok_or("it uses GPUs under several resource names")?;
    let gpus = node_gpus(&seen.node, seen.hami()).ok_or("its node has no GPUs")?;
    Ok((resource.to_owned(), count, UnitShare::of(&gpus, resource, count)))
}

fn mover(
    name: &str,
    pod: &Pod,
    seen: &SeenNode,
    objects: &Objects,
    now_ms: u64,
) -> Result<Mover, String> {
    if let Some(by) = pod.vgpu() {
        return Err(format!("HAMi or Volcano allocates the GPUs of this node ({by})"));
    }
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
    let (resource, count, share) = share(pod, seen)?;
    let is_replica = movable == Movable::Replica;
    let may_wait = !is_replica || ready(&|other| other.node != pod.node) > 0;
    let started_ms = pod.scheduled_ms.max(pod.meta.created_ms);
    let lost_ms = gpu_ms(share.milli, facts.lost_ms(movable, started_ms, now_ms));
    let lost_gpu_ms = in_whole_seconds(lost_ms);
    let uid = pod.meta.uid.to_string();
    let (pod_name, to, evicted_ms) = (name.to_owned(), String::new(), None);
    Ok(Mover {
        one: PodMove {
            pod: pod_name,
            uid,
            owner,
            is_replica,
            to,
            lost_gpu_ms,
            adds_replica: false,
            evicted_ms,
            waits_until_ms: None,
        },
        resource,
        count,
        share,
        ends_ms: None,
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
    for mover in movers.iter_mut().filter(|mover| mover.one.waits_until_ms.is_none()) {
        // Whether it may be beside others, and where its volumes are, is not checked here.
        let is_free = mover.needs.rules.is_empty() && mover.needs.attachments.is_empty();
        let found = match is_free {
            true => rooms.take(&mover.needs, (&mover.resource, mover.count), Some(mover.share)),
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

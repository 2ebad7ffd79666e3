//! Pods that leave a node so that its layout can change: which, in what order, and what that has
//! cost.
//!
//! A node that is to be emptied is tainted first, and its pods are evicted one after the other,
//! each when the server and its owner allow it. That an eviction is about to be asked for is
//! recorded before it is, so that a process that dies in between repeats it: it names the pod's
//! UID, and what it costs is counted once. Pods that finish by themselves come first: nothing is
//! evicted as long as one of them runs, and if it runs longer than the node waits, nothing is.

use dovetail_objects::harmless;
use dovetail_units::time::time;
use serde_json::Value;

use crate::component::Component;
use crate::node_state::{GpuPod, Seen};
use crate::node_write::{Changed, Write, event_about};
use crate::pod_move::PodMove;
use crate::record::{Record, Step};
use crate::side::Side;
use crate::step::{Next, Refused, Timing, fresh, may_begin, taint_for};
use crate::watch::Watch;

/// GPU time that moves have taken of the budget of the last hour, by the records of the nodes. What
/// a change under way may still move counts, too.
pub fn moved_gpu_ms<'r>(records: impl Iterator<Item = &'r Record>, now_ms: u64) -> u64 {
    let of = |record: &Record| -> u64 {
        let is_over = record.step.is_over();
        let counts = |one: &&PodMove| match one.evicted_ms {
            Some(_) => one.is_recent(now_ms),
            None => !is_over,
        };
        record.moves.iter().filter(counts).map(|one| one.lost_gpu_ms).sum()
    };
    records.map(of).sum()
}

/// Begins a change of a node whose pods move away first: the taint.
///
/// # Errors
/// Why the node must not change now; among others, pods that the plan does not know.
pub fn begin_moving(
    seen: &Seen,
    (by, from, to): (Component, Side, Side),
    moves: Vec<PodMove>,
    watch: Option<Watch>,
    now_ms: u64,
) -> Result<Write, Refused> {
    may_begin(seen, by, &from, now_ms)?;
    if let Some(pod) = seen.gpu_pods.iter().find(|pod| !moves.iter().any(|one| one.uid == pod.uid))
    {
        let (node, pods) = (seen.node.clone(), pod.name.clone());
        return Err(Refused::InUse { node, pods, component: by.words() });
    }
    let mut record = fresh(seen, by, from, to, now_ms);
    record.moves.extend(moves);
    record.problem = awaited(seen, &record).map_or_else(String::new, |(pods, until_ms)| {
        format!("waiting until {} for {pods} to finish", time(until_ms))
    });
    Ok(taint_for(seen, Record { step: Step::Emptying, watch, ..record }, now_ms))
}

/// The pods on a node that finish by themselves before others move, and until when it waits.
fn awaited(seen: &Seen, record: &Record) -> Option<(String, u64)> {
    let until_ms = |pod: &&GpuPod| {
        let one = record.own_moves().find(|one| one.uid == pod.uid)?;
        one.waits_until_ms
    };
    let pods: Vec<&GpuPod> = seen.gpu_pods.iter().filter(|pod| until_ms(pod).is_some()).collect();
    let names: Vec<&str> = pods.iter().map(|pod| &*pod.name).collect();
    Some((names.join(", "), pods.iter().filter_map(until_ms).max()?))
}

/// Whether pods on a node finish by themselves before its change goes on.
pub fn waits_for_pods(seen: &Seen, record: &Record) -> bool {
    awaited(seen, record).is_some()
}

/// What comes next on a node whose pods move away.
pub(crate) fn next(seen: &Seen, record: &Record, timing: &Timing, now_ms: u64) -> Next {
    let write = |write: Write| Next::Write(Box::new(write));
    let of = |pod: &GpuPod| record.own_moves().find(|one| one.uid == pod.uid);
    if let Some(pod) = seen.gpu_pods.iter().find(|pod| of(pod).is_none()) {
        let problem = format!("{} started before schedulers saw the taint", pod.name);
        return write(crate::step::end(seen, record, Step::Undone, &problem, now_ms));
    }
    if seen.gpu_pods.is_empty() {
        let problem = String::new();
        let next = Record { step: Step::Tainted, since_ms: now_ms, problem, ..record.clone() };
        let changed = Changed { is_tainted: true, clears: None, asked: None, event: None };
        return write(Write::new(seen, next, changed, now_ms));
    }
    if let Some((pods, until_ms)) = awaited(seen, record) {
        if now_ms < until_ms {
            let why = format!("for {pods} to finish");
            return Next::Wait { until_ms, why };
        }
        let minutes = until_ms.saturating_sub(record.since_ms) / 60_000;
        let problem = format!("{pods} did not finish within {minutes} minutes");
        return write(crate::step::end(seen, record, Step::Undone, &problem, now_ms));
    }
    let waited_ms = record.own_moves().filter_map(|one| one.waits_until_ms).max();
    let limit_ms = waited_ms.unwrap_or(record.since_ms) + timing.limit_ms;
    if now_ms >= limit_ms {
        let problem = match &*record.problem {
            "" => format!("{} did not terminate", seen.pod_names()),
            problem => problem.to_owned(),
        };
        let problem = format!("{problem} for {} s", timing.limit_ms / 1_000);
        return write(crate::step::end(seen, record, Step::Undone, &problem, now_ms));
    }
    let wait = |until_ms: u64, why: String| Next::Wait { until_ms, why };
    let settled_ms = record.since_ms + timing.settle_ms;
    if now_ms < settled_ms {
        return wait(settled_ms, "until schedulers see the taint".to_owned());
    }
    let stays = seen.gpu_pods.iter().filter(|pod| !pod.is_leaving).filter_map(of);
    let stays: Vec<&PodMove> = stays.collect();
    // A pod that was asked for before is: the process may have died in between.
    match stays.iter().find(|one| one.evicted_ms.is_some()).or(stays.first()) {
        Some(one) => Next::Evict(Box::new((*one).clone())),
        None => wait(limit_ms, format!("for {} to terminate", seen.pod_names())),
    }
}

/// The record with what has become of the eviction of a pod.
fn with_eviction(record: &Record, uid: &str, evicted_ms: Option<u64>, problem: &str) -> Record {
    let mut next = Record { problem: problem.to_owned(), ..record.clone() };
    let mine = next.moves.iter_mut().filter(|one| one.uid == uid);
    mine.for_each(|one| one.evicted_ms = evicted_ms);
    next
}

/// Records that the Deployment of a pod gets one replica more before the pod is evicted.
pub fn adding_replica(seen: &Seen, record: &Record, one: &PodMove, now_ms: u64) -> Write {
    let mut next = record.clone();
    let mine = next.moves.iter_mut().filter(|other| other.uid == one.uid);
    mine.for_each(|one| one.adds_replica = true);
    let changed = Changed { is_tainted: true, clears: None, asked: None, event: None };
    Write::new(seen, next, changed, now_ms)
}

/// Records that a pod is about to be evicted, with events on the node and on its owner.
pub fn evicting(seen: &Seen, record: &Record, one: &PodMove, now_ms: u64) -> (Write, Value) {
    let seconds = one.lost_gpu_ms.div_ceil(1_000);
    let (from, to) = (record.from.words(), record.to.words());
    let owner = format!("{} {}", one.owner.kind, one.owner.name);
    let message = format!(
        "evicting {} of {owner}, {seconds} GPU-seconds lost: the layout of node {} changes from {from} to {to}",
        one.words(),
        seen.node
    );
    let what = ("PodMoved", &*message, false);
    let next = with_eviction(record, &one.uid, Some(now_ms), "");
    let changed = Changed { is_tainted: true, clears: None, asked: None, event: None };
    let said = format!("{} {} PodMoved", record.started_ms, one.uid);
    let node = seen.about();
    let event = Some(event_about(&node, what, &format!("{} {said}", node.uid), now_ms));
    let of_owner = event_about(&one.owner, what, &format!("{} {said}", one.owner.uid), now_ms);
    (Write { event, ..Write::new(seen, next, changed, now_ms) }, of_owner)
}

/// Records why a pod may not be evicted now; `None` if that is recorded.
pub fn held_up(
    seen: &Seen,
    record: &Record,
    one: &PodMove,
    why: &str,
    now_ms: u64,
) -> Option<Write> {
    let why = format!("{} may not be evicted: {}", one.pod, harmless(why));
    if record.problem == why && one.evicted_ms.is_none() {
        return None;
    }
    let next = with_eviction(record, &one.uid, None, &why);
    let changed = Changed { is_tainted: true, clears: None, asked: None, event: None };
    let what = ("RepartitionWaiting", &*why, true);
    let said = format!("{} {} {} {why}", seen.uid, record.started_ms, one.uid);
    let event = Some(event_about(&seen.about(), what, &said, now_ms));
    Some(Write { event, ..Write::new(seen, next, changed, now_ms) })
}

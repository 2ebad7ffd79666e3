//! The change of a node's layout as a state machine.
//!
//! ```text
//! begin ─► Tainted ─► Applying ─► Applying again ─► Reverting ─► Stuck
//!             │           │             │               │
//!             ▼           └──── Done ◄──┘               ▼
//!           Undone ◄────────────────────────────────  Undone
//! ```
//! A change that made latency worse goes back through Emptying, which precedes Tainted and ends
//! when no pod uses the GPUs of the node; a pod that slips in leads from Tainted to Emptying again.
//! So does a change for which pods move (`moving`); if they do not leave in time, it is Undone.
//! Where the pods of an operator must leave the GPUs first (AMD's), Clearing precedes Applying and
//! Reverting: a second taint evicts them, and comes off when the component is done.
//! A return that fails is tried again after a rest; the third failure is Stuck. People who repaired
//! a node that is Stuck lead it through Tainted to Reverting. A return whose pods do not finish in
//! a day is Undone, and people begin it again.
//!
//! From every unfinished step the way leads to Abandoned when another system takes the node. What
//! to write next follows from the node as it is read now, its annotation included; each write
//! changes taint, label and annotation together.

use thiserror::Error;

use crate::component::Component;
use crate::guard::rests;
use crate::moving;
use crate::node_state::Seen;
use crate::node_write::{Changed, Write};
use crate::pod_move::PodMove;
use crate::record::{PodWait, Record, Step};
use crate::side::Side;
use crate::watch::Watch;

/// How often the new layout is asked for.
const MOST_ATTEMPTS: u32 = 2;
/// How often a node whose latency got worse is sent back.
const MOST_RETURNS: u32 = 3;
/// So many hours a change waits for pods that finish by themselves; then other nodes no longer wait
/// for it.
const MOST_WAIT_HOURS: u64 = 24;
const MOST_WAIT_MS: u64 = MOST_WAIT_HOURS * 3_600_000;

/// How long to wait for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From the taint until the node is checked again: by then schedulers know of the taint.
    pub settle_ms: u64,
    /// From writing the ConfigMap until its component sees it.
    pub mount_ms: u64,
    /// For mig-manager, or the device plugin, to make the layout.
    pub limit_ms: u64,
}

impl Timing {
    /// From a request until a failure is the answer to it. One that a component reports before may
    /// be about an earlier profile, or about a ConfigMap that it does not see yet.
    fn doubt_ms(&self) -> u64 {
        self.mount_ms.saturating_mul(2)
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self { settle_ms: 10_000, mount_ms: 120_000, limit_ms: 15 * 60_000 }
    }
}

/// What comes next on a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Nothing until then, unless the node changes.
    Wait { until_ms: u64, why: String },
    /// The ConfigMap lacks a layout of the record.
    WriteConfig,
    /// A request to send, and what it is for.
    Write(Box<Write>),
    /// A pod to evict: once its owner and the server allow it and that is recorded.
    Evict(Box<PodMove>),
    /// The change is over; or there is none.
    Over,
}

/// Why a change does not begin.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// Another system decides about its GPUs.
    #[error(
        "node {node}: {why}: use one tool to manage the GPU layout of the node: disable the other one, or exclude the \
         node from the SharingPolicy"
    )]
    OtherMaster { node: String, why: String },
    /// Pods use its GPUs.
    #[error(
        "node {node}: {pods} use its GPUs, and {component} changes GPUs without regard to pods: wait until they \
         finish"
    )]
    InUse { node: String, pods: String, component: &'static str },
    /// Pods are in the way of the clearing taint, or stay in spite of it.
    #[error("node {node}: {why}")]
    InTheWay { node: String, why: String },
    /// It changed too short a time ago.
    #[error("node {node}: {why}")]
    Rests { node: String, why: String },
    /// It does not offer what the plan was made for.
    #[error("node {node}: it offers {offers}, not {planned}: run the command again")]
    Changed { node: String, offers: String, planned: String },
    /// Another client has asked for another layout since.
    #[error(
        "node {node}: another client changed {label} to `{now}` since dovetail set it to `{asked}`, and the node no \
         longer offers {to}: to roll back, first set the label to `{asked}` and wait until the node offers this \
         layout; otherwise, leave the node as it is: `dovetail partition apply` plans with its present layout"
    )]
    Relabelled { node: String, label: &'static str, now: String, asked: String, to: String },
    /// There is nothing to go back to.
    #[error("node {node}: dovetail has recorded no change that can be rolled back")]
    NothingToRevert { node: String },
}

/// Begins a change: the taint.
///
/// # Errors
/// Why the node must not change now.
pub fn begin(
    seen: &Seen,
    by: Component,
    from: Side,
    to: Side,
    watch: Option<Watch>,
    now_ms: u64,
) -> Result<Write, Refused> {
    may_begin(seen, by, &from, now_ms)?;
    in_use(seen, by)?;
    let record = fresh(seen, by, from, to, now_ms);
    Ok(taint_for(seen, Record { watch, ..record }, now_ms))
}

/// # Errors
/// Why a node must not change now, whatever pods are on it.
pub(crate) fn may_begin(
    seen: &Seen,
    by: Component,
    from: &Side,
    now_ms: u64,
) -> Result<(), Refused> {
    let label = |key: &str| {
        Component::ALL.into_iter().find_map(|by| match by.state_label() {
            Some(state) if state == key => seen.state(by),
            _ if by.label() == key => seen.asked(by),
            _ => None,
        })
    };
    if let Some(why) = rests(label, seen.record.as_ref(), now_ms) {
        return Err(Refused::Rests { node: seen.node.clone(), why });
    }
    if !seen.has(from) {
        let (offers, planned) = (words(&seen.offers), words(&from.offers()));
        return Err(Refused::Changed { node: seen.node.clone(), offers, planned });
    }
    match seen.master(by) {
        Some(why) => Err(Refused::OtherMaster { node: seen.node.clone(), why }),
        None => Ok(()),
    }
}

/// Goes back to the layout before the last change. A finished change is undone by the same steps;
/// one that is under way or stuck asks for the old layout at once. A return that waits for pods is
/// called off: the node keeps the layout that it has.
///
/// # Errors
/// Why the node must not change now.
pub fn revert(seen: &Seen, now_ms: u64) -> Result<Write, Refused> {
    let nothing = || Refused::NothingToRevert { node: seen.node.clone() };
    let record = seen.record.as_ref().ok_or_else(nothing)?;
    let is_over = record.step.is_over();
    let master = if is_over { seen.master(record.by) } else { seen.other_master.clone() };
    if let Some(why) = master {
        return Err(Refused::OtherMaster { node: seen.node.clone(), why });
    }
    // What people roll back stops the roll-out of its policy.
    let watch = record.watch.as_ref().map(|watch| match record.step {
        Step::Done => watch.rolled_back(),
        _ if watch.is_return => watch.called_off(),
        _ => watch.rolled_back(),
    });
    let returns = record.watch.as_ref().is_some_and(Watch::returns);
    let next = Record { watch, ..record.clone() };
    match record.step {
        Step::Done => {
            in_use(seen, record.by)?;
            is_as_made(seen, record)?;
            let back = fresh(seen, record.by, record.to.clone(), record.from.clone(), now_ms);
            Ok(taint_for(seen, Record { watch: next.watch, ..back }, now_ms))
        }
        // It is on its way.
        Step::Tainted if record.then.is_some() => Err(nothing()),
        Step::Tainted => Ok(end(seen, &next, Step::Undone, ON_REQUEST, now_ms)),
        Step::Emptying if next.has_moves() => {
            Ok(end(seen, &next, Step::Undone, ON_REQUEST, now_ms))
        }
        Step::Emptying => Ok(end(seen, &next, Step::Undone, CALLED_OFF, now_ms)),
        Step::Undone if returns => Ok(end(seen, &next, Step::Undone, CALLED_OFF, now_ms)),
        Step::Undone if record.was_called_off() => {
            may_begin(seen, record.by, &record.from, now_ms)?;
            in_use(seen, record.by)?;
            let again = fresh(seen, record.by, record.from.clone(), record.to.clone(), now_ms);
            Ok(taint_for(seen, Record { watch: next.watch, ..again }, now_ms))
        }
        Step::Clearing if record.attempt == 0 => {
            Ok(end(seen, &next, Step::Undone, ON_REQUEST, now_ms))
        }
        Step::Clearing | Step::Applying => {
            in_use(seen, record.by)?;
            Ok(clear_or_ask(seen, &next, Step::Reverting, ON_REQUEST, now_ms))
        }
        Step::Stuck => {
            in_use(seen, record.by)?;
            Ok(taint_again(seen, &next, now_ms))
        }
        Step::Reverting | Step::Undone | Step::Abandoned => Err(nothing()),
    }
}

/// # Errors
/// Where another client has labelled the node since, and it no longer has the layout of the change:
/// what the label says then, and the way back.
fn is_as_made(seen: &Seen, record: &Record) -> Result<(), Refused> {
    if !seen.is_relabelled(record) || seen.has(&record.to) {
        return Ok(());
    }
    Err(Refused::Relabelled {
        node: seen.node.clone(),
        label: record.by.label(),
        now: seen.asked(record.by).unwrap_or("nothing").to_owned(),
        asked: record.asked.clone().unwrap_or_default(),
        to: words(&record.to.offers()),
    })
}

const ON_REQUEST: &str = "rolled back on request";
const CALLED_OFF: &str = "its rollback was canceled on request";

/// A node that was Stuck goes back: it has had time for anything, also to lose its taint.
fn taint_again(seen: &Seen, record: &Record, now_ms: u64) -> Write {
    let event = retried(record, Step::Reverting, ON_REQUEST, "");
    let (step, then) = (Step::Tainted, Some(Step::Reverting));
    let problem = ON_REQUEST.to_owned();
    // Those who repaired it may have labelled it.
    let asked = seen.asked(record.by).map(str::to_owned);
    let next = Record { step, then, since_ms: now_ms, problem, asked, ..record.clone() };
    Write::new(seen, next, Changed { is_tainted: true, clears: None, asked: None, event }, now_ms)
}

/// # Errors
/// The pods that use the GPUs of a node, or that its change would evict.
fn in_use(seen: &Seen, by: Component) -> Result<(), Refused> {
    let node = seen.node.clone();
    if !seen.gpu_pods.is_empty() {
        return Err(Refused::InUse { node, pods: seen.pod_names(), component: by.words() });
    }
    seen.in_the_way(by).map_or(Ok(()), |why| Err(Refused::InTheWay { node, why }))
}

/// What a node waits for whose pods are to leave its GPUs.
pub(crate) fn waits_for(seen: &Seen, by: Component) -> String {
    if seen.gpu_pods.is_empty() {
        return format!("waiting: {}", seen.in_the_way(by).unwrap_or_default());
    }
    let (gpus, pods) = match &*seen.gpu_pods {
        [_] => ("its GPUs", "the pod to move it"),
        _ => ("their GPUs", "the pods to move them"),
    };
    format!("waiting for {} to release {gpus}: restart {pods}", seen.pod_names())
}

/// The record of a change that begins with the taint. It keeps what counts for the budget of moves.
pub(crate) fn fresh(seen: &Seen, by: Component, from: Side, to: Side, now_ms: u64) -> Record {
    let before = seen.record.iter().flat_map(|record| &record.moves);
    Record {
        asked: seen.asked(by).map(str::to_owned),
        moves: before.filter(|one| one.is_recent(now_ms)).cloned().collect(),
        ..Record::begun(by, from, to, now_ms)
    }
}

/// The first write of a change: the taint.
pub(crate) fn taint_for(seen: &Seen, record: Record, now_ms: u64) -> Write {
    let why = match &record.watch {
        Some(watch) if watch.returns() => format!("; latency is {}", watch.words()),
        Some(watch) if watch.is_return => "; rolled back on request".to_owned(),
        _ => String::new(),
    };
    let wait = if record.problem.is_empty() { "" } else { "; " };
    let (from, to) = (record.from.words(), record.to.words());
    let message = format!("layout changes from {from} to {to}{why}{wait}{}", record.problem);
    let moves = record.own_moves().filter(|one| one.waits_until_ms.is_none());
    let moves: Vec<String> = moves.map(PodMove::words).collect();
    let moves = match moves.is_empty() {
        true => String::new(),
        false => format!("; pods that move: {}", moves.join(", ")),
    };
    let event = Some(("RepartitionStarted", message + &moves, false));
    let changed = Changed { is_tainted: true, clears: None, asked: None, event };
    Write::new(seen, record, changed, now_ms)
}

/// Pods that are in the way finish; then the change goes on as any other. If they do not, the node
/// takes pods again, in the layout that it has.
fn emptying(seen: &Seen, record: &Record, timing: &Timing, now_ms: u64) -> Next {
    if !seen.is_free() {
        let why = waits_for(seen, record.by);
        // From the beginning of the return, however often a pod came in between.
        let most_ms = record.started_ms + MOST_WAIT_MS;
        if now_ms < most_ms {
            return Next::Wait { until_ms: most_ms.min(now_ms + timing.limit_ms), why };
        }
        let problem = format!(
            "its rollback was canceled after {MOST_WAIT_HOURS} hours of {why}, then run `dovetail \
             partition rollback --node {}`",
            seen.node
        );
        let watch = record.watch.as_ref().map(Watch::called_off);
        let kept = Record { watch, ..record.clone() };
        return Next::Write(Box::new(end(seen, &kept, Step::Undone, &problem, now_ms)));
    }
    let next =
        Record { step: Step::Tainted, since_ms: now_ms, problem: String::new(), ..record.clone() };
    let changed = Changed { is_tainted: true, clears: None, asked: None, event: None };
    Next::Write(Box::new(Write::new(seen, next, changed, now_ms)))
}

/// What comes next on a node as it is now.
pub fn next(seen: &Seen, timing: &Timing, now_ms: u64) -> Next {
    let Some(record) = seen.record.as_ref().filter(|record| !record.step.is_over()) else {
        return Next::Over;
    };
    let write = |write: Write| Next::Write(Box::new(write));
    if let Some(master) = &seen.other_master {
        return write(end(seen, record, Step::Abandoned, master, now_ms));
    }
    if !seen.is_tainted() {
        let changed = Changed { is_tainted: true, clears: None, asked: None, event: None };
        return write(Write::new(seen, record.clone(), changed, now_ms));
    }
    match record.step {
        Step::Emptying if record.has_moves() => moving::next(seen, record, timing, now_ms),
        Step::Emptying => emptying(seen, record, timing, now_ms),
        Step::Tainted => tainted(seen, record, timing, now_ms),
        Step::Clearing => clearing(seen, record, timing, now_ms),
        Step::Applying | Step::Reverting => asked(seen, record, timing, now_ms),
        _ => Next::Over,
    }
}

/// Pods that started on a node after somebody had removed its taint, in words.
fn started(seen: &Seen) -> String {
    let pods = match seen.gpu_pods.is_empty() {
        false => seen.pod_names(),
        true => seen.evicted.join(", "),
    };
    format!("{pods} started after a taint of the change was removed")
}

/// The pods of the operator leave the GPUs of the node; then a layout is asked for.
fn clearing(seen: &Seen, record: &Record, timing: &Timing, now_ms: u64) -> Next {
    let write = |write: Write| Next::Write(Box::new(write));
    let is_first = record.attempt == 0;
    let is_cleared = seen.is_cleared(record.by);
    // Somebody has removed the taint, and pods may have started since: they are not evicted.
    let is_used = !is_cleared && !seen.evicted.is_empty() || !seen.gpu_pods.is_empty();
    if is_used && is_first && record.is_return() {
        return write(empty_again(seen, record, now_ms));
    }
    if !is_cleared && is_used {
        return match is_first {
            true => write(end(seen, record, Step::Undone, &started(seen), now_ms)),
            false => in_the_way(seen, record, "the taint was removed", timing, now_ms),
        };
    }
    if !is_cleared {
        let changed = Changed { is_tainted: true, clears: Some(true), asked: None, event: None };
        return write(Write::new(seen, record.clone(), changed, now_ms));
    }
    if !seen.gpu_pods.is_empty() {
        if is_first {
            let problem = format!("{} started before schedulers saw the taint", seen.pod_names());
            return write(end(seen, record, Step::Undone, &problem, now_ms));
        }
        return in_the_way(seen, record, "the GPUs are in use", timing, now_ms);
    }
    let leaving = seen.operands.iter().chain(&seen.evicted).chain(&seen.staying);
    let leaving: Vec<&str> = leaving.map(String::as_str).collect();
    let limit_ms = record.since_ms + timing.limit_ms;
    match (leaving.is_empty(), now_ms < limit_ms) {
        (false, true) => {
            let why = format!("for {} to leave the GPUs", leaving.join(", "));
            Next::Wait { until_ms: limit_ms, why }
        }
        (false, false) if is_first => {
            let seconds = timing.limit_ms / 1_000;
            let problem = format!("after {seconds} s {} still run there", leaving.join(", "));
            write(end(seen, record, Step::Undone, &problem, now_ms))
        }
        _ => {
            let step = record.then.unwrap_or(Step::Reverting);
            write(ask(seen, record, step, &record.problem, now_ms))
        }
    }
}

/// A pod slipped in during a return: the taint stays, and the node waits for its pods again.
fn empty_again(seen: &Seen, record: &Record, now_ms: u64) -> Write {
    let why = waits_for(seen, record.by);
    let event = Some(("RepartitionWaiting", why.clone(), true));
    let (step, then) = (Step::Emptying, None);
    let next = Record { step, then, since_ms: now_ms, problem: why, ..record.clone() };
    let clears = Some(false);
    Write::new(seen, next, Changed { is_tainted: true, clears, asked: None, event }, now_ms)
}

fn tainted(seen: &Seen, record: &Record, timing: &Timing, now_ms: u64) -> Next {
    let wait = |until_ms: u64, why: &str| Next::Wait { until_ms, why: why.to_owned() };
    let then = record.then.unwrap_or(Step::Applying);
    if let Err(refused) = in_use(seen, record.by) {
        let problem = match (seen.gpu_pods.is_empty(), record.leaves_gpus()) {
            (true, _) => refused.to_string(),
            (false, true) => format!("{} may use GPUs whose layout changes", seen.pod_names()),
            (false, false) => {
                format!("{} started before schedulers saw the taint", seen.pod_names())
            }
        };
        return Next::Write(Box::new(match then {
            Step::Reverting => end(seen, record, Step::Stuck, &problem, now_ms),
            _ if record.is_return() => empty_again(seen, record, now_ms),
            _ => end(seen, record, Step::Undone, &problem, now_ms),
        }));
    }
    let settled_ms = record.since_ms + timing.settle_ms;
    if now_ms < settled_ms {
        return wait(settled_ms, "until schedulers see the taint");
    }
    match seen.ready_ms {
        None => Next::WriteConfig,
        Some(ready_ms) if now_ms < ready_ms => {
            wait(ready_ms, &format!("until {} sees the new ConfigMap", record.by.words()))
        }
        Some(_) => {
            let before = if then == Step::Reverting { &*record.problem } else { "" };
            Next::Write(Box::new(clear_or_ask(seen, record, then, before, now_ms)))
        }
    }
}

fn asked(seen: &Seen, record: &Record, timing: &Timing, now_ms: u64) -> Next {
    let (side, is_new) = match record.step {
        Step::Applying => (&record.to, true),
        _ => (&record.from, false),
    };
    let write = |write: Write| Next::Write(Box::new(write));
    let limit_ms = record.since_ms + timing.limit_ms;
    if is_to_start_again(seen, record, timing, now_ms) {
        let next = Record { since_ms: now_ms, unanswered: false, ..record.clone() };
        let changed = Changed { is_tainted: true, clears: Some(false), asked: None, event: None };
        return write(Write::new(seen, next, changed, now_ms));
    }
    let why = match answer(seen, record, side, timing, now_ms) {
        Answer::Made if record.by == Component::DevicePlugin && !seen.gpu_pods.is_empty() => {
            // They got whole GPUs, or replicas of another kind, before the plugin started again.
            return in_the_way(seen, record, "the layout is in place", timing, now_ms);
        }
        Answer::Made => {
            let step = if is_new { Step::Done } else { Step::Undone };
            return write(end(seen, record, step, &record.problem, now_ms));
        }
        Answer::Pending(why) => return Next::Wait { until_ms: limit_ms, why },
        Answer::Failed(why) => why,
    };
    let evicts = !seen.is_cleared(record.by) && !seen.evicted.is_empty();
    if !seen.gpu_pods.is_empty() || evicts {
        return in_the_way(seen, record, &why, timing, now_ms);
    }
    write(match record.step {
        Step::Applying if record.attempt < MOST_ATTEMPTS => {
            clear_or_ask(seen, record, Step::Applying, &why, now_ms)
        }
        Step::Applying => clear_or_ask(seen, record, Step::Reverting, &why, now_ms),
        // The old layout is there, whatever mig-manager makes of it.
        _ if seen.has(side) => end(seen, record, Step::Undone, &why, now_ms),
        _ => end(seen, record, Step::Stuck, &why, now_ms),
    })
}

/// Whether the pods of the operator that had to leave the GPUs are to start again: its component
/// has done what it was asked for, or cannot do more. What they offer then shows what there is.
fn is_to_start_again(seen: &Seen, record: &Record, timing: &Timing, now_ms: u64) -> bool {
    let is_late = now_ms >= record.since_ms + timing.limit_ms;
    let is_over = has_succeeded(seen, record, timing, now_ms)
        || record.step == Step::Reverting && (is_late || has_failed(seen, record, timing, now_ms));
    is_over && seen.is_cleared(record.by)
}

/// Whether its component reports a failure, and of what it was asked for. mig-manager says itself
/// that it has begun; Device Config Manager may report one about an earlier profile, or while it
/// goes on with other GPUs.
fn has_failed(seen: &Seen, record: &Record, timing: &Timing, now_ms: u64) -> bool {
    let may_be_earlier = record.unanswered || record.by == Component::DeviceConfigManager;
    seen.state(record.by) == Some(record.by.failure())
        && !(may_be_earlier && is_early(record, timing, now_ms))
}

/// Whether its component reports success, and of what it was asked for. One about an earlier
/// request for another layout may come while the node still shows the GPUs of before that request,
/// which are those of a return.
fn has_succeeded(seen: &Seen, record: &Record, timing: &Timing, now_ms: u64) -> bool {
    let may_be_earlier = record.unanswered && record.step == Step::Reverting;
    seen.state(record.by) == Some("success")
        && !(may_be_earlier && is_early(record, timing, now_ms))
}

/// Whether what a component reports may be about an earlier request.
fn is_early(record: &Record, timing: &Timing, now_ms: u64) -> bool {
    now_ms < record.since_ms + timing.doubt_ms().min(timing.limit_ms)
}

/// Whether its component has reported what became of the last request.
fn is_answered(seen: &Seen, by: Component) -> bool {
    let is_final = |state: &str| state == "success" || state == by.failure();
    by.state_label().is_none() || seen.state(by).is_some_and(is_final)
}

/// What has become of a layout that was asked for.
enum Answer {
    Made,
    Pending(String),
    Failed(String),
}

fn answer(seen: &Seen, record: &Record, side: &Side, timing: &Timing, now_ms: u64) -> Answer {
    let is_late = now_ms >= record.since_ms + timing.limit_ms;
    let seconds = timing.limit_ms / 1_000;
    let (by, name, has) = (record.by, record.by.words(), seen.has(side));
    let offers = || format!("the node offers {}, not {}", words(&seen.offers), side_words(side));
    if by.state_label().is_none() {
        return match has {
            true => Answer::Made,
            false if is_late => Answer::Failed(format!("after {seconds} s {}", offers())),
            false => Answer::Pending(format!("for {name}: {}", offers())),
        };
    }
    // The plugin starts again after a failed return; until then the node offers nothing.
    let starts = by.clearing_taint().is_some() && record.step == Step::Reverting && !has;
    match seen.state(by).unwrap_or("nothing") {
        "success" if has && has_succeeded(seen, record, timing, now_ms) => Answer::Made,
        state if has_failed(seen, record, timing, now_ms) && (is_late || !starts) => {
            Answer::Failed(format!("{name} reported `{state}`"))
        }
        state if !is_late => Answer::Pending(format!("for {name} and the device plugin ({state})")),
        "success" => Answer::Failed(format!("{name} reported `success`, but {}", offers())),
        other => Answer::Failed(format!("{name} reported `{other}` for {seconds} s")),
    }
}

/// Pods that started before schedulers saw the taint finish by themselves; the change goes on when
/// they have. The taint stays as long, because the GPUs are between two layouts; other nodes wait
/// for a limited time.
fn in_the_way(seen: &Seen, record: &Record, why: &str, timing: &Timing, now_ms: u64) -> Next {
    let why = match seen.gpu_pods.is_empty() {
        false => format!("{why}: waiting until {} finish on its GPUs", seen.pod_names()),
        true => format!("{why}: waiting until {} finish", seen.evicted.join(", ")),
    };
    let since_ms = record.pod_wait.map_or(now_ms, |wait| wait.since_ms);
    let is_over = now_ms >= since_ms + MOST_WAIT_MS;
    let pod_wait = Some(PodWait { since_ms, is_over });
    if record.problem == why && record.pod_wait == pod_wait {
        return Next::Wait { until_ms: now_ms + timing.limit_ms, why };
    }
    let event = Some(match is_over && record.holds_others_up() {
        true => {
            let told = format!(
                "{why}; after {MOST_WAIT_HOURS} hours, other nodes no longer wait for this node, \
                 and its taint stays"
            );
            ("RepartitionOverdue", told, true)
        }
        false => ("RepartitionWaiting", why.clone(), true),
    });
    let next = Record { problem: why, pod_wait, ..record.clone() };
    let changed = Changed { is_tainted: true, clears: None, asked: None, event };
    Next::Write(Box::new(Write::new(seen, next, changed, now_ms)))
}

/// Whether a change waits for pods to finish by themselves, and its record says so: another call
/// can go on with it. `why`: that of the wait.
pub fn is_for_pods(record: &Record, why: &str) -> bool {
    !why.is_empty() && record.problem == why
}

/// Asks for a layout; where the pods of an operator must leave the GPUs first, they are evicted.
fn clear_or_ask(seen: &Seen, record: &Record, step: Step, problem: &str, now_ms: u64) -> Write {
    if record.by.clearing_taint().is_none() {
        return ask(seen, record, step, problem, now_ms);
    }
    let event = retried(record, step, problem, "");
    let next = Record {
        step: Step::Clearing,
        then: Some(step),
        since_ms: now_ms,
        pod_wait: None,
        problem: problem.to_owned(),
        ..record.clone()
    };
    let changed = Changed { is_tainted: true, clears: Some(true), asked: None, event };
    Write::new(seen, next, changed, now_ms)
}

/// The event about what is tried after a problem; none if there was none.
fn retried(
    record: &Record,
    step: Step,
    problem: &str,
    name: &str,
) -> Option<(&'static str, String, bool)> {
    let is_known = problem.is_empty() || record.step == Step::Clearing;
    (!is_known).then(|| {
        let what = if step == Step::Applying { "asking again" } else { "going back" };
        ("RepartitionRetried", format!("{problem}: {what}{name}"), true)
    })
}

/// Asks for a layout.
fn ask(seen: &Seen, record: &Record, step: Step, problem: &str, now_ms: u64) -> Write {
    let side = if step == Step::Applying { &record.to } else { &record.from };
    let asked = side.name_besides(record.by, seen.asked(record.by));
    let attempt = record.attempt + u32::from(step == Step::Applying);
    let event = retried(record, step, problem, &format!(" ({asked})"));
    let next = Record {
        step,
        then: None,
        since_ms: now_ms,
        asked: Some(asked.clone()),
        attempt,
        // What was reported meanwhile may have been about the request before the last one, too.
        unanswered: record.attempt > 0 && (record.unanswered || !is_answered(seen, record.by)),
        pod_wait: None,
        problem: problem.to_owned(),
        ..record.clone()
    };
    let changed = Changed { is_tainted: true, clears: None, asked: Some(asked), event };
    Write::new(seen, next, changed, now_ms)
}

/// The last step of a change, and its watch: a return that failed too often is Stuck.
fn returned(record: &Record, step: Step) -> (Step, Option<Watch>) {
    let Some(watch) = record.watch.clone() else { return (step, None) };
    if step != Step::Undone || !watch.returns() {
        return (step, Some(watch));
    }
    let failed_returns = watch.failed_returns + 1;
    let step = if failed_returns < MOST_RETURNS { step } else { Step::Stuck };
    (step, Some(Watch { failed_returns, ..watch }))
}

/// Ends a change.
pub(crate) fn end(seen: &Seen, record: &Record, step: Step, problem: &str, now_ms: u64) -> Write {
    let (step, watch) = returned(record, step);
    let failed = watch.as_ref().map_or(0, |watch| watch.failed_returns);
    let problem = problem.to_owned();
    let next = Record { step, since_ms: now_ms, problem, watch, pod_wait: None, ..record.clone() };
    let (seconds, problem) = (next.seconds(), &next.problem);
    let moved = match record.moved_words() {
        moved if moved.is_empty() => moved,
        moved => format!("; {moved}"),
    };
    let (reason, message, is_warning) = match step {
        Step::Done => {
            ("Repartitioned", format!("{} after {seconds} s{moved}", record.to.words()), false)
        }
        Step::Stuck => (
            "RepartitionStuck",
            format!(
                "{}: {problem}; {}",
                match failed {
                    MOST_RETURNS.. => format!("the rollback failed {failed} times"),
                    _ => "neither the new nor the former layout was applied".to_owned(),
                },
                stuck_remedy(&seen.node)
            ),
            true,
        ),
        Step::Abandoned => ("RepartitionAbandoned", format!("{problem}: taint removed"), true),
        _ => (
            "RepartitionUndone",
            format!("the node has {} as before: {problem}{moved}", record.from.words()),
            true,
        ),
    };
    let event = Some((reason, message, is_warning));
    let is_tainted = step == Step::Stuck;
    let changed = Changed { is_tainted, clears: Some(false), asked: None, event };
    Write::new(seen, next, changed, now_ms)
}

/// What people do about a node that is Stuck.
pub fn stuck_remedy(node: &str) -> String {
    format!(
        "the node stays tainted: repair it, then run `dovetail partition rollback --node {node}`"
    )
}

/// What a layout offers, in words.
fn side_words(side: &Side) -> String {
    let method = side.replicas.map(|replicas| format!(" by {}", replicas.method.word()));
    words(&side.offers()) + method.as_deref().unwrap_or_default()
}

fn words(offers: &std::collections::BTreeMap<String, i64>) -> String {
    let each: Vec<String> = offers.iter().map(|(name, count)| format!("{count} {name}")).collect();
    if each.is_empty() { "no GPUs".to_owned() } else { each.join(", ") }
}

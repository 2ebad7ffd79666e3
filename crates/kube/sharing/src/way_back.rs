//! The way back of a node whose latency got worse after a change; or why it is not rolled back, and
//! what people can do then.

use serde_json::json;

use crate::guard::dwells;
use crate::node_state::Seen;
use crate::node_write::{Changed, Write};
use crate::record::{Record, Step};
use crate::side::Side;
use crate::step::{fresh, taint_for, waits_for};
use crate::watch::{Outcome, Watch};

/// The layout that a node leaves on its way back, and the one that it goes back to; `None` where
/// nothing is to go back, or it is on its way.
fn sides(record: &Record) -> Option<(&Side, &Side)> {
    match (record.step, record.watch.as_ref()?.is_return) {
        (Step::Done, false) => Some((&record.to, &record.from)),
        // The way back failed.
        (Step::Undone, true) => Some((&record.from, &record.to)),
        _ => None,
    }
}

fn is_worse(watch: &Watch) -> bool {
    watch.outcome == Outcome::Worse
}

/// Goes back to the layout before a change that made latency worse, by the same steps. Pods that
/// are in the way finish by themselves first; the taint keeps others away.
///
/// `None` if the node has no such change, is on its way back, or rests after a return that failed;
/// or if another client is in the way ([`why_not_rolled_back`]).
pub fn give_back(seen: &Seen, now_ms: u64) -> Option<Write> {
    let record = seen.record.as_ref()?;
    let watch = record.watch.as_ref().filter(|watch| is_worse(watch))?;
    let (from, to) = sides(record)?;
    let rests = record.step == Step::Undone && dwells(record, now_ms);
    if rests || obstacle(seen, record, from, to).is_some() {
        return None;
    }
    let record = fresh(seen, record.by, from.clone(), to.clone(), now_ms);
    let watch = Some(Watch { is_return: true, ..watch.clone() });
    let (step, problem) = match seen.is_free() {
        true => (Step::Tainted, String::new()),
        false => (Step::Emptying, waits_for(seen, record.by)),
    };
    Some(taint_for(seen, Record { step, watch, problem, ..record }, now_ms))
}

/// The client that is in the way of a node's way back from a layout to another one, and what to do;
/// `None` if nothing is in the way.
fn obstacle(seen: &Seen, record: &Record, from: &Side, to: &Side) -> Option<String> {
    let (by, key) = (record.by, record.by.label());
    let is_relabelled = seen.is_relabelled(record);
    let named = seen.label_setters.get(&by).map(|name| format!(", {name},")).unwrap_or_default();
    let why = match (seen.label_owners.get(&by), seen.asked(by)) {
        (Some(owner), _) => owner.clone(),
        (None, Some(name)) if is_relabelled => format!(
            "another client{named} changed {key} to `{name}`: to let dovetail manage the node \
             again, remove the label"
        ),
        // Another system has its GPUs, or the label is gone.
        _ => {
            let is_gone = is_relabelled && !seen.has(from);
            let gone = || format!("{key} was removed, and its GPUs changed");
            return seen.other_master.clone().or_else(|| is_gone.then(gone));
        }
    };
    // For the manifest of the node.
    let fragment = json!({"metadata": {"labels": {key: to.config}}});
    Some(format!(
        "{why}; to restore {} there, set the label once no pod uses the GPUs: {fragment}",
        to.words()
    ))
}

/// How the reason begins why a node whose latency is worse is not rolled back.
const NOT_BACK: &str = "latency is worse, but the node is not rolled back: ";

/// Why a node whose latency is worse is not rolled back, with the client that is in the way, and
/// what to do; `None` if it is, or if another client has asked for its former layout.
pub fn why_not_rolled_back(seen: &Seen) -> Option<String> {
    let record = seen.record.as_ref()?;
    record.watch.as_ref().filter(|watch| is_worse(watch))?;
    let (from, to) = sides(record)?;
    let is_back = seen.asked(record.by) == Some(&*to.config) || seen.has(to);
    if is_back && seen.is_relabelled(record) {
        return None;
    }
    Some(format!("{NOT_BACK}{}", obstacle(seen, record, from, to)?))
}

/// Records why a node is not rolled back, with an event, or that nothing is in the way any more.
/// `None` if that is recorded already.
pub fn record_not_rolled_back(seen: &Seen, now_ms: u64) -> Option<Write> {
    let record = seen.record.as_ref()?;
    let problem = why_not_rolled_back(seen).unwrap_or_default();
    let is_known = record.problem == problem;
    if is_known || problem.is_empty() && !record.problem.starts_with(NOT_BACK) {
        return None;
    }
    let event = (!problem.is_empty()).then(|| ("NotRolledBack", problem.clone(), true));
    let changed = Changed { is_tainted: seen.is_tainted(), clears: None, asked: None, event };
    Some(Write::new(seen, Record { problem, ..record.clone() }, changed, now_ms))
}

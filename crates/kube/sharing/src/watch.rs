//! The watch over latency after the change of a node: when it is over, what came of it, and what
//! may change meanwhile.
//!
//! It is part of the node's record, so that any process can go on with it.

use dovetail_objects::harmless;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::node_state::Seen;
use crate::node_write::{Changed, Write};
pub use crate::outcome::{Outcome, RollOut, Subject, is_warning, reason};
use crate::policy::{PolicySpec, SharingPolicy};
use crate::record::{Record, Step};

/// Pods start and warm up for so long after a change; requests of this time are not judged.
const WARM_UP_MS: u64 = 10 * 60_000;
/// Metrics may arrive this late.
const LATE_MS: u64 = 2 * 60_000;
const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

/// The watch over a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Watch {
    /// The policy that the node changed under.
    pub policy: String,
    /// What its `spec` says about layouts, as a number: other layouts start again with one node.
    pub spec: String,
    /// Its query when the change began; empty for the histograms that are known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// How long requests are watched.
    pub hours: u32,
    #[serde(default)]
    pub outcome: Outcome,
    /// What it rests on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The recorded change is the way back from the one that was watched.
    #[serde(default)]
    pub is_return: bool,
    /// How often the way back failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_returns: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A stretch of time, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    pub from_ms: u64,
    pub to_ms: u64,
}

/// Whether nodes of a policy may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// As many as the budget allows.
    Open,
    /// One, to try it.
    Canary,
    /// None until the change of a node is over.
    Changes { node: String },
    /// None until the watch over a change is over.
    Waits(Subject),
    /// None until people change the layouts of the policy.
    Stopped { by: Subject, outcome: Outcome, why: String },
}

impl Gate {
    /// The gate of nodes and that of workloads as one.
    #[must_use]
    pub fn and(self, of_workloads: Option<Self>) -> Self {
        match (self, of_workloads) {
            (stopped @ Self::Stopped { .. }, _) | (_, Some(stopped @ Self::Stopped { .. })) => {
                stopped
            }
            (Self::Open | Self::Canary, Some(waits)) => waits,
            (of_nodes, _) => of_nodes,
        }
    }
}

impl Watch {
    /// The watch over a change under a policy; `None` if the policy has no guard.
    pub fn of(policy: &SharingPolicy) -> Option<Self> {
        let guard = policy.spec.guard.as_ref()?;
        Some(Self {
            policy: policy.name.clone(),
            spec: number(policy),
            query: guard.query.clone(),
            hours: guard.hours,
            outcome: Outcome::Waiting,
            why: String::new(),
            is_return: false,
            failed_returns: 0,
        })
    }

    /// The watch over a change that people roll back.
    #[must_use]
    pub(crate) fn rolled_back(&self) -> Self {
        let why = "on request".to_owned();
        Self { outcome: Outcome::RolledBack, why, is_return: true, ..self.clone() }
    }

    /// The watch over a change whose return people call off: the node keeps the layout that it has.
    #[must_use]
    pub(crate) fn called_off(&self) -> Self {
        Self { is_return: false, ..self.clone() }
    }

    /// The period whose requests are judged after a change that was made at a time, in milliseconds
    /// since 1970.
    pub(crate) fn after(&self, since_ms: u64) -> Period {
        let from_ms = since_ms + WARM_UP_MS;
        Period { from_ms, to_ms: from_ms + u64::from(self.hours) * HOUR_MS }
    }

    /// The same hours on the last day on which they were over before the change began.
    pub(crate) fn before(&self, started_ms: u64, since_ms: u64) -> Period {
        let after = self.after(since_ms);
        let days = after.to_ms.saturating_sub(started_ms).div_ceil(DAY_MS).max(1);
        let earlier = |at_ms: u64| at_ms.saturating_sub(days * DAY_MS);
        Period { from_ms: earlier(after.from_ms), to_ms: earlier(after.to_ms) }
    }

    /// Whether the requests after a change that was made at a time are measured by now.
    pub(crate) fn is_over(&self, since_ms: u64, now_ms: u64) -> bool {
        now_ms >= self.after(since_ms).to_ms + LATE_MS
    }

    /// Whether it is over the layouts that a policy asks for now.
    pub(crate) fn is_of(&self, policy: &SharingPolicy) -> bool {
        self.policy == policy.name && self.spec == number(policy)
    }

    /// Whether the recorded change is the way back from one that made latency worse.
    pub(crate) fn returns(&self) -> bool {
        self.is_return && self.outcome == Outcome::Worse
    }

    /// What came of the change of something, as policies report it.
    pub(crate) fn roll_out(&self, subject: Subject) -> RollOut {
        RollOut::new(subject, &self.spec, self.outcome, &self.why)
    }

    /// The outcome with what it rests on, for people.
    pub fn words(&self) -> String {
        match &*self.why {
            "" => self.outcome.word().to_owned(),
            why => format!("{}: {why}", self.outcome.word()),
        }
    }
}

/// What decides the layouts of a policy. The rest of its `spec`, such as the budget, may change
/// without starting the roll-out again.
fn number(policy: &SharingPolicy) -> String {
    let PolicySpec { mode, profiles, keep_whole, replicas, classes, partition, .. } = &policy.spec;
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort();
        names
    };
    let mut said = vec![json!([mode, sorted(profiles), keep_whole, replicas, sorted(classes)])];
    said.extend(partition.map(|partition| json!(partition)));
    let text: String = said.iter().map(ToString::to_string).collect();
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// The period after a change whose requests are judged.
pub fn after(record: &Record, watch: &Watch) -> Period {
    watch.after(record.since_ms)
}

/// The same hours on the last day on which they were over before the change began.
pub fn before(record: &Record, watch: &Watch) -> Period {
    watch.before(record.started_ms, record.since_ms)
}

/// Whether the verdict on a change is due: its requests are measured, and none was given.
pub fn is_due(record: &Record, now_ms: u64) -> bool {
    is_watched(record).is_some_and(|watch| watch.is_over(record.since_ms, now_ms))
}

/// The watch of a record whose verdict is to come.
fn is_watched(record: &Record) -> Option<&Watch> {
    let watch = record.watch.as_ref()?;
    let waits = watch.outcome == Outcome::Waiting && !watch.is_return;
    (waits && record.step == Step::Done).then_some(watch)
}

/// Whether nodes of a policy may change, by the records of the nodes that have changed under it.
pub fn gate<'r>(
    policy: &SharingPolicy,
    records: impl Iterator<Item = (&'r str, &'r Record)>,
) -> Gate {
    if policy.spec.guard.is_none() {
        return Gate::Open;
    }
    let spec = number(policy);
    let (mut waits, mut has_passed) = (None, false);
    for (node, record) in records {
        let Some(watch) = record.watch.as_ref().filter(|watch| watch.policy == policy.name) else {
            continue;
        };
        let node = node.to_owned();
        // Whatever the policy said when they changed: steps follow each other.
        if record.holds_others_up() {
            waits = Some(Gate::Changes { node: node.clone() });
        } else if is_watched(record).is_some() {
            waits = Some(Gate::Waits(Subject::Node(node.clone())));
        }
        match watch.outcome {
            _ if watch.spec != spec => {}
            outcome if outcome.stops() => {
                let (by, why) = (Subject::Node(node), watch.why.clone());
                return Gate::Stopped { by, outcome, why };
            }
            Outcome::Better | Outcome::Same => has_passed = true,
            // It is watched; or it failed, and there is nothing to judge.
            _ => {}
        }
    }
    match remembered(policy) {
        Some(known) if known.outcome.stops() => {
            let (outcome, why) = (known.outcome, known.why.clone());
            return Gate::Stopped { by: known.subject(), outcome, why };
        }
        Some(_) => has_passed = true,
        None => {}
    }
    waits.unwrap_or(if has_passed { Gate::Open } else { Gate::Canary })
}

/// What the status of a policy says about the layouts that it asks for now.
fn remembered(policy: &SharingPolicy) -> Option<RollOut> {
    let known: RollOut = serde_json::from_value(policy.status["rollOut"].clone()).ok()?;
    (known.spec == number(policy) && known.outcome != Outcome::Waiting).then_some(known)
}

/// What came of the layouts that a policy asks for, by the nodes that have changed under it, by
/// what came of workloads, and by its status. What stops the roll-out comes first.
pub fn roll_out<'r>(
    policy: &SharingPolicy,
    records: impl Iterator<Item = (&'r str, &'r Record)>,
    workloads: impl Iterator<Item = RollOut>,
) -> Option<RollOut> {
    let spec = number(policy);
    let of = |(node, record): (&str, &Record)| {
        let watch = record.watch.as_ref().filter(|watch| watch.policy == policy.name)?;
        Some(watch.roll_out(Subject::Node(node.to_owned())))
    };
    let judged = |one: &RollOut| one.spec == spec && one.outcome != Outcome::Waiting;
    let found = records.filter_map(of).chain(workloads);
    let mut known: Vec<RollOut> = found.filter(judged).collect();
    known.extend(remembered(policy));
    known.into_iter().min_by_key(|one| !one.outcome.stops())
}

/// Records a verdict, with an event on the node. `None` if no verdict is to come.
pub fn conclude(seen: &Seen, outcome: Outcome, why: &str, now_ms: u64) -> Option<Write> {
    let record = seen.record.as_ref()?;
    let why = harmless(why).to_string();
    let watch = Watch { outcome, why, ..is_watched(record)?.clone() };
    let message = format!("latency after the change to {}: {}", record.to.words(), watch.words());
    let event = Some((reason(outcome), message, is_warning(outcome)));
    let next = Record { watch: Some(watch), ..record.clone() };
    let changed = Changed { is_tainted: seen.is_tainted(), clears: None, asked: None, event };
    Some(Write::new(seen, next, changed, now_ms))
}

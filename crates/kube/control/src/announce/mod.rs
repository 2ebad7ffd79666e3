//! What is written about pods, queues and groups, for people and for autoscalers: conditions,
//! events, statuses.
//!
//! [`Announcements`] keeps the book without wires: what each waiting pod is to say, what its object
//! says already, which events are owed. [`Statuses`] does so for queues and groups. All stand
//! behind the binds: what is announced is bounded, may come late, and is given up before a bind is.

mod announcements;
mod announcing;
mod body;
mod due;
mod request;
mod statuses;
mod written;

pub use announcements::{Announcements, Limits, WatchedPod};
pub(crate) use announcing::Announcing;
pub(crate) use body::{condition_patch, timestamp};
pub(crate) use request::request;
pub use statuses::{Statuses, WatchedStatus};
pub(crate) use written::judge;
pub use written::{WriteOutcome, WriteResult};

use dovetail_cluster::world::{LastingOwner, PodKey};
use dovetail_model::{IntervalAdvice, PreemptReason};
use dovetail_objects::Kind;
use dovetail_objects::labels::CHECKPOINT_INTERVAL;
use dovetail_units::amount::percent;
use dovetail_units::duration::duration;
use serde_json::Value;

use crate::status::WaitingReason;

/// The controller that announces, as events name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSource {
    /// Name of the scheduler, as pods name it.
    pub controller: String,
    pub instance: String,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnnouncedWrite {
    /// The condition `PodScheduled` of a pod that waits.
    Condition(Box<PodCondition>),
    /// An event, and how often it was tried before.
    Event(Box<Note>, u32),
    /// The status of an object that is no pod.
    Status(Box<StatusWrite>),
}

/// An object whose status is written: a queue, a reservation, or a native group of pods; or whose
/// receipt is: a group of any source, or a workload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatusOf {
    pub kind: Kind,
    /// Its namespace; empty for queues and reservations.
    pub namespace: String,
    pub name: String,
    /// Not its status, but what its annotations say of preemptions.
    pub is_receipt: bool,
}

impl StatusOf {
    /// That of a queue.
    pub fn queue(name: &str) -> Self {
        Self::of(Kind::Queue, "", name)
    }

    /// That of a reservation.
    pub fn reservation(name: &str) -> Self {
        Self::of(Kind::Reservation, "", name)
    }

    /// That of a native group of pods.
    pub fn group(namespace: &str, name: &str) -> Self {
        Self::of(Kind::PodGroup, namespace, name)
    }

    /// The receipt of an object.
    pub fn receipt(account: &LastingOwner) -> Self {
        let LastingOwner { kind, namespace, name, .. } = account;
        Self { is_receipt: true, ..Self::of(*kind, namespace, name) }
    }

    fn of(kind: Kind, namespace: &str, name: &str) -> Self {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Self { kind, namespace, name, is_receipt: false }
    }
}

/// A new status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusWrite {
    pub of: StatusOf,
    /// A JSON patch for queues and reservations, a strategic merge patch for groups, a merge patch
    /// for receipts. All name the identity, so that nothing is written about another object of the
    /// name.
    pub patch: Value,
}

/// The condition `PodScheduled` with status `False`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodCondition {
    pub pod: PodKey,
    /// The version of the pod that was seen waiting: of another version, which may have a node,
    /// nothing is said.
    pub resource_version: String,
    pub waiting: WaitingReason,
    /// When it began to wait, in milliseconds since 1970; `None` if its condition is false already.
    pub since_ms: Option<u64>,
}

/// An event about a pod, or about an object that describes pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub kind: Kind,
    /// The pod, or the other object.
    pub about: PodKey,
    /// Whether something is wrong.
    pub is_warning: bool,
    /// Why, in one word.
    pub reason: &'static str,
    /// What was done or tried.
    pub action: &'static str,
    /// What happened, for people.
    pub text: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What distinguishes it from other events of the object: the same event is never written
    /// twice.
    pub tag: String,
}

impl Note {
    /// The pod was given a node, in kube-scheduler's words.
    pub fn scheduled(pod: PodKey, node: &str, decision: &str, at_ms: u64) -> Self {
        let text = format!("Successfully assigned {}/{} to {node}", pod.namespace, pod.name);
        let (reason, action) = ("Scheduled", "Binding");
        Self {
            kind: Kind::Pod,
            about: pod,
            is_warning: false,
            reason,
            action,
            text,
            at_ms,
            tag: decision.to_owned(),
        }
    }

    /// The pod waits. kube-scheduler's word for pods that no node takes is `FailedScheduling`.
    pub fn waits(pod: PodKey, waiting: &WaitingReason, at_ms: u64) -> Self {
        let is_warning = waiting.is_trouble();
        let reason = if is_warning { "FailedScheduling" } else { waiting.word() };
        let (text, tag) = (waiting.message.clone(), waiting.message.clone());
        Self {
            kind: Kind::Pod,
            about: pod,
            is_warning,
            reason,
            action: "Scheduling",
            text,
            at_ms,
            tag,
        }
    }

    /// The pod is evicted for another one; for a higher priority in kube-scheduler's words.
    pub fn preempted(
        pod: PodKey,
        by: &PodKey,
        node: &str,
        reason: PreemptReason,
        at_ms: u64,
    ) -> Self {
        let uid = &by.uid;
        let (reason, action, why) = match reason {
            PreemptReason::Priority => ("Preempted", "Preempting", ""),
            PreemptReason::Reclaim => (
                "Reclaimed",
                "Evicting",
                ": the queue of that pod uses less than its quota, and the queue of this pod exceeds \
                 its own",
            ),
            PreemptReason::Order => (
                "Preempted",
                "Evicting",
                ": it has equal priority and is expected to finish much sooner",
            ),
        };
        let text = format!("Preempted by pod {by} ({uid}) on node {node}{why}");
        let tag = uid.to_string();
        Self { kind: Kind::Pod, about: pod, is_warning: false, reason, action, text, at_ms, tag }
    }

    /// The pod is evicted because its gang, as it is shown, is given up; `reason` is that of its
    /// condition.
    pub fn gang_given_up(pod: PodKey, gang: &str, reason: &'static str, at_ms: u64) -> Self {
        let text = format!(
            "{gang} stayed below its minimum size for too long: dovetail deletes its pods so that \
             it restarts as a whole"
        );
        let (action, tag) = ("Deleting", gang.to_owned());
        Self { kind: Kind::Pod, about: pod, is_warning: true, reason, action, text, at_ms, tag }
    }

    /// The API server refuses to evict another pod for this one, or does not answer (without code).
    pub fn not_evicted(
        about: PodKey,
        victim: &PodKey,
        code: Option<u16>,
        message: &str,
        at_ms: u64,
    ) -> Self {
        let PodKey { namespace, name, uid } = victim;
        let text = match code {
            Some(code) => format!(
                "pod {namespace}/{name} was not evicted to make room: the API server refused the \
                 eviction ({code}): {message}; dovetail tries to preempt other pods"
            ),
            None => format!(
                "whether pod {namespace}/{name} was evicted to make room is unknown: the API \
                 server did not respond: {message}; dovetail tries to preempt other pods"
            ),
        };
        let (reason, action) = ("FailedPreemption", "Preempting");
        let (kind, tag) = (Kind::Pod, format!("{uid} {} {message}", code.unwrap_or_default()));
        Self { kind, about, is_warning: true, reason, action, text, at_ms, tag }
    }

    /// The scheduler's account may not evict another pod for this one, nor any of its namespace.
    pub fn may_not_evict(about: PodKey, victim: &PodKey, message: &str, at_ms: u64) -> Self {
        let PodKey { namespace, name, uid } = victim;
        let text = format!(
            "pod {namespace}/{name} was not evicted to make room, nor was any other pod of \
             namespace {namespace}: the scheduler's service account lacks the permission (see \
             deploy/rbac.yaml), and dovetail retries: {message}"
        );
        let (reason, action) = ("FailedPreemption", "Preempting");
        let (kind, tag) = (Kind::Pod, format!("{uid} {message}"));
        Self { kind, about, is_warning: true, reason, action, text, at_ms, tag }
    }

    /// Disruption budgets do not allow the evictions without which the pod does not start.
    pub fn preemption_blocked(about: PodKey, why: &str, at_ms: u64) -> Self {
        let (reason, action) = ("FailedPreemption", "Preempting");
        let (kind, text, tag) = (Kind::Pod, why.to_owned(), why.to_owned());
        Self { kind, about, is_warning: true, reason, action, text, at_ms, tag }
    }

    /// The pod is not placed at all, whatever nodes there are.
    pub fn left_untouched(pod: PodKey, why: &str, at_ms: u64) -> Self {
        let (reason, action) = ("FailedScheduling", "Scheduling");
        let (text, tag) = (why.to_owned(), why.to_owned());
        Self { kind: Kind::Pod, about: pod, is_warning: true, reason, action, text, at_ms, tag }
    }

    /// How long a pod runs, or what stopping it costs, cannot be read.
    pub fn run_time_unreadable(about: PodKey, problem: &str, at_ms: u64) -> Self {
        let (reason, action) = ("UnreadableRunTime", "Scheduling");
        let text = format!("{problem}: the annotation is ignored");
        let (kind, is_warning, tag) = (Kind::Pod, true, problem.to_owned());
        Self { kind, about, is_warning, reason, action, text, at_ms, tag }
    }

    /// A job declares an interval between checkpoints that loses much more than another one would.
    pub fn interval_far_off(of: &LastingOwner, advice: &IntervalAdvice, at_ms: u64) -> Self {
        let LastingOwner { kind, namespace, name, uid } = of.clone();
        let IntervalAdvice { declared_ms, best_ms, between_ms, lost_declared, lost_best } = *advice;
        let [declared, best, between] = [declared_ms, best_ms, between_ms].map(duration);
        let [lost, least] = [lost_declared, lost_best].map(percent);
        let text = format!(
            "The job is preempted about once per {between} of run time. With a checkpoint every \
             {declared}, it loses about {lost} of its run time; with a checkpoint every {best}, it \
             would lose about {least} (Daly 2006). Change the checkpoint interval and the \
             annotation {CHECKPOINT_INTERVAL}."
        );
        let (reason, action) = ("CheckpointIntervalFarOff", "Preempting");
        let (about, tag) = (PodKey { namespace, name, uid }, best);
        Self { kind, about, is_warning: false, reason, action, text, at_ms, tag }
    }

    /// A Job or JobSet is suspended in place of evicting its pods, for this reason, or resumed
    /// after that.
    pub fn job_turned(of: &LastingOwner, suspended: Option<PreemptReason>, at_ms: u64) -> Self {
        let LastingOwner { kind, namespace, name, uid } = of.clone();
        let (reason, action, text) = match suspended {
            Some(PreemptReason::Reclaim) => (
                "Reclaimed",
                "Suspending",
                "Suspended to return quota to another queue: the queue of this workload exceeds its \
                 own quota. dovetail resumes the workload when its pods have terminated",
            ),
            Some(PreemptReason::Order | PreemptReason::Priority) => (
                "Preempted",
                "Suspending",
                "Suspended for a pod of equal priority that is expected to finish much sooner. \
                 dovetail resumes the workload when its pods have terminated",
            ),
            None => (
                "Resumed",
                "Resuming",
                "The pods have terminated: dovetail resumes the workload, and its new pods stay \
                 pending until they fit",
            ),
        };
        let (about, tag) = (PodKey { namespace, name, uid }, at_ms.to_string());
        let text = text.to_owned();
        Self { kind, about, is_warning: false, reason, action, text, at_ms, tag }
    }

    /// What describes pods that start together contradicts them or itself: none of them is placed.
    pub fn contradiction(kind: Kind, about: PodKey, why: &str, at_ms: u64) -> Self {
        let (reason, action) = ("FailedScheduling", "Scheduling");
        let (text, tag) = (why.to_owned(), why.to_owned());
        Self { kind, about, is_warning: true, reason, action, text, at_ms, tag }
    }
}

//! What follows for a workload that is to ask for another resource, or that has been changed so.
//!
//! One workload of a guarded policy changes at a time. Everything is in its annotation, so a
//! process that dies between two writes is continued by the next one.

use dovetail_objects::harmless;

use crate::owner::Owner;
use crate::policy::SharingPolicy;
use crate::requests_record::{RequestsRecord, RequestsStep};
use crate::requests_write::RequestsWrite;
use crate::watch::{Gate, Outcome, Period, RollOut, Subject, Watch, is_warning, reason};

/// What is known of a cluster about one workload that is to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Around {
    /// Units of the resource that are free on nodes which take the pods, up to one a pod.
    pub free: u64,
    /// Who undoes a change, and where it belongs: the manifest is written by a tool.
    pub tool: Option<String>,
    /// Why the guard lets no workload change now.
    pub held: Option<String>,
}

/// What follows for a workload.
#[derive(Clone, Debug, PartialEq)]
pub enum NextRequests {
    /// It asks for the resource already.
    Unchanged,
    /// It may not change; what to do.
    Refused(String),
    /// It may change later; why not now.
    Waits(String),
    /// Its manifest is to be changed by people; why.
    Manifest(String),
    Write(Box<RequestsWrite>),
}

/// What follows if a workload is to ask for a resource that a policy allows.
pub fn change(
    owner: &Owner,
    to: &str,
    policy: &SharingPolicy,
    around: &Around,
    now_ms: u64,
) -> NextRequests {
    let (container, from) = match owner.asks() {
        Ok(asks) => asks,
        Err(why) => return NextRequests::Refused(why),
    };
    if from == to {
        return NextRequests::Unchanged;
    }
    if owner.is_paused() {
        return NextRequests::Refused("it is paused: resume its rollout first".to_owned());
    }
    if let Some(why) = short_of(owner, to, around.free) {
        return NextRequests::Refused(why);
    }
    if let Some(tool) = &around.tool {
        return NextRequests::Manifest(tool.clone());
    }
    if let Some(why) = &around.held {
        return NextRequests::Waits(why.clone());
    }
    let watch = Watch::of(policy);
    let record = RequestsRecord {
        step: match watch {
            Some(_) => RequestsStep::Rolling,
            None => RequestsStep::Changed,
        },
        container: container.name.clone(),
        from: from.to_owned(),
        to: to.to_owned(),
        has_requests: container.has_requests,
        policy: policy.name.clone(),
        started_ms: now_ms,
        since_ms: now_ms,
        watch,
    };
    let message = format!(
        "container {} requests one {to} instead of {from}, under policy {}",
        record.container, policy.name
    );
    let event = Some(("RequestsChanged", message, false));
    NextRequests::Write(Box::new(RequestsWrite::new(owner, record, event)))
}

/// Why pods would end although their replacements cannot start.
fn short_of(owner: &Owner, resource: &str, free: u64) -> Option<String> {
    let why = owner.ends_pods()?;
    (free < owner.replicas).then(|| {
        format!(
            "{why}, and only {free} of {} {resource} are free for its pods: create them first (`dovetail \
             partition plan`), or use RollingUpdate with maxUnavailable 0",
            owner.replicas
        )
    })
}

/// Begins the watch over a workload all of whose pods have been replaced. `None` if that is not so,
/// or if others have changed it since.
pub fn rolled(owner: &Owner, now_ms: u64) -> Option<RequestsWrite> {
    let record = owner.record.as_ref().filter(|record| record.step == RequestsStep::Rolling)?;
    (owner.is_as_recorded() && owner.has_rolled()).then(|| {
        let record =
            RequestsRecord { step: RequestsStep::Changed, since_ms: now_ms, ..record.clone() };
        RequestsWrite::new(owner, record, None)
    })
}

/// The periods to compare of a workload whose verdict is due: before the change and after it.
pub fn due(owner: &Owner, now_ms: u64) -> Option<[Period; 2]> {
    let record = owner.record.as_ref().filter(|record| record.is_open())?;
    let watch = record.watch.as_ref()?;
    let is_due = record.step == RequestsStep::Changed
        && owner.is_as_recorded()
        && watch.is_over(record.since_ms, now_ms);
    let before = || watch.before(record.started_ms, record.since_ms);
    is_due.then(|| [before(), watch.after(record.since_ms)])
}

/// Records a verdict. `None` if none is to come.
pub fn decided(owner: &Owner, outcome: Outcome, why: &str) -> Option<RequestsWrite> {
    let record = owner.record.as_ref().filter(|record| record.is_open())?;
    let watch = Watch { outcome, why: harmless(why).to_string(), ..record.watch.clone()? };
    let message = format!("latency since it requests {}: {}", record.to, watch.words());
    let event = Some((reason(outcome), message, is_warning(outcome)));
    let record = RequestsRecord { watch: Some(watch), ..record.clone() };
    owner.is_as_recorded().then(|| RequestsWrite::new(owner, record, event))
}

/// What follows for a workload whose latency got worse. `None` if that is not so, or if others have
/// changed what it asks for.
pub fn returned(owner: &Owner, around: &Around, now_ms: u64) -> Option<NextRequests> {
    let record = owner.record.as_ref().filter(|record| record.returns())?;
    if !owner.is_as_recorded() {
        return None;
    }
    if let Some(tool) = &around.tool {
        return Some(NextRequests::Manifest(tool.clone()));
    }
    if let Some(why) = short_of(owner, &record.from, around.free) {
        return Some(NextRequests::Waits(why));
    }
    Some(NextRequests::Write(Box::new(back(owner, record, "latency got worse", now_ms))))
}

/// What follows if people want a workload to ask for its former resource again.
pub fn roll_back(owner: &Owner, around: &Around, now_ms: u64) -> NextRequests {
    let Some(record) = &owner.record else {
        let why = "dovetail has not changed its requests: nothing to roll back";
        return NextRequests::Refused(why.to_owned());
    };
    if record.step == RequestsStep::Returned && owner.is_as_recorded() {
        return NextRequests::Unchanged;
    }
    if owner.containers.iter().all(|one| one.name != record.container) {
        let why = format!("container {} no longer requests a GPU", record.container);
        return NextRequests::Refused(format!("{why}: nothing to roll back"));
    }
    if let Some(tool) = &around.tool {
        return NextRequests::Manifest(tool.clone());
    }
    if let Some(why) = short_of(owner, &record.from, around.free) {
        return NextRequests::Refused(why);
    }
    let is_judged = |watch: &Watch| watch.outcome == Outcome::Worse;
    let watch = record.watch.as_ref().map(|watch| match is_judged(watch) {
        true => watch.clone(),
        false => Watch {
            outcome: Outcome::RolledBack,
            why: "rolled back by a user".to_owned(),
            ..watch.clone()
        },
    });
    let record = RequestsRecord { watch, ..record.clone() };
    NextRequests::Write(Box::new(back(owner, &record, "rolled back by a user", now_ms)))
}

fn back(owner: &Owner, record: &RequestsRecord, why: &str, now_ms: u64) -> RequestsWrite {
    let message = format!(
        "container {} again requests one {} instead of {}: {why}",
        record.container, record.from, record.to
    );
    let record =
        RequestsRecord { step: RequestsStep::Returned, since_ms: now_ms, ..record.clone() };
    RequestsWrite::new(owner, record, Some(("RequestsReturned", message, false)))
}

/// What came of workloads that stop the roll-out of a policy.
pub fn stopped_by<'o>(
    policy: &SharingPolicy,
    owners: impl Iterator<Item = &'o Owner>,
) -> impl Iterator<Item = RollOut> {
    owners.filter_map(|owner| {
        let watch = owner.record.as_ref()?.watch.as_ref();
        let watch = watch.filter(|watch| watch.policy == policy.name && watch.outcome.stops())?;
        Some(watch.roll_out(Subject::Workload(owner.words())))
    })
}

/// What changed workloads let happen under a policy; `None` if nothing stands against it.
/// `is_of_nodes`: whether it is asked for nodes. Those may change while the pods of a workload are
/// replaced: its new pods may wait for that.
pub fn gate_of_workloads<'o>(
    policy: &SharingPolicy,
    owners: impl Iterator<Item = &'o Owner>,
    is_of_nodes: bool,
) -> Option<Gate> {
    policy.spec.guard.as_ref()?;
    let mut waits = None;
    for owner in owners {
        let Some(record) = &owner.record else { continue };
        let Some(watch) = &record.watch else { continue };
        let workload = Subject::Workload(owner.words());
        if watch.is_of(policy) && watch.outcome.stops() {
            let (outcome, why) = (watch.outcome, watch.why.clone());
            return Some(Gate::Stopped { by: workload, outcome, why });
        }
        let is_rolling = record.step == RequestsStep::Rolling;
        let is_watched = record.is_open() && !(is_of_nodes && is_rolling);
        // What others have changed is not judged.
        if watch.policy == policy.name && is_watched && owner.is_as_recorded() {
            waits = Some(Gate::Waits(workload));
        }
    }
    waits
}

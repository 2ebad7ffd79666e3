//! What a pod or a gang waits for, what keeps it off the nodes, and the smallest changes that would
//! help.

use dovetail_cluster::world::World;
use dovetail_model::{JobId, PodId};
use dovetail_objects::Pod;
use dovetail_plan::explain::Relaxation;
use dovetail_translate::unreadable_run_time;
use dovetail_units::amount::counted;
use serde::Serialize;

use super::gang::{GangLine, state_of};
use super::line::{InLine, line};
use super::not_in_line::{waits_for_quota, waits_for_reservation, why_not_started};
use super::reservations::{ReservationLine, of_job};
use super::starts::starts;
use super::turn::{TurnLine, turn};
use crate::schedule::Scheduler;
use crate::status::{COULD_NOT_START, Obstacle, WAITING_FOR_DEVICES, WAITING_FOR_VOLUMES};

/// Which pod or gang is asked about.
#[derive(Clone, Debug)]
pub struct PodQuestion {
    /// Its name, perhaps behind its kind or its namespace and a `/`.
    pub name: String,
    /// Its namespace, if that was said.
    pub namespace: Option<String>,
    /// Its namespace if nothing is said of it.
    pub default_namespace: String,
}

/// How it is with a pod.
#[derive(Clone, Debug, Serialize)]
pub struct Why {
    /// Namespace and name.
    pub name: String,
    /// How it is, in one word.
    pub state: &'static str,
    /// How it is, for people.
    pub message: String,
    /// The node it is on, or would get now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Its place in its queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_line: Option<InLine>,
    /// Jobs that wait in its queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_length: Option<usize>,
    /// What is compared with other pending jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gang: Option<GangLine>,
    /// What keeps its pods off the nodes at this moment, per pod set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub obstacles: Vec<Vec<Obstacle>>,
    /// Minimal sets of constraints, of one and of two, without which it would start now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relaxations: Option<Vec<Vec<Relaxation>>>,
    /// Whether it could start if nobody held anything, its queue aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fits_when_all_is_free: Option<bool>,
    /// Reservations that it may use, or will.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<ReservationLine>,
    /// What is wrong with the first annotation or label of its pods that is ignored for that: about
    /// run times, time limits, checkpoints and preemptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored_annotation: Option<String>,
}

impl Why {
    /// How it is with the pod or gang of this name, and nothing more.
    fn plain(name: &str, state: &'static str, message: String) -> Self {
        Self {
            name: name.to_owned(),
            state,
            message,
            node: None,
            in_line: None,
            line_length: None,
            turn: None,
            gang: None,
            obstacles: Vec::new(),
            relaxations: None,
            fits_when_all_is_free: None,
            reservations: Vec::new(),
            ignored_annotation: None,
        }
    }
}

/// Namespace and name. What stands before a `/` is a kind, as for kubectl, or the namespace, as
/// dovetail itself writes names, if only that leads to something.
fn meant<'q>(world: &World, question: &'q PodQuestion) -> (&'q str, &'q str) {
    let PodQuestion { name, namespace, default_namespace } = question;
    let (before, name) = name.rsplit_once('/').unwrap_or(("", name));
    let is_there = |namespace: &str| {
        world.pods().pod(namespace, name).is_some()
            || world.gangs().look_at_gang(namespace, name).is_some()
    };
    let own = namespace.as_deref().unwrap_or(default_namespace);
    match namespace.is_none() && !is_there(own) && is_there(before) {
        true => (before, name),
        false => (own, name),
    }
}

/// Why a pod or a gang is pending, or how else it is; `None` if there is none of the name.
pub(super) fn why(
    question: &PodQuestion,
    ours: &str,
    now_ms: u64,
    scheduler: &mut Scheduler,
) -> Option<Why> {
    let (namespace, name) = meant(scheduler.world(), question);
    let full_name = format!("{namespace}/{name}");
    let line = line(now_ms, scheduler);
    let world = scheduler.world();
    let look = world.gangs().look_at_gang(namespace, name);
    let mut gang = look.as_ref().map(|look| GangLine::of(look, world));
    let pod = world.pods().pod(namespace, name);
    let members = || look.iter().flat_map(|look| &look.members).map(|member| member.pod);
    let ignored = pod.into_iter().chain(members()).find_map(|pod| ignored_annotation(ours, pod));
    let told = |state, message: String| Why {
        ignored_annotation: ignored.clone(),
        ..Why::plain(&full_name, state, message)
    };
    // A gang of another scheduler is its business, as each of the pods is.
    let is_foreign = |pod: &&Pod| *pod.scheduler != *ours && pod.node.is_empty();
    let asked = pod.or_else(|| members().next().filter(is_foreign));
    if let Some((state, message)) = asked.and_then(|pod| without_job(scheduler.world(), ours, pod))
    {
        let node = pod.map(|pod| pod.node.to_string()).filter(|node| !node.is_empty());
        return Some(Why { node, gang, ..told(state, message) });
    }
    let job = world.pods().job_of(namespace, name).or_else(|| gang.as_ref()?.job);
    if let Some(in_line) = line.iter().find(|in_line| job == Some(in_line.id)) {
        let said = (in_line.reason, in_line.message.as_str());
        let message = scheduler.ask().with_budgets(in_line.id, said);
        let same_queue = line.iter().filter(|other| other.queue == in_line.queue).count();
        let (obstacles, relaxations) = explained(in_line.id, scheduler);
        if let Some(gang) = &mut gang {
            gang.fitting_pods = scheduler.ask().fitting(in_line.id);
        }
        let expected_start = starts(now_ms, scheduler).remove(&in_line.id);
        return Some(Why {
            in_line: Some(InLine { expected_start, ..in_line.clone() }),
            line_length: Some(same_queue),
            turn: turn(in_line.id, now_ms, scheduler),
            gang,
            obstacles,
            relaxations,
            fits_when_all_is_free: scheduler.ask().fits_when_all_is_free(in_line.id),
            reservations: of_job(in_line.id, scheduler),
            ..told("waits", message)
        });
    }
    match (job, gang) {
        (None, None) => None,
        (None, Some(gang)) => {
            let (state, message) = gang.without_job();
            Some(Why { gang: Some(gang), ..told(state, message) })
        }
        (Some(job), gang) => Some(fits(scheduler, job, (namespace, name), gang, told)),
    }
}

/// What is wrong with an annotation or a label of a pod of ours that is ignored for that.
fn ignored_annotation(ours: &str, pod: &Pod) -> Option<String> {
    if *pod.scheduler == *ours { unreadable_run_time(pod) } else { None }
}

/// What the scheduler of these settings would start at this moment.
fn fits(
    scheduler: &Scheduler,
    job: JobId,
    (namespace, name): (&str, &str),
    gang: Option<GangLine>,
    told: impl Fn(&'static str, String) -> Why,
) -> Why {
    let world = scheduler.world();
    let is_it = |pod: &PodId| {
        let meta = world.pods().pod_of(*pod).map(|pod| &pod.meta);
        meta.is_some_and(|meta| *meta.name == *name && *meta.namespace == *namespace)
    };
    let ids = scheduler.engine().map(|engine| engine.list().pods_of(job)).unwrap_or_default();
    let its_own = ids.iter().find(|pod| is_it(pod)).and_then(|pod| world.pods().assumed_on(*pod));
    let node = its_own.map(|node| node.to_string());
    if let Some(failed) = could_not_start(world, &ids, is_it) {
        return Why { node, gang, ..told("not_started", failed) };
    }
    // A scheduler holds other nodes than those of the decision that was taken here, or none.
    let undecided = |gang: Option<GangLine>| gang.map(GangLine::without_nodes);
    if let Some(waits) = waits_for_volumes(world, &ids, is_it) {
        return Why { gang: undecided(gang), ..told("waits_for_volumes", waits) };
    }
    if let Some(doubtful) = may_not_be_so(world, &ids) {
        return Why { gang: undecided(gang), ..told("waits", doubtful) };
    }
    let message = match (&node, &gang) {
        (Some(node), None) => format!("it fits: it would now be placed on node {node}"),
        (_, Some(gang)) if gang.count("fits") > 0 => {
            let (pods, nodes) = (counted(gang.count("fits") as u64, "pod"), gang.nodes());
            format!("it fits: {pods} of {} would now start, on {nodes}", gang.name)
        }
        _ => "dovetail has not processed it yet".to_owned(),
    };
    Why { node, gang, ..told("fits", message) }
}

/// That what fits waits for volumes: what the pod itself says of that, or the first of its gang
/// that says so.
fn waits_for_volumes(
    world: &World,
    pods: &[PodId],
    is_it: impl Fn(&PodId) -> bool,
) -> Option<String> {
    let says = |pod: &PodId| {
        let said = why_not_started(world.pods().pod_of(*pod)?);
        let waits = |word: &str| word == WAITING_FOR_VOLUMES || word == WAITING_FOR_DEVICES;
        said.filter(|(word, _)| waits(word)).map(|(_, message)| message.to_owned())
    };
    let itself = pods.iter().filter(|pod| is_it(pod)).find_map(says);
    itself.or_else(|| pods.iter().find_map(says))
}

/// That a scheduler may know more than is known here: room that it keeps for lost members of gangs,
/// and the bounds of queues that are deleted, which count for it as they were. Neither is in any
/// object.
fn may_not_be_so(world: &World, pods: &[PodId]) -> Option<String> {
    let kept = pods.iter().find_map(|pod| waits_for_reservation(world.pods().pod_of(*pod)?));
    if let Some(kept) = kept {
        return Some(format!(
            "{kept} (reported by the scheduler); no object records which capacity is reserved, and without the \
             reservation the pod would start now"
        ));
    }
    let missing: Vec<String> =
        world.queues().missing().into_iter().map(|queue| queue.name).collect();
    let said = pods.iter().find_map(|pod| waits_for_quota(world.pods().pod_of(*pod)?));
    let (_, said) = said.filter(|_| !missing.is_empty())?;
    let queues = match missing.as_slice() {
        [one] => format!("deleted queue {one}"),
        _ => format!("deleted queues {}", missing.join(", ")),
    };
    Some(format!(
        "{said} (reported by the scheduler); the quota of {queues} is unknown, and without it the pod would start now"
    ))
}

/// That a scheduler tried to start what fits, and why it could not: what the pod itself says of
/// that, or the first of its gang that says so.
fn could_not_start(
    world: &World,
    pods: &[PodId],
    is_it: impl Fn(&PodId) -> bool,
) -> Option<String> {
    let says = |pod: &PodId| {
        let pod = world.pods().pod_of(*pod)?;
        let says = pod.unscheduled.as_ref().filter(|says| *says.reason == *COULD_NOT_START)?;
        Some((pod, &*says.message))
    };
    let itself = pods.iter().filter(|pod| is_it(pod)).find_map(says);
    let (pod, message) = itself.or_else(|| pods.iter().find_map(says))?;
    let which = match itself {
        Some(_) => "it fits, but it could not start".to_owned(),
        None => format!("it fits, but its pod {} could not start", pod.meta.name),
    };
    Some(format!("{which}: {message}"))
}

/// What there is to say of a pod that the engine does not place.
fn without_job(world: &World, ours: &str, pod: &Pod) -> Option<(&'static str, String)> {
    if pod.is_over() {
        return Some(("over", "it has ended".to_owned()));
    }
    if !pod.node.is_empty() {
        let ending = if pod.meta.is_deleting() { "it is terminating on" } else { "it is on" };
        return Some(("placed", format!("{ending} node {}", pod.node)));
    }
    if *pod.scheduler != *ours {
        let text = format!("its spec.schedulerName is {}, not {ours}", pod.scheduler);
        return Some(("not_ours", text));
    }
    if pod.meta.is_deleting() {
        return Some(("ending", "it is being deleted".to_owned()));
    }
    if pod.gated {
        return Some(("gated", "scheduling gates block it".to_owned()));
    }
    let (namespace, name) = (&pod.meta.namespace, &pod.meta.name);
    let refused = world.pods().left_untouched(namespace, name)?;
    Some((state_of(refused), refused.to_string()))
}

fn explained(
    job: JobId,
    scheduler: &mut Scheduler,
) -> (Vec<Vec<Obstacle>>, Option<Vec<Vec<Relaxation>>>) {
    let Some(waiting) = scheduler.ask().why(job) else { return (Vec::new(), None) };
    (scheduler.ask().obstacles(job), Some(waiting.relaxations))
}

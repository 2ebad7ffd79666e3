//! `dovetail why`: what a pod waits for, what keeps it off the nodes, and the smallest changes that
//! would help.

use anyhow::Result;
use dovetail_console::app::App;
use dovetail_console::style::Stream;
use dovetail_console::table::{facts, wrapped};
use dovetail_control::status::{COULD_NOT_START, Obstacle, WAITING_FOR_VOLUMES};
use dovetail_model::{JobId, PodId};
use dovetail_objects::{Pod, harmless};
use dovetail_plan::explain::Relaxation;
use dovetail_settings::errors::UsageError;
use dovetail_settings::form::Output;
use dovetail_units::duration::duration;
use serde::Serialize;

use crate::Seen;
use crate::gang::{GangLine, state_of};
use crate::line::{InLine, line};
use crate::not_in_line::{waits_for_kept_room, waits_for_quota, why_not_started};

/// How it is with a pod.
#[derive(Debug, Serialize)]
struct Why {
    /// Namespace and name.
    name: String,
    /// How it is, in one word.
    state: &'static str,
    /// How it is, for people.
    message: String,
    /// The node it is on, or would get now.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// Its place in its queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_line: Option<InLine>,
    /// Jobs that wait in its queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    line_length: Option<usize>,
    /// The gang that it is, or is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    gang: Option<GangLine>,
    /// What keeps its pods off the nodes at this moment, per pod set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    obstacles: Vec<Vec<Obstacle>>,
    /// Minimal sets of constraints, of one and of two, without which it would start now.
    #[serde(skip_serializing_if = "Option::is_none")]
    relaxations: Option<Vec<Vec<Relaxation>>>,
    /// Whether it could start if nobody held anything, its queue aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    fits_when_all_is_free: Option<bool>,
}

/// Prints why a pod or a gang is pending, in this namespace or the connection's.
///
/// # Errors
/// A name that nothing has, a form that the command lacks, and output that cannot be written.
pub fn answer(app: &App, seen: &mut Seen, name: &str, namespace: Option<&str>) -> Result<()> {
    let output = app.output("why")?;
    let (namespace, name) = meant(seen, name, namespace);
    let why = why(seen, &namespace, name)?;
    match output {
        Output::Json => app.print_json(&why),
        _ => app.print(&text(app, &why)),
    }
}

/// Namespace and name. What stands before a `/` is a kind, as for kubectl, or the namespace, as
/// dovetail itself writes names, if only that leads to something.
fn meant<'f>(seen: &Seen, asked: &'f str, namespace: Option<&str>) -> (String, &'f str) {
    let (before, name) = asked.rsplit_once('/').unwrap_or(("", asked));
    let world = seen.scheduler.world();
    let is_there = |namespace: &str| {
        world.pods().pod(namespace, name).is_some()
            || world.gangs().look_at_gang(namespace, name).is_some()
    };
    let own = namespace.unwrap_or(&seen.namespace).to_owned();
    match namespace.is_none() && !is_there(&own) && is_there(before) {
        true => (before.to_owned(), name),
        false => (own, name),
    }
}

fn why(seen: &mut Seen, namespace: &str, name: &str) -> Result<Why> {
    let full_name = format!("{namespace}/{name}");
    let told = |state, message: String| Why {
        name: full_name.clone(),
        state,
        message,
        node: None,
        in_line: None,
        line_length: None,
        gang: None,
        obstacles: Vec::new(),
        relaxations: None,
        fits_when_all_is_free: None,
    };
    let line = line(&mut seen.scheduler, seen.now_ms);
    let world = seen.scheduler.world();
    let look = world.gangs().look_at_gang(namespace, name);
    let mut gang = look.as_ref().map(|look| GangLine::of(look, world));
    let pod = world.pods().pod(namespace, name);
    // A gang of another scheduler is its business, as each of the pods is.
    let is_foreign = |pod: &&Pod| *pod.scheduler != *seen.scheduler_name && pod.node.is_empty();
    let of_gang = look.iter().flat_map(|look| &look.members).map(|member| member.pod).next();
    let asked = pod.or_else(|| of_gang.filter(is_foreign));
    if let Some((state, message)) = asked.and_then(|pod| without_job(seen, pod)) {
        let node = pod.map(|pod| pod.node.to_string()).filter(|node| !node.is_empty());
        return Ok(Why { node, gang, ..told(state, message) });
    }
    let job = world.pods().job_of(namespace, name).or_else(|| gang.as_ref()?.job);
    if let Some(in_line) = line.iter().find(|in_line| job == Some(in_line.id)) {
        let message = in_line.message.clone();
        let same_queue = line.iter().filter(|other| other.queue == in_line.queue).count();
        let (obstacles, relaxations) = explained(seen, in_line.id);
        if let Some(gang) = &mut gang {
            gang.fitting_pods = seen.scheduler.fitting(in_line.id);
        }
        return Ok(Why {
            in_line: Some(in_line.clone()),
            line_length: Some(same_queue),
            gang,
            obstacles,
            relaxations,
            fits_when_all_is_free: seen.scheduler.fits_when_all_is_free(in_line.id),
            ..told("waits", message)
        });
    }
    match (job, gang) {
        (None, None) => {
            let text =
                format!("no pod and no gang {name} in namespace {namespace}: name another with -n");
            Err(UsageError(text).into())
        }
        (None, Some(gang)) => {
            let (state, message) = gang.without_job();
            Ok(Why { gang: Some(gang), ..told(state, message) })
        }
        (Some(job), gang) => Ok(fits(seen, job, (namespace, name), gang, told)),
    }
}

/// What the scheduler of these settings would start at this moment.
fn fits(
    seen: &Seen,
    job: JobId,
    (namespace, name): (&str, &str),
    gang: Option<GangLine>,
    told: impl Fn(&'static str, String) -> Why,
) -> Why {
    let world = seen.scheduler.world();
    let is_it = |pod: &PodId| {
        let meta = world.pods().pod_of(*pod).map(|pod| &pod.meta);
        meta.is_some_and(|meta| *meta.name == *name && *meta.namespace == *namespace)
    };
    let ids = seen.scheduler.engine().map(|engine| engine.list().pods_of(job)).unwrap_or_default();
    let its_own = ids.iter().find(|pod| is_it(pod)).and_then(|pod| world.pods().assumed_on(*pod));
    let node = its_own.map(|node| node.to_string());
    if let Some(failed) = could_not_start(seen, &ids, is_it) {
        return Why { node, gang, ..told("not_started", failed) };
    }
    // A scheduler holds other nodes than those of the decision that was taken here, or none.
    let undecided = |gang: Option<GangLine>| gang.map(GangLine::without_nodes);
    if let Some(waits) = waits_for_volumes(seen, &ids, is_it) {
        return Why { gang: undecided(gang), ..told("waits_for_volumes", waits) };
    }
    if let Some(doubtful) = may_not_be_so(seen, &ids) {
        return Why { gang: undecided(gang), ..told("waits", doubtful) };
    }
    let message = match (&node, &gang) {
        (Some(node), None) => format!("it fits: at this moment it would be given node {node}"),
        (_, Some(gang)) if gang.count("fits") > 0 => {
            let (pods, nodes) = (gang.count("fits"), gang.nodes());
            format!("it fits: at this moment {pods} pods of {} would start, on {nodes}", gang.name)
        }
        _ => "it is not decided about yet".to_owned(),
    };
    Why { node, gang, ..told("fits", message) }
}

/// That what fits waits for volumes: what the pod itself says of that, or the first of its gang
/// that says so.
fn waits_for_volumes(
    seen: &Seen,
    pods: &[PodId],
    is_it: impl Fn(&PodId) -> bool,
) -> Option<String> {
    let says = |pod: &PodId| {
        let said = why_not_started(seen.scheduler.world().pods().pod_of(*pod)?);
        said.filter(|(word, _)| *word == WAITING_FOR_VOLUMES).map(|(_, message)| message.to_owned())
    };
    let itself = pods.iter().filter(|pod| is_it(pod)).find_map(says);
    itself.or_else(|| pods.iter().find_map(says))
}

/// That a scheduler may know more than is known here: room that it keeps for lost members of gangs,
/// and the bounds of queues that are deleted, which count for it as they were. Neither is in any
/// object.
fn may_not_be_so(seen: &Seen, pods: &[PodId]) -> Option<String> {
    let world = seen.scheduler.world();
    let kept = pods.iter().find_map(|pod| waits_for_kept_room(world.pods().pod_of(*pod)?));
    if let Some(kept) = kept {
        return Some(format!(
            "{kept}, as a scheduler says; which room it keeps is in no object, and without that it would start now"
        ));
    }
    let missing: Vec<String> =
        world.queues().missing().into_iter().map(|queue| queue.name).collect();
    let said = pods.iter().find_map(|pod| waits_for_quota(world.pods().pod_of(*pod)?));
    let (_, said) = said.filter(|_| !missing.is_empty())?;
    let (queues, were) = match missing.as_slice() {
        [one] => (format!("deleted queue {one}"), "was"),
        _ => (format!("deleted queues {}", missing.join(", ")), "were"),
    };
    Some(format!(
        "{said}, as a scheduler says; what {queues} {were} given is not known here, and without that it would start now"
    ))
}

/// That a scheduler tried to start what fits, and why it could not: what the pod itself says of
/// that, or the first of its gang that says so.
fn could_not_start(seen: &Seen, pods: &[PodId], is_it: impl Fn(&PodId) -> bool) -> Option<String> {
    let world = seen.scheduler.world();
    let says = |pod: &PodId| {
        let pod = world.pods().pod_of(*pod)?;
        let says = pod.unscheduled.as_ref().filter(|says| *says.reason == *COULD_NOT_START)?;
        Some((pod, &*says.message))
    };
    let itself = pods.iter().filter(|pod| is_it(pod)).find_map(says);
    let (pod, message) = itself.or_else(|| pods.iter().find_map(says))?;
    let which = match itself {
        Some(_) => "it fits, and it could not start".to_owned(),
        None => format!("it fits, and its pod {} could not start", pod.meta.name),
    };
    Some(format!("{which}: {message}"))
}

/// What there is to say of a pod that the engine does not place.
fn without_job(seen: &Seen, pod: &Pod) -> Option<(&'static str, String)> {
    let ours = &*seen.scheduler_name;
    if pod.is_over() {
        return Some(("over", "it has ended".to_owned()));
    }
    if !pod.node.is_empty() {
        let ending = if pod.meta.is_deleting() { "it is ending on" } else { "it is on" };
        return Some(("placed", format!("{ending} node {}", pod.node)));
    }
    if *pod.scheduler != *ours {
        let text = format!("it is for scheduler {}, not for {ours}", pod.scheduler);
        return Some(("not_ours", text));
    }
    if pod.meta.is_deleting() {
        return Some(("ending", "it is being deleted".to_owned()));
    }
    if pod.gated {
        return Some(("gated", "scheduling gates keep it from being placed".to_owned()));
    }
    let (namespace, name) = (&pod.meta.namespace, &pod.meta.name);
    let refused = seen.scheduler.world().pods().left_untouched(namespace, name)?;
    Some((state_of(refused), refused.to_string()))
}

fn explained(seen: &mut Seen, job: JobId) -> (Vec<Vec<Obstacle>>, Option<Vec<Vec<Relaxation>>>) {
    let Some(waiting) = seen.scheduler.why(job) else { return (Vec::new(), None) };
    (seen.scheduler.obstacles(job), Some(waiting.relaxations))
}

fn text(app: &App, why: &Why) -> String {
    let mut text = format!("{}\n\n", app.style(Stream::Result).strong(&why.name));
    let Some(job) = &why.in_line else {
        text += &wrapped(&harmless(&why.message), 0);
        return text + &members(why);
    };
    text += &wrapped(&harmless(&format!("waits: {}", why.message)), 0);
    let length = why.line_length.unwrap_or_default();
    text.push('\n');
    text += &facts(vec![
        ("reason", job.reason.to_owned()),
        ("queue", harmless(&job.queue).into_owned()),
        ("place in queue", format!("{} of {length}", job.place)),
        ("priority", job.priority.to_string()),
        ("waited", duration(job.waited_ms)),
    ]);
    let several = why.obstacles.len() > 1;
    for (at, obstacles) in why.obstacles.iter().enumerate().filter(|(_, all)| !all.is_empty()) {
        let of = if several { format!(" (pod set {})", at + 1) } else { String::new() };
        text += &format!("\nkept off the nodes by{of}\n");
        for Obstacle { nodes, reason } in obstacles {
            text += &format!("  {nodes:>6}  {reason}\n");
        }
    }
    match why.relaxations.as_deref() {
        Some([]) => {
            text.push('\n');
            text += &wrapped(without_relaxation(job.reason, why.fits_when_all_is_free), 0);
        }
        Some(all) => {
            text += "\nit would start now without\n";
            for relaxation in all {
                let names: Vec<&str> = relaxation.iter().map(|one| words(*one)).collect();
                text += &wrapped(&names.join(" and "), 2);
            }
        }
        None => {}
    }
    text + &members(why)
}

/// What helps a job that giving up constraints does not help.
fn without_relaxation(reason: &str, fits_when_all_is_free: Option<bool>) -> &'static str {
    match (reason, fits_when_all_is_free) {
        ("WaitingForReservation" | "WaitingForMembers", _) => "nothing else keeps it waiting",
        (_, Some(false)) => {
            "no single constraint and no pair of them keeps it waiting, and it would not start if all nodes were empty: \
             ask for less, or add nodes that have what it asks for"
        }
        // Whose turn comes gets its room from those who go.
        ("WaitingForTurn", _) => "nothing else keeps it waiting",
        _ => "no single constraint and no pair of them keeps it waiting: it needs more room",
    }
}

/// The pods of the gang, if it is about one.
fn members(why: &Why) -> String {
    why.gang.as_ref().map(|gang| format!("\n{}", gang.text())).unwrap_or_default()
}

/// A constraint in words.
fn words(relaxation: Relaxation) -> &'static str {
    match relaxation {
        Relaxation::Quota => "what its queue is guaranteed and limited to",
        Relaxation::GpuModel => "its choice of GPU models and memory",
        Relaxation::Level => "its required topology level",
        Relaxation::Cpu => "its CPU request",
        Relaxation::Memory => "its memory request",
        Relaxation::Ephemeral => "its request of ephemeral storage",
        Relaxation::Extended => "its requests of extended resources",
        Relaxation::Taint => "the nodes' taints",
        Relaxation::Selector => "its node selector and node affinity",
        Relaxation::Features => "the node features it needs",
        Relaxation::Rule => "its spread and affinity rules, and those of others about it",
        Relaxation::HostPort => "its host ports",
        Relaxation::Volume => "its volumes",
        Relaxation::Reservation => "what is kept for others",
        Relaxation::Island => "all its GPUs in one island",
    }
}

#[cfg(test)]
mod tests {
    use super::without_relaxation;

    #[test]
    fn more_room_is_asked_for_only_by_who_is_not_promised_some() {
        let asks = |reason, fits| without_relaxation(reason, fits).ends_with("it needs more room");
        for promised in ["WaitingForReservation", "WaitingForTurn", "WaitingForMembers"] {
            assert!(!asks(promised, Some(true)) && !asks(promised, None), "{promised}");
        }
        assert!(asks("Unschedulable", Some(true)) && asks("WaitingForQuota", None));
        let never = without_relaxation("WaitingForTurn", Some(false));
        assert!(never.ends_with("add nodes that have what it asks for"), "{never}");
    }
}

//! `dovetail why`: what a pod waits for, what keeps it off the nodes, and the smallest changes that would help.

use anyhow::Result;
use clap::Args;
use dovetail_kube::object::Pod;
use dovetail_kube::status;
use dovetail_model::{JobId, PodId};
use dovetail_plan::explain::relax::named_obstacles;
use dovetail_plan::explain::{Refusal, Relaxation};
use serde::Serialize;

use super::line::{InLine, line};
use super::{LookFlags, Seen};
use crate::app::App;
use crate::exit::UsageError;
use crate::output::Output;
use crate::output::style::Stream;
use crate::output::table::{duration, facts, wrapped};

/// About what.
#[derive(Debug, Args)]
pub(crate) struct WhyFlags {
    /// Name of a pod, or of a job as `dovetail queue` names it
    #[arg(value_name = "NAME")]
    name: String,
    /// Its namespace [default: that of the connection]
    #[arg(long, short = 'n', value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    look: LookFlags,
}

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
    /// Its place in the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_line: Option<InLine>,
    /// Jobs in the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    line_length: Option<usize>,
    /// What keeps its pods off the nodes at this moment, per pod set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    obstacles: Vec<Vec<Obstacle>>,
    /// Minimal sets of constraints, of one and of two, without which it would start now.
    #[serde(skip_serializing_if = "Option::is_none")]
    relaxations: Option<Vec<Vec<Relaxation>>>,
}

#[derive(Debug, Serialize)]
struct Obstacle {
    nodes: u32,
    /// In kube-scheduler's words.
    reason: String,
}

/// Tells how it is.
pub(crate) fn run(app: &App, flags: &WhyFlags) -> Result<()> {
    let output = app.output("why", &[Output::Table, Output::Json])?;
    let mut seen = flags.look.look(app)?;
    let namespace = flags.namespace.clone().unwrap_or_else(|| seen.namespace.clone());
    let name = flags.name.rsplit('/').next().unwrap_or_default();
    let why = why(&mut seen, &namespace, name)?;
    match output {
        Output::Json => app.print_json(&why),
        _ => app.print(&text(app, &why)),
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
        obstacles: Vec::new(),
        relaxations: None,
    };
    let line = line(&mut seen.scheduler, seen.now_ms);
    let world = seen.scheduler.world();
    let pod = world.pod(namespace, name);
    if let Some((state, message)) = pod.and_then(|pod| without_job(seen, pod)) {
        let node = pod.map(|pod| pod.node.to_string()).filter(|node| !node.is_empty());
        return Ok(Why { node, ..told(state, message) });
    }
    let job = world.job_of(namespace, name);
    let in_line = line.iter().find(|job_in_line| match job {
        Some(job) => job_in_line.id == job,
        None => job_in_line.job == full_name,
    });
    if let Some(in_line) = in_line {
        let message = in_line.message.clone();
        let (obstacles, relaxations) = explained(seen, in_line.id);
        return Ok(Why {
            in_line: Some(in_line.clone()),
            line_length: Some(line.len()),
            obstacles,
            relaxations,
            ..told("waits", message)
        });
    }
    let Some(job) = job else {
        let text = format!("no pod {name} in namespace {namespace}: name another with -n");
        return Err(UsageError(text).into());
    };
    let node = world.assumed_on(PodId { job, pod_set: 0, ordinal: 0 }).map(|node| node.to_string());
    let message = match &node {
        Some(node) => format!("it fits: at this moment it would be given node {node}"),
        None => "it is not decided about yet".to_owned(),
    };
    Ok(Why { node, ..told("fits", message) })
}

/// What there is to say of a pod that the engine does not place.
fn without_job(seen: &Seen, pod: &Pod) -> Option<(&'static str, String)> {
    let ours = &*seen.scheduler_name;
    if pod.is_over() {
        return Some(("over", "it has ended".to_owned()));
    }
    if !pod.node.is_empty() {
        let ending = if pod.meta.deleting { "it is ending on" } else { "it is on" };
        return Some(("placed", format!("{ending} node {}", pod.node)));
    }
    if *pod.scheduler != *ours {
        let text = format!("it is for scheduler {}, not for {ours}", pod.scheduler);
        return Some(("not_ours", text));
    }
    if pod.meta.deleting {
        return Some(("ending", "it is being deleted".to_owned()));
    }
    if pod.gated {
        return Some(("gated", "scheduling gates keep it from being placed".to_owned()));
    }
    let (namespace, name) = (&pod.meta.namespace, &pod.meta.name);
    let refused = seen.scheduler.world().left_untouched(namespace, name)?;
    Some(("left_untouched", refused.to_string()))
}

fn explained(seen: &mut Seen, job: JobId) -> (Vec<Vec<Obstacle>>, Option<Vec<Vec<Relaxation>>>) {
    let Some(waiting) = seen.scheduler.why(job) else { return (Vec::new(), None) };
    let rules = seen.scheduler.world().rules();
    let told = |(cause, nodes)| {
        let refusal = Refusal { cause, resource: None };
        Obstacle { nodes, reason: status::reason(&refusal, rules).into_owned() }
    };
    let sets = waiting.obstacles.iter();
    let sets = sets.map(|counts| named_obstacles(counts).into_iter().map(told).collect());
    (sets.collect(), Some(waiting.relaxations))
}

fn text(app: &App, why: &Why) -> String {
    let mut text = format!("{}\n\n", app.style(Stream::Result).strong(&why.name));
    let Some(job) = &why.in_line else {
        return text + &wrapped(&why.message, 0);
    };
    text += &wrapped(&format!("waits: {}", why.message), 0);
    let length = why.line_length.unwrap_or_default();
    let queue = if job.queue.is_empty() { "default" } else { &job.queue };
    text.push('\n');
    text += &facts(vec![
        ("reason", job.reason.to_owned()),
        ("place in line", format!("{} of {length}", job.place)),
        ("queue", queue.to_owned()),
        ("priority", job.priority.to_string()),
        ("waited", duration(job.waited_ms as f64 / 1_000.0)),
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
            text +=
                "\nno single constraint and no pair of them keeps it waiting: it needs more room\n";
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
    text
}

/// A constraint in words.
fn words(relaxation: Relaxation) -> &'static str {
    match relaxation {
        Relaxation::Quota => "the limit of its queue",
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

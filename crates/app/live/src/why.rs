//! `dovetail why`: what a pod waits for, what keeps it off the nodes, and the smallest changes that
//! would help.

use anyhow::Result;
use dovetail_console::app::App;
use dovetail_console::style::OutputStream;
use dovetail_console::table::{counted, facts, wrapped};
use dovetail_control::ask::{ReservationLine, Why};
use dovetail_control::status::Obstacle;
use dovetail_objects::harmless;
use dovetail_partitioning::for_pod::{ChangeState, LayoutChange};
use dovetail_plan::explain::Relaxation;
use dovetail_settings::errors::UsageError;
use dovetail_settings::form::Output;
use dovetail_units::duration::duration;
use serde::Serialize;

use crate::{ClusterSnapshot, gang, start, turn};

/// Prints why a pod or a gang is pending, in this namespace or the connection's.
///
/// # Errors
/// A name that nothing has, a form that the command lacks, and output that cannot be written.
pub fn answer(
    app: &App,
    seen: &mut ClusterSnapshot,
    name: &str,
    namespace: Option<&str>,
) -> Result<()> {
    let output = app.output("why")?;
    let Some(why) = seen.why(name, namespace)? else {
        let namespace = namespace.unwrap_or(&seen.namespace);
        let name = name.rsplit_once('/').map_or(name, |(_, name)| name);
        let text = format!(
            "no pod or gang {name} in namespace {namespace}: pass another namespace with -n"
        );
        return Err(UsageError(text).into());
    };
    if why.in_line.as_ref().is_some_and(|job| job.expected_start.is_some()) {
        seen.note_unlearned(app);
    }
    let layout_changes = seen.layout_changes(app, &why);
    match output {
        Output::Json => app.print_json(&Answer { why: &why, layout_changes }),
        _ => app.print(&text(app, &why, &layout_changes)),
    }
}

/// The document.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    why: &'a Why,
    /// The changes of layouts for the slices that it requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    layout_changes: Vec<LayoutChange>,
}

fn text(app: &App, why: &Why, layout_changes: &[LayoutChange]) -> String {
    let mut text = format!("{}\n\n", app.style(OutputStream::Result).strong(&why.name));
    let Some(job) = &why.in_line else {
        text += &wrapped(&harmless(&why.message), 0);
        return text + &ignored(why) + &members(why);
    };
    text += &wrapped(&harmless(&format!("waits: {}", why.message)), 0);
    let length = why.line_length.unwrap_or_default();
    text.push('\n');
    let mut rows = vec![
        ("reason", job.reason.to_owned()),
        ("queue", harmless(&job.queue).into_owned()),
        ("queue position", format!("{} of {length}", job.place)),
        ("priority", job.priority.to_string()),
        ("waited", duration(job.waited_ms)),
    ];
    if let Some(expected) = &job.expected_start {
        rows.push(("expected start", start::when(expected)));
        rows.extend(start::after(expected).map(|after| ("would start", after)));
    }
    rows.extend(job.preemptions.iter().map(|one| ("preempted", start::preempted(one))));
    let reserved = |line: &ReservationLine| {
        let ReservationLine { name, pods, from, to, phase, .. } = line;
        let pods = counted(*pods as usize, "pod");
        let told = format!("{name}: {pods} from {from} to {to} ({phase})");
        ("reservation", harmless(&told).into_owned())
    };
    rows.extend(why.reservations.iter().map(reserved));
    text += &facts(rows);
    text += &ignored(why);
    text += &why.turn.as_ref().map(turn::text).unwrap_or_default();
    let several = why.obstacles.len() > 1;
    for (at, obstacles) in why.obstacles.iter().enumerate().filter(|(_, all)| !all.is_empty()) {
        let of = if several { format!(" (pod set {})", at + 1) } else { String::new() };
        text += &format!("\nreasons why nodes do not fit{of}\n");
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
    text += &layouts(layout_changes);
    text + &members(why)
}

/// What is wrong with an annotation of its pods that is ignored for that.
fn ignored(why: &Why) -> String {
    let told = |problem: &String| wrapped(&harmless(&format!("ignored: {problem}")), 0);
    why.ignored_annotation
        .as_ref()
        .map(|problem| format!("\n{}", told(problem)))
        .unwrap_or_default()
}

/// What happens to layouts for the slices that it requests.
fn layouts(changes: &[LayoutChange]) -> String {
    let of = |change: &LayoutChange| {
        let LayoutChange { resource, state, policy, node, from, to, step, why } = change;
        let word = |text: &Option<String>| text.clone().unwrap_or_default();
        let by = policy.as_ref().map(|policy| format!(" by policy {policy}")).unwrap_or_default();
        let (node, step) = (word(node), word(step));
        let layouts = format!("from {} to {}{by} (step {step}): {why}", word(from), word(to));
        let told = match state {
            ChangeState::Changing => format!("node {node} is being changed {layouts}"),
            ChangeState::Planned => format!("planned for node {node}: {layouts}"),
            ChangeState::None => format!("none is planned: {why}"),
        };
        wrapped(&harmless(&format!("{resource}: {told}")), 2)
    };
    match changes {
        [] => String::new(),
        _ => format!("\nlayout changes\n{}", changes.iter().map(of).collect::<String>()),
    }
}

/// What helps a job that giving up constraints does not help.
fn without_relaxation(reason: &str, fits_when_all_is_free: Option<bool>) -> &'static str {
    match (reason, fits_when_all_is_free) {
        ("WaitingForReservation" | "WaitingForMembers", _) => "nothing else blocks it",
        (_, Some(false)) => {
            "lifting any one or two constraints would not help, and it would not start even if all \
             nodes were empty: request less, or add nodes that have what it requests"
        }
        // Whose turn comes gets its room from those who go.
        ("WaitingForTurn", _) => "nothing else blocks it",
        _ => "lifting any one or two constraints would not help: it needs more room",
    }
}

/// The pods of the gang, if it is about one.
fn members(why: &Why) -> String {
    why.gang.as_ref().map(|gang| format!("\n{}", gang::text(gang))).unwrap_or_default()
}

/// A constraint in words.
fn words(relaxation: Relaxation) -> &'static str {
    match relaxation {
        Relaxation::Quota => "the quota and limit of its queue",
        Relaxation::GpuModel => "its choice of GPU models and memory",
        Relaxation::Level => "its required topology level",
        Relaxation::Cpu => "its CPU request",
        Relaxation::Memory => "its memory request",
        Relaxation::Ephemeral => "its request for ephemeral storage",
        Relaxation::Extended => "its requests for extended resources",
        Relaxation::Taint => "the nodes' taints",
        Relaxation::Selector => "its node selector and node affinity",
        Relaxation::DeviceClaims => "the devices that its claims request",
        Relaxation::SharedGpus => "the classes and namespaces of pods that share GPUs",
        Relaxation::Features => "the node features that it requires",
        Relaxation::Rule => {
            "its spread and affinity rules, and those of other pods that apply to it"
        }
        Relaxation::HostPort => "its host ports",
        Relaxation::Volume => "its volumes",
        Relaxation::Reservation => "the reservations of other jobs",
        Relaxation::Island => "its requirement that all GPUs are in one island",
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
        assert!(never.ends_with("add nodes that have what it requests"), "{never}");
    }
}

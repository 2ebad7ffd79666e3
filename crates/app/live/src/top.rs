//! `dovetail top`: nodes, their GPUs, and the pods that use them.

use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_cluster::world::World;
use dovetail_console::app::App;
use dovetail_console::style::Stream;
use dovetail_console::table::{table, whole};
use dovetail_model::{Condition, Owner, Phase, Snapshot};
use dovetail_objects::{Pod, harmless};
use dovetail_settings::form::Output;
use dovetail_sources::namespace::NamespaceFlags;
use serde::Serialize;

use crate::Seen;

/// A node.
#[derive(Debug, Serialize)]
struct NodeLine {
    node: String,
    /// Model of its GPUs; null if it has none or does not say.
    gpu_model: Option<String>,
    /// GPUs that it has.
    gpus: usize,
    /// GPUs that are lost: in its capacity and not allocatable.
    lost: usize,
    /// GPUs that are held.
    held: usize,
    /// GPUs that are free, below 0 where more is held than there is.
    free: i64,
    /// Whether it takes pods.
    takes_pods: bool,
    /// Who holds how many of its GPUs, most first.
    holders: Vec<Holder>,
}

#[derive(Debug, Serialize)]
struct Holder {
    /// Namespace and name.
    pod: String,
    gpus: usize,
    /// Whether it is ending.
    is_ending: bool,
}

/// Prints the nodes; with `all`, also those without GPUs.
///
/// # Errors
/// A form that the command lacks, and output that cannot be written.
pub fn answer(app: &App, seen: &mut Seen, namespace: &NamespaceFlags, all: bool) -> Result<()> {
    let output = app.output("top")?;
    let world = seen.scheduler.snapshot(seen.now_ms);
    let mut nodes = nodes(&world, seen.scheduler.world(), all);
    if namespace.only().is_some() {
        let of_it =
            |holder: &Holder| holder.pod.split_once('/').is_some_and(|(of, _)| namespace.shows(of));
        nodes.iter_mut().for_each(|node| node.holders.retain(of_it));
        nodes.retain(|node| !node.holders.is_empty());
    }
    match output {
        Output::Json => app.print_json(&serde_json::json!({ "nodes": nodes })),
        _ => app.print(&text(app, &nodes)),
    }
}

/// The nodes of a world, with what is held there.
fn nodes(world: &Snapshot, objects: &World, all: bool) -> Vec<NodeLine> {
    let mut held: BTreeMap<&str, Vec<Holder>> = BTreeMap::new();
    // What would be decided now is not held.
    let is_real = |phase: &Phase| *phase != Phase::Assumed;
    let real = world.holdings.iter().filter(|holding| is_real(&holding.phase));
    for holding in real.filter(|holding| !holding.devices.is_empty()) {
        let pod = match &holding.owner {
            Owner::Pod(pod) => objects.pods().pod_of(*pod).map(full_name).unwrap_or_default(),
            Owner::Foreign(name) => name.clone(),
            Owner::Reservation => "reserved".to_owned(),
        };
        let is_ending = matches!(holding.phase, Phase::Releasing { .. });
        let holder = Holder { pod, gpus: holding.devices.len(), is_ending };
        held.entry(&holding.node).or_default().push(holder);
    }
    let mut lines = Vec::new();
    for node in &world.nodes {
        let mut holders = held.remove(&*node.name).unwrap_or_default();
        if node.devices.is_empty() && holders.is_empty() && !all {
            continue;
        }
        holders.sort_by(|one, other| (other.gpus, &one.pod).cmp(&(one.gpus, &other.pod)));
        let gpus = node.devices.len();
        let lost = node.devices.iter().filter(|device| !device.healthy).count();
        let count: usize = holders.iter().map(|holder| holder.gpus).sum();
        let model = node.devices.first().map(|device| device.model.clone());
        lines.push(NodeLine {
            node: node.name.to_string(),
            gpu_model: model.filter(|model| !model.is_empty()),
            gpus,
            lost,
            held: count,
            free: gpus as i64 - lost as i64 - count as i64,
            takes_pods: node.condition == Condition::Ready && !node.unschedulable,
            holders,
        });
    }
    lines
}

fn full_name(pod: &Pod) -> String {
    format!("{}/{}", pod.meta.namespace, pod.meta.name)
}

fn text(app: &App, nodes: &[NodeLine]) -> String {
    let sum = |of: fn(&NodeLine) -> usize| whole(nodes.iter().map(of).sum::<usize>() as u64);
    let (gpus, held) = (sum(|node| node.gpus), sum(|node| node.held));
    let title = format!("{held} of {gpus} GPUs allocated, on {} nodes", whole(nodes.len() as u64));
    let row = |node: &NodeLine| {
        let holder = |holder: &Holder| {
            let ending = if holder.is_ending { ", terminating" } else { "" };
            format!("{} ({}{ending})", holder.pod, holder.gpus)
        };
        let holders: Vec<String> = node.holders.iter().map(holder).collect();
        let holders = match (holders.is_empty(), node.takes_pods) {
            (true, true) => "-".to_owned(),
            (true, false) => "- (node accepts no pods)".to_owned(),
            (false, true) => holders.join(", "),
            (false, false) => format!("{} (node accepts no more pods)", holders.join(", ")),
        };
        vec![
            node.node.clone(),
            node.gpu_model
                .as_deref()
                .map(|model| harmless(model).into_owned())
                .unwrap_or_else(|| "-".to_owned()),
            node.gpus.to_string(),
            node.held.to_string(),
            node.free.to_string(),
            holders,
        ]
    };
    let header = ["node", "model", "GPUs", "allocated", "free", "pods"];
    let title = app.style(Stream::Result).strong(&title);
    format!("{title}\n\n{}", table(&header, nodes.iter().map(row).collect()))
}

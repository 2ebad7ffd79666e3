//! `dovetail top`: nodes, their GPUs, and the pods that use them.

use anyhow::Result;
use dovetail_console::app::App;
use dovetail_console::style::OutputStream;
use dovetail_console::table::{counted, table, whole};
use dovetail_control::ask::{GpuHolder, NodeLine};
use dovetail_objects::harmless;
use dovetail_settings::form::Output;
use dovetail_sources::namespace::NamespaceFlags;

use crate::ClusterSnapshot;

/// Prints the nodes; with `all`, also those without GPUs.
///
/// # Errors
/// A form that the command lacks, and output that cannot be written.
pub fn answer(
    app: &App,
    seen: &mut ClusterSnapshot,
    namespace: &NamespaceFlags,
    all: bool,
) -> Result<()> {
    let output = app.output("top")?;
    let mut nodes = seen.nodes(all)?;
    if namespace.only().is_some() {
        let of_it = |holder: &GpuHolder| {
            holder.pod.split_once('/').is_some_and(|(of, _)| namespace.shows(of))
        };
        nodes.iter_mut().for_each(|node| node.holders.retain(of_it));
        nodes.retain(|node| !node.holders.is_empty());
    }
    match output {
        Output::Json => app.print_json(&serde_json::json!({ "nodes": nodes })),
        _ => app.print(&text(app, &nodes)),
    }
}

fn text(app: &App, nodes: &[NodeLine]) -> String {
    let sum = |of: fn(&NodeLine) -> usize| nodes.iter().map(of).sum::<usize>();
    let held = whole(sum(|node| node.held) as u64);
    let gpus = counted(sum(|node| node.gpus), "GPU");
    let title = format!("{held} of {gpus} allocated, on {}", counted(nodes.len(), "node"));
    let row = |node: &NodeLine| {
        let holder = |holder: &GpuHolder| {
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
    let title = app.style(OutputStream::Result).strong(&title);
    format!("{title}\n\n{}", table(&header, nodes.iter().map(row).collect()))
}

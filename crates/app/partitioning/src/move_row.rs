//! A pod that moves, as documents and texts have it.

use dovetail_console::plain::plain;
use dovetail_console::table::wrapped;
use dovetail_sharing::PodMove;
use serde::Serialize;

/// A pod that moves.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MoveRow {
    /// Namespace and name.
    pub pod: String,
    pub owner: String,
    /// The node that has room for it now; null: it waits for the new layout of its own node.
    pub to: Option<String>,
    /// GPU time that it loses.
    pub lost_gpu_s: f64,
    /// Whether its eviction was asked for.
    pub is_evicted: bool,
}

impl MoveRow {
    pub(crate) fn of(one: &PodMove) -> Self {
        Self {
            pod: one.pod.clone(),
            owner: format!("{} {}", one.owner.kind, one.owner.name),
            to: Some(one.to.clone()).filter(|node| !node.is_empty()),
            lost_gpu_s: one.lost_gpu_ms as f64 / 1e3,
            is_evicted: one.evicted_ms.is_some(),
        }
    }
}

pub(crate) fn move_lines(moves: &[MoveRow]) -> String {
    let line = |row: &MoveRow| {
        let what = if row.is_evicted { "moved" } else { "moves" };
        let to = match &row.to {
            Some(node) => format!("to node {node}"),
            None => "back to its node once the new layout is ready".to_owned(),
        };
        let (pod, owner, lost) = (&row.pod, &row.owner, row.lost_gpu_s);
        wrapped(&plain(&format!("{what} {pod} ({owner}) {to}: {lost:.0} GPU-seconds lost")), 0)
    };
    moves.iter().map(line).collect()
}

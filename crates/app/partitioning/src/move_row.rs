//! A pod that moves or is waited for, as documents and texts have it.

use dovetail_console::plain::plain;
use dovetail_console::table::wrapped;
use dovetail_sharing::PodMove;
use dovetail_units::time::time;
use serde::Serialize;

/// A pod that moves, or is waited for.
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
    /// Until when the node waits for it to finish by itself; null: it is evicted.
    pub waits_until: Option<String>,
}

impl MoveRow {
    pub(crate) fn of(one: &PodMove) -> Self {
        Self {
            pod: one.pod.clone(),
            owner: format!("{} {}", one.owner.kind, one.owner.name),
            to: Some(one.to.clone()).filter(|node| !node.is_empty()),
            lost_gpu_s: one.lost_gpu_ms as f64 / 1e3,
            is_evicted: one.evicted_ms.is_some(),
            waits_until: one.waits_until_ms.map(time),
        }
    }
}

pub(crate) fn move_lines(moves: &[MoveRow]) -> String {
    let line = |row: &MoveRow| {
        let (pod, owner, lost) = (&row.pod, &row.owner, row.lost_gpu_s);
        if let Some(until) = &row.waits_until {
            let line = format!("waits for {pod} ({owner}) to finish, until {until} at the latest");
            return wrapped(&plain(&line), 0);
        }
        let what = if row.is_evicted { "moved" } else { "moves" };
        let to = match &row.to {
            Some(node) => format!("to node {node}"),
            None if row.is_evicted => {
                let line = format!(
                    "evicted {pod} ({owner}), which returns to its node once the new layout is \
                     ready: {lost:.0} GPU-seconds lost"
                );
                return wrapped(&plain(&line), 0);
            }
            None => "back to its node once the new layout is ready".to_owned(),
        };
        wrapped(&plain(&format!("{what} {pod} ({owner}) {to}: {lost:.0} GPU-seconds lost")), 0)
    };
    moves.iter().map(line).collect()
}

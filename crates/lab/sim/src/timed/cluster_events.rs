//! What happens to machines at given times: cordon, uncordon, fail, repair, remove, add.
//!
//! CSV with the columns `at_s,action,node`. A machine whose first event is `add` is not there
//! before it.

use std::collections::BTreeSet;
use std::io::Read;

use dovetail_trace::{SmallTable, TraceCluster, TraceError};
use serde::{Deserialize, Serialize};

/// One thing that happens to one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterEvent {
    /// When, on the trace's clock.
    pub at_ms: u64,
    pub action: NodeAction,
    pub node: String,
}

/// What can happen to a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeAction {
    /// Takes nothing new; what runs goes on.
    Cordon,
    /// Takes pods again.
    Uncordon,
    /// Not ready: what runs there is lost and starts again.
    Fail,
    /// Ready again.
    Repair,
    /// Gone: what runs there is lost and starts again.
    Remove,
    /// There, new or again.
    Add,
}

impl NodeAction {
    const ALL: [(&'static str, Self); 6] = [
        ("cordon", Self::Cordon),
        ("uncordon", Self::Uncordon),
        ("fail", Self::Fail),
        ("repair", Self::Repair),
        ("remove", Self::Remove),
        ("add", Self::Add),
    ];

    /// The word used in files.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, action)| *action == self).map_or("", |(name, _)| name)
    }
}

const COLUMNS: [&str; 3] = ["at_s", "action", "node"];
const AT: usize = 0;
const ACTION: usize = 1;
const NODE: usize = 2;

/// Reads what happens to the machines of a cluster and sorts it by time; events of one instant keep
/// their order. `file` stands for the input in messages.
///
/// # Errors
/// [`TraceError`] names file, line and column of the first bad cell, such as a node that the
/// cluster does not have.
pub fn read_cluster_events(
    input: impl Read + 'static,
    file: &str,
    cluster: &TraceCluster,
) -> Result<Vec<ClusterEvent>, TraceError> {
    let nodes: BTreeSet<&str> = cluster.nodes.iter().map(|node| node.name.as_str()).collect();
    let mut events = SmallTable::new(input, file, &COLUMNS)?.rows(|row| {
        let at_ms = row.seconds_as_ms(AT)?;
        let word = row.name(ACTION)?;
        let known = NodeAction::ALL.iter().find(|(name, _)| *name == word);
        let (_, action) = known.ok_or_else(|| {
            let names = NodeAction::ALL.map(|(name, _)| name).join(", ");
            row.bad(ACTION, "is not an action", format!("one of {names}"))
        })?;
        let node = row.name(NODE)?;
        if !nodes.contains(node.as_str()) {
            let such_as = cluster.nodes.first().map(|first| format!(", such as {}", first.name));
            let such_as = such_as.unwrap_or_default();
            let expected = format!("a node of {}{such_as}", cluster.source);
            return Err(row.bad(NODE, "is not in the list of nodes", expected));
        }
        Ok(ClusterEvent { at_ms, action: *action, node })
    })?;
    events.sort_by_key(|event| event.at_ms);
    Ok(events)
}

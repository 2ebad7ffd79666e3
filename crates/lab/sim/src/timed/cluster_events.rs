//! What happens to machines at given times: cordon, uncordon, fail, repair, remove, add.
//!
//! CSV with the columns `at_s,action,node`. A machine whose first event is `add` is not there before it.

use std::io::Read;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One thing that happens to one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterEvent {
    /// When, on the trace's clock.
    pub at_ms: u64,
    /// What.
    pub action: NodeAction,
    /// Name of the machine.
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

/// Why a file of cluster events cannot be used.
#[derive(Debug, Error)]
pub enum ClusterEventError {
    /// The file is not CSV.
    #[error("{file}: {source}")]
    Csv {
        /// The file.
        file: String,
        /// What the reader says.
        source: csv::Error,
    },
    /// A column is missing.
    #[error("{file}: the column `{column}` is missing: expected at_s,action,node")]
    MissingColumn {
        /// The file.
        file: String,
        /// The column.
        column: &'static str,
    },
    /// A cell cannot be used.
    #[error("{file}, line {line}, column {column}: `{text}` is not {expected}")]
    Cell {
        /// The file.
        file: String,
        /// Line, from 1.
        line: u64,
        /// The column.
        column: &'static str,
        /// The cell.
        text: String,
        /// What belongs there.
        expected: String,
    },
}

/// Reads cluster events and sorts them by time; those of one instant keep their order.
///
/// # Errors
/// [`ClusterEventError`] names file, line and column of the first bad cell.
pub fn read_cluster_events(
    input: impl Read,
    file: &str,
) -> Result<Vec<ClusterEvent>, ClusterEventError> {
    let csv_error = |source| ClusterEventError::Csv { file: file.to_owned(), source };
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(input);
    let headers = reader.headers().map_err(csv_error)?.clone();
    let place = |column: &'static str| {
        headers
            .iter()
            .position(|name| name == column)
            .ok_or_else(|| ClusterEventError::MissingColumn { file: file.to_owned(), column })
    };
    let (at, action, node) = (place("at_s")?, place("action")?, place("node")?);
    let mut events = Vec::new();
    for record in reader.records() {
        let record = record.map_err(csv_error)?;
        let line = record.position().map_or(0, csv::Position::line);
        let bad = |column, text: &str, expected: &str| ClusterEventError::Cell {
            file: file.to_owned(),
            line,
            column,
            text: text.to_owned(),
            expected: expected.to_owned(),
        };
        let seconds: f64 = record[at]
            .parse()
            .ok()
            .filter(|seconds: &f64| (0.0..1e12).contains(seconds))
            .ok_or_else(|| bad("at_s", &record[at], "a number of seconds, 0 or more"))?;
        let known = NodeAction::ALL.iter().find(|(name, _)| *name == &record[action]);
        let names = NodeAction::ALL.map(|(name, _)| name).join(", ");
        let action =
            known.ok_or_else(|| bad("action", &record[action], &format!("one of {names}")))?.1;
        if record[node].is_empty() {
            return Err(bad("node", "", "the name of a node"));
        }
        let at_ms = (seconds * 1000.0).round() as u64;
        events.push(ClusterEvent { at_ms, action, node: record[node].to_owned() });
    }
    events.sort_by_key(|event| event.at_ms);
    Ok(events)
}

//! What `dovetail partition apply` and `rollback` answer.

use std::collections::BTreeMap;

use dovetail_console::plain::{plain, plain_message, plain_sentence};
use dovetail_console::table::{table, wrapped};
use dovetail_sharing::{Record, Step, stuck_remedy};
use serde::Serialize;

use super::workload_row::{self, WorkloadRow};
use crate::changes::NodeChange;
use crate::move_row::{MoveRow, move_lines};
use crate::show::in_lines as name_in_lines;

/// What became of policies and nodes.
#[derive(Debug, Default, Serialize)]
pub struct Document {
    pub policies: Vec<PolicyRow>,
    pub nodes: Vec<NodeRow>,
    /// Workloads whose pods ask for another resource, or should.
    pub workloads: Vec<WorkloadRow>,
    /// Verdicts on latency after changes.
    pub verdicts: Vec<VerdictRow>,
    /// What ended the work on a policy or a node, and not the call.
    #[serde(skip)]
    failures: Vec<anyhow::Error>,
}

/// Latency after the change of a node.
#[derive(Clone, Debug, Serialize)]
pub struct VerdictRow {
    pub node: String,
    /// better, same, worse, unknown; waiting: the window is not over, or could not be read.
    pub verdict: String,
    pub why: String,
}

/// A policy.
#[derive(Debug, Serialize)]
pub struct PolicyRow {
    pub policy: String,
    pub is_ready: bool,
    pub is_applied: bool,
    pub problem: Option<String>,
    /// Pods that should not share GPUs; a nodeSelector without nodes.
    pub warnings: Vec<String>,
}

impl PolicyRow {
    pub(super) fn unreadable(problem: &str) -> Self {
        let (policy, problem) = problem.split_once(": ").unwrap_or(("", problem));
        Self {
            policy: policy.to_owned(),
            is_ready: false,
            is_applied: false,
            problem: Some(plain_message(problem)),
            warnings: Vec::new(),
        }
    }
}

/// A node that changed, or would.
#[derive(Clone, Debug, Serialize)]
pub struct NodeRow {
    pub node: String,
    pub from: String,
    pub to: String,
    /// Pods served by profile.
    pub served: BTreeMap<String, u64>,
    /// Pods that move off the node first, or have moved.
    pub moves: Vec<MoveRow>,
    /// Done, Undone, Abandoned or Stuck; Emptying: pods have to finish or to move first; Clearing,
    /// Applying or Reverting: the change waits for pods that came in spite of the taint; planned,
    /// refused; stays: it should change and cannot now.
    pub outcome: String,
    pub problem: String,
    pub seconds: u64,
    #[serde(skip)]
    pub(super) is_changed: bool,
    /// It was refused because another call changes the node.
    #[serde(skip)]
    pub(super) is_conflict: bool,
}

impl NodeRow {
    pub(super) fn of(node: &str, record: &Record, outcome: &str) -> Self {
        Self {
            node: node.to_owned(),
            from: record.from.words(),
            to: record.to.words(),
            served: BTreeMap::new(),
            moves: record.own_moves().map(MoveRow::of).collect(),
            outcome: outcome.to_owned(),
            problem: record.problem.clone(),
            seconds: record.seconds(),
            is_changed: record.takes_budget(),
            is_conflict: false,
        }
    }

    pub(super) fn ended(node: &str, record: &Record) -> Self {
        Self::of(node, record, record.step.word())
    }

    /// A node that would get its former layout back because its latency got worse.
    pub(super) fn would_return(node: &str, record: &Record) -> Self {
        const WHY: &str = "latency is worse: the node gets its former layout back";
        let row = Self::of(node, record, "planned");
        let problem = match &*row.problem {
            "" => WHY.to_owned(),
            waits => format!("{WHY}; {waits}"),
        };
        Self { problem, ..row }
    }

    /// A node that an earlier call left without a layout.
    pub(super) fn stuck(node: &str, record: &Record) -> Self {
        let row = Self::ended(node, record);
        let problem = format!("{}; {}", row.problem, stuck_remedy(node));
        Self { problem, ..row }
    }

    pub(super) fn planned(change: NodeChange, why: &str) -> Self {
        let (outcome, problem) = why.split_once(": ").unwrap_or((why, ""));
        Self {
            node: change.node,
            from: change.from.words(),
            to: change.to.words(),
            served: change.served,
            moves: change.moves.iter().map(MoveRow::of).collect(),
            outcome: outcome.to_owned(),
            problem: problem.to_owned(),
            seconds: 0,
            is_changed: false,
            is_conflict: false,
        }
    }

    pub(super) fn stays(node: String, why: String) -> Self {
        Self {
            node,
            from: String::new(),
            to: String::new(),
            served: BTreeMap::new(),
            moves: Vec::new(),
            outcome: "stays".to_owned(),
            problem: why,
            seconds: 0,
            is_changed: false,
            is_conflict: false,
        }
    }

    pub(super) fn refused(change: &NodeChange, why: &str) -> Self {
        Self::planned(change.clone(), &format!("refused: {why}"))
    }

    /// A node that is not rolled back. What is wrong names it, as the row does.
    pub(super) fn not_rolled_back(node: &str, error: &anyhow::Error) -> Self {
        let why = format!("{error:#}");
        let problem = why.strip_prefix(&format!("node {node}: ")).unwrap_or(&why).to_owned();
        Self { outcome: "refused".to_owned(), ..Self::stays(node.to_owned(), problem) }
    }
}

impl Document {
    pub(super) fn failed(&mut self, error: anyhow::Error) {
        self.failures.push(error);
    }

    /// # Errors
    /// What ended the work on policies or nodes, each reason once.
    pub fn into_result(mut self) -> anyhow::Result<()> {
        let mut reasons: Vec<String> = Vec::new();
        for failure in &self.failures {
            let reason = format!("{failure:#}");
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        match reasons.len() {
            0 => Ok(()),
            1 => Err(self.failures.remove(0)),
            _ => Err(anyhow::anyhow!(reasons.join("\n"))),
        }
    }

    /// Nodes that have neither their new nor their old layout.
    pub fn stuck(&self) -> Vec<&str> {
        let stuck = self.nodes.iter().filter(|row| row.outcome == Step::Stuck.word());
        stuck.map(|row| &*row.node).collect()
    }

    /// Workloads that may not change.
    pub fn refused(&self) -> Vec<&str> {
        let refused = self.workloads.iter().filter(|row| row.outcome == "refused");
        refused.map(|row| &*row.workload).collect()
    }
}

/// Longest line of a layout.
const LAYOUT_LINE: usize = 22;

/// A layout in lines that end at its blanks or between two instances of a GPU: the outcome has room
/// beside it.
fn in_lines(layout: &str) -> String {
    let (mut text, mut line) = (String::new(), 0);
    for word in layout.split(' ') {
        for (place, part) in word.split_inclusive(']').enumerate() {
            let length = part.chars().count();
            let blank = usize::from(place == 0 && line > 0);
            // A count stays with what it counts, a comma with what it follows.
            let is_bound = match place {
                0 => text.ends_with('×') || word == "×",
                _ => !part.starts_with('['),
            };
            if line > 0 && line + blank + length > LAYOUT_LINE && !is_bound {
                text.push('\n');
                line = 0;
            } else if blank > 0 {
                text.push(' ');
                line += 1;
            }
            text += part;
            line += length;
        }
    }
    text
}

/// The document as text.
pub fn text(document: &Document) -> String {
    let mut text = workload_row::lines(&document.workloads);
    if document.nodes.is_empty() && text.is_empty() {
        text += "no node needs a change\n";
    } else if !document.nodes.is_empty() {
        let rows = document.nodes.iter().map(|row| {
            let served = row.served.iter().map(|(profile, count)| format!("{profile} × {count}"));
            vec![
                name_in_lines(&row.node),
                in_lines(&row.from),
                in_lines(&row.to),
                served.collect::<Vec<_>>().join(", "),
                row.outcome.clone(),
                row.seconds.to_string(),
            ]
        });
        let header = ["node", "before", "after", "serves", "outcome", "seconds"];
        text += &table(&header, rows.collect());
    }
    for row in document.nodes.iter().filter(|row| !row.problem.is_empty()) {
        text += &wrapped(&format!("node {}: {}", row.node, plain_sentence(&row.problem)), 0);
    }
    for row in &document.nodes {
        text += &move_lines(&row.moves);
    }
    for row in &document.verdicts {
        let (node, verdict, why) = (&row.node, &row.verdict, plain(&row.why));
        text += &wrapped(&format!("latency on node {node}: {verdict}: {why}"), 0);
    }
    for row in &document.policies {
        if let Some(problem) = &row.problem {
            text += &wrapped(&format!("policy {} is not ready: {problem}", row.policy), 0);
        }
        for warning in &row.warnings {
            text += &wrapped(&format!("policy {}: {}", row.policy, plain_message(warning)), 0);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What to do stands at the end.
    #[test]
    fn no_problem_of_a_node_is_cut() {
        let why = format!("another client changed {}: then run `rollback`", "a label ".repeat(40));
        let nodes = vec![NodeRow::stays("n0".to_owned(), why)];
        let text = text(&Document { nodes, ..Document::default() });
        assert!(text.trim_end().ends_with("`rollback`"), "{text}");
    }

    #[test]
    fn no_outcome_is_broken_beside_long_layouts_and_names() {
        let row = |node: &str, outcome: &str| NodeRow {
            node: node.to_owned(),
            from: "8 × 48 replicas (time-slicing)".to_owned(),
            to: "8 × 4 replicas (mps), 12 × 1g.10gb".to_owned(),
            served: BTreeMap::from([("1g.10gb".to_owned(), 12)]),
            moves: Vec::new(),
            outcome: outcome.to_owned(),
            problem: String::new(),
            seconds: 1_234,
            is_changed: false,
            is_conflict: false,
        };
        for node in ["n0", "gpu-node-7", "ip-10-0-123-456.eu-central-1.compute.internal"] {
            let outcomes = ["Emptying", "planned", "Abandoned"];
            let nodes = outcomes.map(|outcome| row(node, outcome)).to_vec();
            let text = text(&Document { nodes, ..Document::default() });
            assert!(outcomes.iter().all(|outcome| text.contains(outcome)), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
            assert!(text.contains("8 × 48 replicas"), "{text}");
        }
        let layout = |profile: &str| format!("1 × {}, 1 × whole", profile.repeat(7));
        let long =
            NodeRow { from: layout("[1g.10gb]"), to: layout("[1g.12gb]"), ..row("n0", "planned") };
        let text = text(&Document { nodes: vec![long], ..Document::default() });
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.contains("1 × [1g.10gb][1g.10gb]"), "{text}");
        assert_eq!(text.matches("[1g.12gb]").count(), 7, "{text}");
        assert_eq!(in_lines("1 × [3g.40gb][3g.40gb], 6 × whole").lines().count(), 2);
    }
}

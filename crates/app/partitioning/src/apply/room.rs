//! How many nodes of a policy may change now.

use std::collections::BTreeSet;

use dovetail_console::clock::now_ms;
use dovetail_sharing::guard::left_today;
use dovetail_sharing::watch::Gate;
use dovetail_sharing::{Record, SharingPolicy};

use super::document::NodeRow;
use super::policy_nodes::{gate_of, selected, why_no_more};
use crate::objects::Objects;

const BUDGET: &str = "planned: the policy's budget for today is used up";

/// So many nodes may change, and no more for a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) left: usize,
    pub(super) why: String,
    is_canary: bool,
}

impl Room {
    /// `mine`: nodes that this step has changed already.
    pub(super) fn of(policy: &SharingPolicy, objects: &Objects, mine: &BTreeSet<String>) -> Self {
        let selected = selected(objects, &policy.spec);
        let records: Vec<Record> = selected.iter().filter_map(|(_, seen)| seen.record()).collect();
        let percent = policy.spec.budget.percent_per_day;
        let left_today = left_today(selected.len(), percent, records.iter(), now_ms());
        Self::within(left_today, &gate_of(policy, objects, mine))
    }

    fn within(left_today: usize, gate: &Gate) -> Self {
        let share = match gate {
            Gate::Open => usize::MAX,
            Gate::Canary => 1,
            Gate::Changes { .. } | Gate::Waits(_) | Gate::Stopped { .. } => 0,
        };
        let of_gate = why_no_more(gate).filter(|_| left_today >= share);
        Self {
            left: left_today.min(share),
            why: of_gate.map_or_else(|| BUDGET.to_owned(), |why| format!("planned: {why}")),
            is_canary: *gate == Gate::Canary,
        }
    }

    /// What is left by the objects as they are later.
    pub(super) fn with(self, later: Self) -> Self {
        if later.left < self.left { later } else { Self { is_canary: later.is_canary, ..self } }
    }

    /// What is left after a node was tried.
    pub(super) fn after(self, row: &NodeRow) -> Self {
        let left = self.left.saturating_sub(usize::from(row.is_changed));
        if !(self.is_canary && row.is_conflict) {
            return Self { left, ..self };
        }
        // Another call may be about to change the one node that is to change first.
        let why = format!(
            "planned: another run is changing node {}, and only one node changes at first: the \
             next run continues",
            row.node
        );
        Self { left: 0, why, ..self }
    }
}

#[cfg(test)]
mod tests {
    use dovetail_sharing::watch::Subject;
    use dovetail_sharing::{Component, Side};

    use super::*;
    use crate::changes::NodeChange;

    #[test]
    fn a_conflict_under_the_first_node_ends_the_step() {
        let change = NodeChange {
            node: "n0".to_owned(),
            by: Component::DevicePlugin,
            from: Side::whole(2, None),
            to: Side::whole(2, None),
            served: Default::default(),
            moves: Vec::new(),
            held_back: None,
        };
        let refused = NodeRow::refused(&change, "its layout is changing");
        let conflict = NodeRow { is_conflict: true, ..refused.clone() };
        let canary = Room::within(5, &Gate::Canary);
        assert_eq!(canary.left, 1);
        assert!(canary.why.contains("one node changes first"));
        assert_eq!(canary.clone().after(&conflict).left, 0);
        assert!(canary.clone().after(&conflict).why.contains("another run is changing node n0"));
        // A node in use is none that another call changes.
        assert_eq!(canary.clone().after(&refused), canary);
        let done = NodeRow { is_changed: true, ..refused };
        assert_eq!(canary.clone().after(&done).left, 0);
        assert_eq!(canary.clone().after(&done).why, canary.why);
        let open = Room::within(5, &Gate::Open);
        assert_eq!(open.left, 5);
        assert_eq!(open.clone().after(&conflict).left, 5);
    }

    #[test]
    fn what_has_changed_since_takes_room() {
        let waits = Gate::Waits(Subject::Node("n0".to_owned()));
        let room = Room::within(5, &Gate::Canary).with(Room::within(5, &waits));
        assert_eq!(
            (room.left, &*room.why),
            (0, "planned: waiting for the latency check of node n0")
        );
        assert_eq!(Room::within(2, &Gate::Open).with(Room::within(1, &Gate::Open)).left, 1);
        assert_eq!(Room::within(1, &Gate::Open).with(Room::within(5, &Gate::Open)).left, 1);
        assert_eq!(Room::within(0, &Gate::Open).why, BUDGET);
    }
}

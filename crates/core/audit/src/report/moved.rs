//! Pods that fixes move to other nodes. A node to which they come stays on the bill as long as they
//! do, whatever else is fixed there; and what they use on the node that they leave is returned
//! once, as the GPUs that they take where they come.
//!
//! A pod that moves and that another fix ends keeps no node: the engine placed it with all others,
//! so without it there is only more room.
//!
//! The moves of SCH-08 empty no node, and some of them may never be made. So none of them returns
//! anything, and a node to which one of them leads stays on the bill.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::Moment;

use crate::finding::{Finding, Move};

/// What is moved, by the names of nodes.
pub(super) struct Moved<'f> {
    /// Nodes that pods leave or come to, with the place of the finding that moves them.
    of_findings: BTreeSet<(usize, &'f str)>,
    /// Nodes that pods come to, or may come to, which no other fix ends.
    hosts: BTreeSet<&'f str>,
    /// Nodes that pods leave for one that stays.
    left: BTreeSet<&'f str>,
}

impl<'f> Moved<'f> {
    /// What these findings move. `ends`: whether other fixes end all pods of a node, by its place;
    /// `stays`: whether something else keeps the node.
    pub(super) fn of(
        findings: impl Iterator<Item = (usize, &'f Finding)>,
        moment: &Moment,
        ends: impl Fn(usize) -> bool,
        stays: impl Fn(usize) -> bool,
    ) -> Self {
        let places = moment.nodes.iter().enumerate();
        let places: BTreeMap<&str, usize> =
            places.map(|(place, node)| (&*node.node, place)).collect();
        let is_so =
            |name: &str, of: &dyn Fn(usize) -> bool| places.get(name).is_some_and(|at| of(*at));
        let (mut moves, mut hosts): (Vec<(usize, &Move)>, BTreeSet<&str>) = Default::default();
        for (place, finding) in findings {
            let goes_on = finding.moves.iter().filter(|of| !is_so(&of.from, &ends));
            hosts.extend(goes_on.map(|of| &*of.to));
            if empties_nodes(finding) {
                moves.extend(finding.moves.iter().map(|of| (place, of)));
            }
        }
        let is_kept = |of: &&Move| {
            let to = &*of.to;
            hosts.contains(to) || !is_so(to, &ends) || is_so(to, &stays)
        };
        let left = moves.iter().map(|(_, of)| *of).filter(is_kept);
        let left = left.map(|of| &*of.from).collect();
        let both = |(place, of): &(usize, &'f Move)| [(*place, &*of.from), (*place, &*of.to)];
        let of_findings = moves.iter().flat_map(both).collect();
        Self { of_findings, hosts, left }
    }

    /// Whether the finding at this place moves pods from a node or to it.
    pub(super) fn is_by(&self, finding: usize, node: &str) -> bool {
        self.of_findings.contains(&(finding, node))
    }

    /// Whether pods come to a node, or may, and stay there.
    pub(super) fn is_host(&self, node: &str) -> bool {
        self.hosts.contains(node)
    }

    /// Whether pods of a node use GPUs of a node that stays, in place of its own.
    pub(super) fn is_left(&self, node: &str) -> bool {
        self.left.contains(node)
    }
}

/// Whether the moves of a finding empty nodes: those of SCH-08 only make room on them.
fn empties_nodes(finding: &Finding) -> bool {
    finding.check.id != "SCH-08"
}

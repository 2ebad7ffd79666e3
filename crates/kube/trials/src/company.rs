//! Pods that run only beside others (required pod affinity), when these move away: the pods that
//! are there run on, and none of them can be replaced.

use std::collections::BTreeSet;

use dovetail_inventory::reach::{PatchReach, PodGroup};

use super::jams::domain;
use super::trial::{Harmed, of_group};

/// Groups whose pods run only beside others.
pub(super) struct CompanySeekers<'r> {
    reach: &'r PatchReach,
    /// Their places.
    groups: Vec<usize>,
}

impl<'r> CompanySeekers<'r> {
    pub(super) fn of(reach: &'r PatchReach) -> Self {
        let groups = reach.groups.iter().enumerate();
        let seekers = groups.filter(|(_, group)| group.apart.needs_company());
        Self { reach, groups: seekers.map(|(place, _)| place).collect() }
    }

    /// Pods that need these pods of a group beside them, if these leave their nodes and run on
    /// others. `moved`: their places in the group; `targets`: where they run then.
    pub(super) fn left_alone(
        &self,
        group: usize,
        moved: &BTreeSet<usize>,
        targets: &[usize],
    ) -> Vec<Harmed> {
        if moved.is_empty() {
            return Vec::new();
        }
        let others = self.groups.iter().filter(|other| **other != group);
        let of = &self.reach.groups[group];
        let alone = others
            .filter_map(|other| alone(self.reach, &self.reach.groups[*other], of, moved, targets));
        alone.collect()
    }

    /// Whether some of them need the pods of a group on this node.
    pub(super) fn need(&self, group: usize, node: usize) -> bool {
        if self.groups.is_empty() {
            return false;
        }
        let pods = self.reach.groups[group].pods.iter().enumerate();
        let here = pods.filter(|(_, (_, on))| *on == Some(node)).map(|(place, _)| place);
        !self.left_alone(group, &here.collect(), &[]).is_empty()
    }
}

/// Pods of a group that need those of another beside them which move.
fn alone(
    reach: &PatchReach,
    group: &PodGroup,
    company: &PodGroup,
    moved: &BTreeSet<usize>,
    targets: &[usize],
) -> Option<Harmed> {
    let labels = group.apart.beside(&company.apart);
    let values = |nodes: &[usize]| -> BTreeSet<(&str, &str)> {
        let mut values = BTreeSet::new();
        for node in nodes {
            let labels = labels.iter().copied();
            values.extend(labels.filter_map(|label| domain(&reach.nodes[*node], label)));
        }
        values
    };
    let (mut left, mut there) = (Vec::new(), targets.to_vec());
    for (place, (_, node)) in company.pods.iter().enumerate() {
        match moved.contains(&place) {
            true => left.extend(*node),
            false => there.extend(*node),
        }
    }
    let there = values(&there);
    let lost: BTreeSet<(&str, &str)> =
        values(&left).into_iter().filter(|value| !there.contains(value)).collect();
    if lost.is_empty() {
        return None;
    }
    // One without a node may need the company that is lost.
    let is_alone = |node: Option<usize>| {
        node.is_none_or(|node| values(&[node]).iter().any(|value| lost.contains(value)))
    };
    let pods = group.pods.iter().enumerate().filter(|(_, (_, node))| is_alone(*node));
    of_group(group, &pods.map(|(place, _)| place).collect())
}

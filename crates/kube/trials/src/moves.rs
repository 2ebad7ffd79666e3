//! Which pods of a changed template cannot be replaced on their own nodes, and where they go.

use dovetail_inventory::reach::PodGroup;
use dovetail_model::Resources;

use super::room::is_left;
use super::trial_nodes::{RequirementId, TrialNodes};

/// Where the pods of a group go that cannot be replaced on their own nodes.
pub(super) struct Moves {
    /// Nodes of those that have a place.
    pub(super) placed: Vec<usize>,
    /// Places in the group of all that move.
    pub(super) moved: Vec<usize>,
}

impl TrialNodes<'_> {
    /// The pods that run and whose replacements, which ask for this, cannot run on the same node.
    pub(super) fn moves(
        &mut self,
        group: &PodGroup,
        (requirement, asked): (RequirementId, &Resources),
    ) -> Moves {
        let mut moved = Vec::new();
        let on_nodes = group.pods.iter().enumerate();
        for (place, node) in on_nodes.filter_map(|(place, (_, node))| Some((place, (*node)?))) {
            // A pod whose template names its node starts there whether or not it is cordoned.
            let is_shut = self.closed[node] && !group.is_bound_by_name;
            if is_shut || !self.stays(requirement, node, (&group.pod.requests, asked)) {
                moved.push(place);
            }
        }
        let placed = self.placed(requirement, asked, moved.len());
        Moves { placed, moved }
    }

    /// Whether each node of a group has room for one more pod beside those that run there.
    pub(super) fn take_one_more(
        &mut self,
        group: &PodGroup,
        (requirement, asked): (RequirementId, &Resources),
    ) -> bool {
        let mut nodes = group.pods.iter().filter_map(|(_, node)| *node);
        nodes.all(|node| {
            self.fits(requirement, node)
                && is_left(&self.all[node].allocatable, &self.used[node], asked)
        })
    }

    /// Nodes that accept pods now and have room for so many of them, one for each that has a
    /// place.
    fn placed(
        &mut self,
        requirement: RequirementId,
        asked: &Resources,
        count: usize,
    ) -> Vec<usize> {
        let mut placed = Vec::new();
        if count == 0 {
            return placed;
        }
        for node in self.first_with_room(requirement, asked)..self.all.len() {
            if placed.len() == count {
                break;
            }
            if !self.has_room(requirement, asked, node) {
                continue;
            }
            let mut used = self.used[node].clone();
            while placed.len() < count && is_left(&self.all[node].allocatable, &used, asked) {
                used.add_times(asked, 1);
                placed.push(node);
            }
        }
        placed
    }

    /// Whether a pod that runs on a node can be replaced there by one that asks for something else,
    /// if the node accepts pods.
    fn stays(
        &mut self,
        requirement: RequirementId,
        node: usize,
        (old, new): (&Resources, &Resources),
    ) -> bool {
        if !self.fits(requirement, node) {
            return false;
        }
        let mut used = self.used[node].clone();
        used.add_times(old, -1);
        // What is overbooked already is no matter of the patch.
        is_left(&self.all[node].allocatable, &used, new) || is_within(new, old)
    }
}

/// Whether nothing is asked for beyond what was.
fn is_within(new: &Resources, old: &Resources) -> bool {
    is_left(old, &Resources::default(), new)
}

//! Which pods of a changed template cannot be replaced on their own nodes, and where they go.

use std::sync::Arc;

use dovetail_model::{Requirement, Resources};
use dovetail_objects::Pod;

use super::reach::PodGroup;
use super::room::is_left;
use super::trial_nodes::TrialNodes;

/// Where the pods of a group go that cannot be replaced on their own nodes.
pub(super) struct Moves {
    /// Nodes of those that have a place.
    pub(super) placed: Vec<usize>,
    /// Places in the group of all that move.
    pub(super) moved: Vec<usize>,
}

impl TrialNodes<'_> {
    /// The pods that run and whose replacements cannot, or have to, run on another node.
    pub(super) fn moves(&mut self, group: &PodGroup, pod: &Pod) -> Moves {
        let requirement = Arc::new(self.requirement(pod));
        let mut moved = Vec::new();
        let on_nodes = group.pods.iter().enumerate();
        for (place, node) in on_nodes.filter_map(|(place, (_, node))| Some((place, (*node)?))) {
            if !self.stays(&requirement, node, (&group.pod.requests, &pod.requests)) {
                moved.push(place);
            }
        }
        let placed = self.placed(&requirement, &pod.requests, moved.len());
        Moves { placed, moved }
    }

    /// Nodes that accept pods now and have room for so many of them, one for each that has a
    /// place.
    fn placed(
        &mut self,
        requirement: &Arc<Requirement>,
        asked: &Resources,
        count: usize,
    ) -> Vec<usize> {
        let mut placed = Vec::new();
        for node in 0..self.all.len() {
            if placed.len() == count {
                break;
            }
            let has_room = is_left(&self.all[node].allocatable, &self.used[node], asked);
            if self.closed[node] || !has_room || !self.fits(requirement, node) {
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

    /// Whether a pod that runs on a node can be replaced there by one that asks for something else.
    fn stays(
        &mut self,
        requirement: &Arc<Requirement>,
        node: usize,
        (old, new): (&Resources, &Resources),
    ) -> bool {
        if self.closed[node] || !self.fits(requirement, node) {
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

//! Rolling updates that jam because pods keep each other off their nodes: the rule of a pod holds
//! until the pod is gone, against new pods without the rule, too.

use std::collections::BTreeSet;

use dovetail_inventory::reach::PodGroup;
use dovetail_model::{Node, Resources};
use dovetail_objects::labels::HOST_NAME;
use dovetail_patches::Patch;

use super::group_index::GroupIndex;
use super::rolling_update::RollingUpdate;
use super::trial_nodes::{RequirementId, TrialNodes};

/// A label of a node with its value; every node has a name.
pub(super) fn domain<'n>(node: &'n Node, label: &'n str) -> Option<(&'n str, &'n str)> {
    let value = node.labels.get(label).map(String::as_str);
    let name = (label == HOST_NAME).then_some(&*node.name);
    Some((label, value.or(name)?))
}

impl TrialNodes<'_> {
    /// How many replicas do not run now, if the rolling update of a patch would not go on: it goes
    /// on where more than these may be unavailable. `new`: what a new pod of the group asks for.
    ///
    /// New pods start on nodes of terminated pods and on free nodes. The controller terminates a
    /// running pod only while more pods are available than the strategy asks for.
    pub(super) fn jams(
        &mut self,
        (patch, index): (&Patch, &GroupIndex<'_>),
        group: &PodGroup,
        new: (RequirementId, &Resources),
    ) -> Option<usize> {
        let RollingUpdate { replicas, unavailable, needs_all_at_once, .. } =
            RollingUpdate::of(patch)?;
        if group.apart.from(&group.apart).is_empty() {
            return None;
        }
        let groups = index.of_owner(&patch.object).iter().map(|place| &index.groups[*place]);
        let pods = groups.flat_map(|of| &of.pods);
        let running = pods.filter(|(_, node)| node.is_some()).count();
        let missing = replicas.saturating_sub(running);
        let needed = match needs_all_at_once {
            true => replicas,
            false => (missing + 1).saturating_sub(unavailable),
        };
        if replicas == 0 || running == 0 || needed == 0 {
            return None;
        }
        (self.free_nodes(index, group, new, needed) < needed).then_some(missing)
    }

    /// Nodes that take a new pod of a group beside all pods that are there, up to so many.
    fn free_nodes(
        &mut self,
        index: &GroupIndex<'_>,
        group: &PodGroup,
        (requirement, asked): (RequirementId, &Resources),
        needed: usize,
    ) -> usize {
        let reach = self.reach;
        let own = group.apart.from(&group.apart);
        let mut labels = own.clone();
        let mut taken: BTreeSet<(&str, &str)> = BTreeSet::new();
        for place in index.perhaps_apart(&group.apart) {
            let other = &reach.groups[place];
            let between =
                group.apart.from(&other.apart).into_iter().chain(other.apart.from(&group.apart));
            let between: BTreeSet<&str> = between.collect();
            if between.is_empty() {
                continue;
            }
            for node in other.pods.iter().filter_map(|(_, node)| *node) {
                let labels = between.iter().copied();
                taken.extend(labels.filter_map(|label| domain(&reach.nodes[node], label)));
            }
            labels.extend(between);
        }
        let mut free = 0;
        for place in self.first_with_room(requirement, asked)..reach.nodes.len() {
            if free == needed {
                break;
            }
            let node = &reach.nodes[place];
            let mut domains = labels.iter().copied().filter_map(|label| domain(node, label));
            let is_free = domains.all(|of_node| !taken.contains(&of_node))
                && self.has_room(requirement, asked, place);
            if is_free {
                free += 1;
                taken.extend(own.iter().copied().filter_map(|label| domain(node, label)));
            }
        }
        free
    }
}

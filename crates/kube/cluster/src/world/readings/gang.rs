//! A gang by its terms: which roles its members have, what it lacks, and where they must go.

use dovetail_model::requirement::Operator;
use dovetail_model::{ConditionCause, NodeCondition, SelectorTerm, TopologyRequest};

use super::roll::{Lack, Roll, live_members};
use crate::world::objects::Objects;
use crate::world::objects::pods::Slot;
use dovetail_translate::NotYet;
use dovetail_translate::gang::topology::of_set;
use dovetail_translate::gang::{GangName, GangTerms, terms};
use dovetail_translate::levels::level_label;

/// The name of a node, where conditions ask for a label.
const NODE_NAME: &str = "metadata.name";

/// On what terms a gang starts, by its objects and its pods that are not over; `None` if there is
/// none of these.
pub(crate) fn terms_of(objects: &Objects, gang: &GangName) -> Option<Result<GangTerms, NotYet>> {
    let members = live_members(objects, gang);
    if members.is_empty() {
        return None;
    }
    Some(terms(gang, objects.descriptions.of(gang), &members, objects.network.known()))
}

/// A gang by its terms.
#[derive(Clone, Copy)]
pub(crate) struct GangReading<'o> {
    pub(crate) objects: &'o Objects,
    pub(crate) name: &'o GangName,
    pub(crate) terms: &'o GangTerms,
}

impl GangReading<'_> {
    /// What the gang lacks if it has these members.
    pub(crate) fn lack(&self, members: impl Iterator<Item = Slot>) -> Lack {
        let mut of_roles: Vec<u32> = self.terms.roles.iter().map(|role| role.min).collect();
        let mut pods = self.terms.min;
        for slot in members {
            pods = pods.saturating_sub(1);
            if let Some(role) = self.role(slot) {
                of_roles[role] = of_roles[role].saturating_sub(1);
            }
        }
        let of_all_roles = of_roles.iter().fold(0_u32, |sum, lack| sum.saturating_add(*lack));
        Lack { pods: pods.max(of_all_roles), of_roles }
    }

    /// Of the pods that must start together so many are there: on nodes, or able to take one.
    pub(crate) fn present(&self, roll: &Roll) -> u32 {
        self.terms.min.saturating_sub(self.lack(roll.there()).pods)
    }

    /// Which of the roles that the terms name a member has.
    pub(crate) fn role(&self, slot: Slot) -> Option<usize> {
        if self.terms.roles.is_empty() {
            return None;
        }
        let role = self.terms.parts.role_of(self.name.source, &self.objects.pods.get(slot).pod);
        self.terms.roles.iter().position(|known| *known.name == *role)
    }

    /// Where the pods of a member's set must and should be. Whether there are these levels was
    /// looked at before.
    pub(crate) fn own_topology(&self, slot: Slot, role: Option<usize>) -> TopologyRequest {
        if let Some(role) = role.filter(|_| self.terms.parts.have_places()) {
            return self.terms.roles[role].topology.clone();
        }
        let pod = &self.objects.pods.get(slot).pod;
        of_set(pod, self.objects.network.known()).unwrap_or_default()
    }

    /// What a member must have beside its own that goes where those are that have a node: those of
    /// its gang, and those of its set.
    pub(crate) fn nearness(&self, slot: Slot, roll: &Roll) -> Vec<NodeCondition> {
        let mut conditions = Vec::new();
        if let (Some(level), Some(placed)) = (&self.terms.topology.required, roll.placed.first()) {
            conditions.extend(self.in_domain_of(*placed, level));
        }
        let own = self.own_topology(slot, self.role(slot)).required;
        if let (Some(level), Some(placed)) = (own, self.placed_of_set(slot, roll)) {
            conditions.extend(self.in_domain_of(placed, &level));
        }
        conditions
    }

    /// A member of the same set as this one that has a node, if their set is to share a domain.
    pub(crate) fn placed_of_set(&self, slot: Slot, roll: &Roll) -> Option<Slot> {
        let role = self.role(slot);
        let own = self.own_topology(slot, role);
        own.required.as_ref()?;
        let is_of_set =
            |other: &Slot| self.role(*other) == role && self.own_topology(*other, role) == own;
        roll.placed.iter().copied().find(is_of_set)
    }

    /// That a node is in the domain of a pod that has one.
    fn in_domain_of(&self, slot: Slot, level: &str) -> Option<NodeCondition> {
        let node = self.objects.pods.get(slot).reported.node()?;
        let is = |key: &str, value: &str| SelectorTerm {
            key: key.to_owned(),
            operator: Operator::In,
            values: vec![value.to_owned()],
        };
        let levels = &self.objects.network.topology.levels;
        let terms = match levels.iter().position(|known| known.name == level) {
            // The second term holds on every node, and says what the first one is about.
            None => {
                let (key, operator) = (level_label(level), Operator::DoesNotExist);
                let marked = SelectorTerm { key, operator, values: Vec::new() };
                vec![is(NODE_NAME, node), marked]
            }
            Some(depth) => {
                let labels = &self.objects.nodes.reported_node(node)?.labels;
                let above = levels.iter().take(depth + 1);
                let values = above.map(|known| Some(is(&known.label, labels.get(&known.label)?)));
                values.collect::<Option<Vec<_>>>()?
            }
        };
        Some(NodeCondition { any_of: vec![terms], cause: ConditionCause::NodeAffinity })
    }
}

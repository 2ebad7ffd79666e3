//! Scopes: which nodes count for a rule, with their pods and as domains.

use std::collections::BTreeSet;

use dovetail_model::{
    ConditionCause, CounterScope, Node, NodeCondition, NodeId, Requirement, RuleKind, Toleration,
};

use crate::intern::Interner;
use crate::masks::tolerates_taints;

/// What a node must be like to count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    labels: BTreeSet<String>,
    names: BTreeSet<String>,
    conditions: Vec<NodeCondition>,
    /// `None`: taints are not looked at.
    tolerations: Option<Vec<Toleration>>,
}

/// Interned scopes with the nodes in each.
#[derive(Clone, Debug, Default)]
pub struct Scopes {
    scopes: Interner<Scope>,
    members: Vec<Vec<bool>>,
}

impl Scope {
    /// The scope of a rule of this requirement; `None` is all nodes.
    pub fn of(requirement: &Requirement, scope: CounterScope) -> Option<Self> {
        let CounterScope::Eligible { honor_affinity, honor_taints } = scope else { return None };
        let spread = requirement.rules.iter().filter(|r| matches!(r.kind, RuleKind::Spread { .. }));
        let mut own = Self { labels: spread.map(|r| r.label.clone()).collect(), ..Self::default() };
        if honor_affinity {
            let of_affinity = |c: &&NodeCondition| c.cause == ConditionCause::NodeAffinity;
            own.names = requirement.node_names.clone();
            own.conditions =
                requirement.node_conditions.iter().filter(of_affinity).cloned().collect();
        }
        own.tolerations = honor_taints.then(|| requirement.tolerations.clone());
        Some(own)
    }

    fn has(&self, node: &Node) -> bool {
        let tolerates = |tolerations: &Vec<Toleration>| tolerates_taints(node, tolerations);
        self.labels.iter().all(|label| node.label(label).is_some())
            && (self.names.is_empty() || self.names.contains(&*node.name))
            && self.conditions.iter().all(|condition| condition.accepts(node))
            && self.tolerations.as_ref().is_none_or(tolerates)
    }
}

impl Scopes {
    /// The number of a scope; a new one is filled from the nodes that are there.
    pub fn intern<'n>(
        &mut self,
        scope: &Scope,
        nodes: impl Iterator<Item = (NodeId, &'n Node)>,
    ) -> u32 {
        let (number, new) = self.scopes.intern(scope);
        if new {
            let mut members = Vec::new();
            for (slot, node) in nodes {
                members.resize(members.len().max(slot.index() + 1), false);
                members[slot.index()] = scope.has(node);
            }
            self.members.push(members);
        }
        number
    }

    /// Whether a node is in a scope; `None` is all nodes.
    #[inline]
    pub fn has(&self, scope: Option<u32>, node: NodeId) -> bool {
        let Some(scope) = scope else { return true };
        self.members[scope as usize].get(node.index()).copied().unwrap_or(false)
    }

    /// Takes over a changed node (`None`: it is gone).
    pub fn set(&mut self, slot: NodeId, node: Option<&Node>) {
        for (number, members) in self.members.iter_mut().enumerate() {
            members.resize(members.len().max(slot.index() + 1), false);
            let scope = self.scopes.get(number as u32);
            members[slot.index()] = node.is_some_and(|node| scope.has(node));
        }
    }
}

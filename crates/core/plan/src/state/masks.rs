//! Static masks: labels, names, taints and conditions, judged once per (mask, node) until the node changes.

use std::collections::BTreeSet;

use dovetail_model::{
    Condition, Node, NodeCondition, NodeId, Requirement, TaintEffect, Toleration,
};

use crate::cause::Cause;
use crate::state::intern::Interner;
use crate::state::nodes::Nodes;

/// The part of a requirement that reads only labels, name, taints and condition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mask {
    node_conditions: Vec<NodeCondition>,
    node_names: BTreeSet<String>,
    tolerations: Vec<Toleration>,
}

/// Interned masks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Masks {
    masks: Interner<Mask>,
    /// Per mask and node slot: version of the node's static part × 16 + cause.
    verdicts: Vec<Vec<u64>>,
}

impl Masks {
    pub(crate) fn intern(&mut self, requirement: &Requirement) -> u32 {
        let (number, new) = self.masks.intern(&Mask {
            node_conditions: requirement.node_conditions.clone(),
            node_names: requirement.node_names.clone(),
            tolerations: requirement.tolerations.clone(),
        });
        if new {
            self.verdicts.push(Vec::new());
        }
        number
    }

    /// What keeps pods with this mask off the node; [`Cause::None`] if nothing does.
    #[inline]
    pub(crate) fn verdict(
        &mut self,
        mask: u32,
        node: NodeId,
        version: u64,
        nodes: &Nodes,
    ) -> Cause {
        let known = self.verdicts[mask as usize].get(node.index()).copied().unwrap_or(0);
        if known >> 4 == version {
            return Cause::ALL[(known & 15) as usize];
        }
        self.judge(mask, node.index(), version, &nodes.cold(node).node)
    }

    #[cold]
    fn judge(&mut self, mask: u32, slot: usize, version: u64, node: &Node) -> Cause {
        let cause = self.masks.get(mask).judge(node);
        let verdicts = &mut self.verdicts[mask as usize];
        if verdicts.len() <= slot {
            verdicts.resize(slot + 1, 0);
        }
        verdicts[slot] = version << 4 | cause as u64;
        cause
    }

    /// Whether labels and name allow the node, whatever its taints and condition.
    pub(crate) fn selects(&self, mask: u32, node: &Node) -> bool {
        self.masks.get(mask).selects(node)
    }
}

impl Mask {
    fn judge(&self, node: &Node) -> Cause {
        match node.condition {
            Condition::Ready => {}
            Condition::Starting => return Cause::Starting,
            Condition::Cordoned => return Cause::Cordoned,
            Condition::NotReady => return Cause::NotReady,
        }
        let untolerated = node.taints.iter().any(|taint| {
            taint.effect != TaintEffect::PreferNoSchedule
                && !self.tolerations.iter().any(|toleration| toleration.accepts(taint))
        });
        match (untolerated, self.selects(node)) {
            (true, _) => Cause::Taint,
            (false, false) => Cause::Selector,
            (false, true) => Cause::None,
        }
    }

    fn selects(&self, node: &Node) -> bool {
        let named = self.node_names.is_empty() || self.node_names.contains(&*node.name);
        named && self.node_conditions.iter().all(|condition| condition.accepts(node))
    }
}

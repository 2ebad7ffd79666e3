//! Static masks: labels, names, taints and conditions, judged once per (mask, node) until the node
//! changes.

use std::collections::BTreeSet;

use dovetail_model::{
    ConditionCause, Node, NodeAvailability, NodeCondition, NodeId, Requirement, Taint, TaintEffect,
    Toleration,
};

use crate::cause::Cause;
use crate::intern::Interner;
use crate::nodes::Nodes;

/// The part of a requirement that reads only labels, name, taints and condition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mask {
    node_conditions: Vec<NodeCondition>,
    node_names: BTreeSet<String>,
    tolerations: Vec<Toleration>,
}

/// Interned masks.
#[derive(Clone, Debug, Default)]
pub struct Masks {
    masks: Interner<Mask>,
    /// Per mask and node slot: version of the node's static part × 2^16 + verdict.
    verdicts: Vec<Vec<u64>>,
}

/// What a mask says of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskVerdict {
    /// The first thing that is looked at before amounts.
    pub early: Cause,
    /// What is looked at after amounts, one bit per cause, in the order of [`LATE`].
    late: u8,
}

/// Causes that are looked at after amounts.
const LATE: [Cause; 8] = [
    Cause::VolumeDriver,
    Cause::VolumeNodeAffinity,
    Cause::StorageTopology,
    Cause::StorageCapacity,
    Cause::VolumeZone,
    Cause::DeviceClaims,
    Cause::DeclaredFeatures,
    Cause::SharedGpus,
];

impl MaskVerdict {
    /// Whether nothing of what is looked at after amounts is in the way.
    #[inline]
    pub fn is_late_clear(self) -> bool {
        self.late == 0
    }

    /// What is in the way of what is looked at after amounts, in order.
    pub fn late(self) -> impl Iterator<Item = Cause> {
        LATE.into_iter()
            .enumerate()
            .filter(move |(bit, _)| self.late >> bit & 1 == 1)
            .map(|(_, c)| c)
    }

    fn packed(self) -> u64 {
        (self.early as u64) << 8 | u64::from(self.late)
    }

    #[inline]
    fn unpacked(packed: u64) -> Self {
        Self { early: Cause::ALL[(packed >> 8 & 255) as usize], late: packed as u8 }
    }
}

impl Masks {
    /// The number of what a requirement says of nodes, new where it has none.
    pub fn intern(&mut self, requirement: &Requirement) -> u32 {
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

    /// What keeps pods with this mask off the node.
    #[inline]
    pub fn verdict(&mut self, mask: u32, node: NodeId, version: u64, nodes: &Nodes) -> MaskVerdict {
        let known = self.verdicts[mask as usize].get(node.index()).copied().unwrap_or(0);
        if known >> 16 == version {
            return MaskVerdict::unpacked(known);
        }
        self.judge(mask, node.index(), version, &nodes.cold(node).node)
    }

    #[cold]
    fn judge(&mut self, mask: u32, slot: usize, version: u64, node: &Node) -> MaskVerdict {
        let verdict = self.masks.get(mask).judge(node);
        let verdicts = &mut self.verdicts[mask as usize];
        if verdicts.len() <= slot {
            verdicts.resize(slot + 1, 0);
        }
        verdicts[slot] = version << 16 | verdict.packed();
        verdict
    }
}

impl Mask {
    fn judge(&self, node: &Node) -> MaskVerdict {
        let refused = |condition: &&NodeCondition| !condition.accepts(node);
        let mut late = 0;
        for condition in self.node_conditions.iter().filter(refused) {
            let cause = late_cause(condition.cause);
            late |= LATE.iter().position(|other| Some(*other) == cause).map_or(0, |bit| 1 << bit);
        }
        MaskVerdict { early: self.judge_early(node), late }
    }

    fn judge_early(&self, node: &Node) -> Cause {
        match node.condition {
            NodeAvailability::Ready => {}
            NodeAvailability::Starting => return Cause::Starting,
            NodeAvailability::Cordoned => return Cause::Cordoned,
            NodeAvailability::NotReady => return Cause::NotReady,
        }
        if !self.node_names.is_empty() && !self.node_names.contains(&*node.name) {
            return Cause::NodeName;
        }
        let tolerates = |taint: &Taint| self.tolerations.iter().any(|t| t.accepts(taint));
        if node.unschedulable && !tolerates(&Node::mark()) {
            return Cause::Unschedulable;
        }
        if !tolerates_taints(node, &self.tolerations) {
            return Cause::Taint;
        }
        let mut conditions = self.node_conditions.iter();
        match conditions.all(|c| c.cause != ConditionCause::NodeAffinity || c.accepts(node)) {
            true => Cause::None,
            false => Cause::NodeAffinity,
        }
    }
}

/// Whether every taint that keeps pods off the node is tolerated.
pub fn tolerates_taints(node: &Node, tolerations: &[Toleration]) -> bool {
    let mut hard = node.taints.iter().filter(|taint| taint.effect != TaintEffect::PreferNoSchedule);
    hard.all(|taint| tolerations.iter().any(|toleration| toleration.accepts(taint)))
}

/// The cause of a condition that is looked at after amounts; `None` for the others.
fn late_cause(cause: ConditionCause) -> Option<Cause> {
    match cause {
        ConditionCause::NodeAffinity => None,
        ConditionCause::VolumeDriver => Some(Cause::VolumeDriver),
        ConditionCause::VolumeNodeAffinity => Some(Cause::VolumeNodeAffinity),
        ConditionCause::StorageTopology => Some(Cause::StorageTopology),
        ConditionCause::StorageCapacity => Some(Cause::StorageCapacity),
        ConditionCause::VolumeZone => Some(Cause::VolumeZone),
        ConditionCause::DeviceClaims => Some(Cause::DeviceClaims),
        ConditionCause::DeclaredFeatures => Some(Cause::DeclaredFeatures),
        ConditionCause::SharedGpus => Some(Cause::SharedGpus),
    }
}

//! What pods require, each requirement kept once.

use std::sync::Arc;

use dovetail_model::Requirement;
use rustc_hash::FxHashSet;

use super::gang::GangReading;
use super::roll::Roll;
use super::standing::requirement;
use crate::world::objects::Objects;
use crate::world::objects::pods::Slot;
use dovetail_translate::held;

/// Fewer are never looked through.
const FEW: usize = 64;

/// The requirements in use, and some that were.
#[derive(Debug, Default)]
pub(crate) struct Requirements {
    known: FxHashSet<Arc<Requirement>>,
    in_use: usize,
}

impl Requirements {
    /// The one that is kept of equal requirements.
    pub(crate) fn intern(&mut self, requirement: Requirement) -> Arc<Requirement> {
        if let Some(known) = self.known.get(&requirement) {
            return Arc::clone(known);
        }
        if self.known.len() >= 2 * self.in_use.max(FEW) {
            // order-free: what nothing else holds is dropped, whatever the order.
            self.known.retain(|known| Arc::strong_count(known) > 1);
            self.in_use = self.known.len();
        }
        let requirement = Arc::new(requirement);
        self.known.insert(Arc::clone(&requirement));
        requirement
    }

    /// What a pod that runs would need if it waited, as far as that can be said.
    pub(crate) fn would_need(&mut self, objects: &Objects, slot: Slot) -> Arc<Requirement> {
        let pod = &objects.pods.get(slot).pod;
        let required = requirement(objects, slot).unwrap_or_else(|_| {
            let held = held(pod, &objects.facts, &objects.settings.rules);
            Requirement { resources: held.resources, ..Requirement::default() }
        });
        self.intern(required)
    }

    /// What a member needs that must go where those are that have a node.
    pub(crate) fn near(
        &mut self,
        gang: &GangReading<'_>,
        slot: Slot,
        wish: Arc<Requirement>,
        roll: &Roll,
    ) -> Arc<Requirement> {
        let conditions = gang.nearness(slot, roll);
        if conditions.is_empty() {
            return wish;
        }
        let mut requirement = Requirement::clone(&wish);
        requirement.node_conditions.extend(conditions);
        self.intern(requirement)
    }
}

//! Gangs that run when a leadership begins: their pods say what was decided for them, and are pods
//! of one job again.

use std::sync::Arc;

use dovetail_model::{PodId, Requirement};

use super::describe::MOST_POD_SETS;
use crate::world::pods::Slot;
use crate::world::standing::Told;
use crate::world::{DECISION, World};

impl World {
    /// Names the members of each gang that run by our decisions as pods of one job. Nothing of it
    /// is told: the engine learns it from the snapshot that it starts from.
    pub(in crate::world) fn recognise_gangs(&mut self) {
        let gangs = self.gangs.by_name.values();
        let gangs: Vec<Vec<Slot>> =
            gangs.map(|gang| gang.members.values().copied().collect()).collect();
        for mut members in gangs {
            members.retain(|slot| self.runs_by_our_decision(*slot));
            self.join_in_one_job(&members);
        }
    }

    /// Whether a pod runs for the engine because we decided it, and no other scheduler.
    pub(super) fn runs_by_our_decision(&self, slot: Slot) -> bool {
        let entry = self.pods.get(slot);
        let is_decided = entry.pod.meta.annotations.get(DECISION).is_some();
        is_decided && self.is_ours(&entry.pod) && matches!(entry.told, Told::Running { .. })
    }

    /// Makes pods that run members of the first one's job, as far as they are in its queue; those
    /// that need the same for the same role are a set.
    pub(in crate::world) fn join_in_one_job(&mut self, members: &[Slot]) {
        let [first, _, ..] = members else { return };
        let Some(job) = self.pods.get(*first).id.map(|id| id.job) else { return };
        let queue = self.queue_of(*first);
        let together = members.iter().filter(|slot| self.queue_of(**slot) == queue);
        let together: Vec<Slot> = together.copied().collect();
        let mut sets: Vec<(Arc<Requirement>, Option<usize>, u32)> = Vec::new();
        let mut named = Vec::with_capacity(together.len());
        for slot in &together {
            let (requirement, role) = (self.would_need(*slot), self.role_of(*slot));
            let is_one = |(known, of, _): &(Arc<Requirement>, Option<usize>, u32)| {
                Arc::ptr_eq(known, &requirement) && *of == role
            };
            let set = sets.iter().position(is_one).unwrap_or_else(|| {
                sets.push((requirement, role, 0));
                sets.len() - 1
            });
            if set >= MOST_POD_SETS {
                return;
            }
            named.push(PodId { job, pod_set: set as u16, ordinal: sets[set].2 });
            sets[set].2 += 1;
        }
        for (slot, id) in together.iter().zip(named) {
            if slot != first {
                self.stop_counting(*slot);
            }
            self.set_id(*slot, Some(id), true);
        }
    }

    /// The role of a member, of those that the terms of its gang name.
    pub(in crate::world) fn role_of(&self, slot: Slot) -> Option<usize> {
        let name = self.pods.get(slot).gang.as_ref()?;
        self.role_in(name, &self.terms_of(name)?.ok()?, slot)
    }
}

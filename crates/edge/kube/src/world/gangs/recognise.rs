//! Gangs that run when a leadership begins: their pods say what was decided for them, and are pods of one job again.

use std::sync::Arc;

use dovetail_model::{PodId, Requirement};

use super::describe::MOST_POD_SETS;
use crate::world::pods::Slot;
use crate::world::standing::Told;
use crate::world::{DECISION, World};

impl World {
    /// Names the members of each gang that run by our decisions as pods of one job. Nothing of it is told: the engine
    /// learns it from the snapshot that it starts from.
    pub(in crate::world) fn recognise_gangs(&mut self) {
        let gangs = self.gangs.by_name.values();
        let gangs: Vec<Vec<Slot>> =
            gangs.map(|gang| gang.members.values().copied().collect()).collect();
        for mut members in gangs {
            members.retain(|slot| {
                let entry = self.pods.get(*slot);
                let is_ours = entry.pod.meta.annotations.get(DECISION).is_some();
                is_ours && matches!(entry.told, Told::Running { .. })
            });
            self.join_in_one_job(&members);
        }
    }

    /// Makes pods that run members of the first one's job, as far as they are in its queue; those that need the
    /// same are a set.
    fn join_in_one_job(&mut self, members: &[Slot]) {
        let [first, _, ..] = members else { return };
        let Some(job) = self.pods.get(*first).id.map(|id| id.job) else { return };
        let queue = self.queue_of(*first);
        let together = members.iter().filter(|slot| self.queue_of(**slot) == queue);
        let together: Vec<Slot> = together.copied().collect();
        let mut sets: Vec<(Arc<Requirement>, u32)> = Vec::new();
        for slot in &together {
            let requirement = self.would_need(*slot);
            let known = sets.iter().position(|(known, _)| Arc::ptr_eq(known, &requirement));
            let set = known.unwrap_or_else(|| {
                sets.push((requirement, 0));
                sets.len() - 1
            });
            if set >= MOST_POD_SETS {
                return;
            }
            let ordinal = sets[set].1;
            sets[set].1 += 1;
            if slot != first {
                self.stop_counting(*slot);
            }
            self.set_id(*slot, Some(PodId { job, pod_set: set as u16, ordinal }), true);
        }
    }
}

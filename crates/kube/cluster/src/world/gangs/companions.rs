//! Members that run by themselves and cannot go on when others of their gang are stopped.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{JobId, PodId};

use crate::translate::gang::GangName;
use crate::world::World;
use crate::world::pods::Slot;
use crate::world::tell::LAST_AHEAD;

impl World {
    /// Pods of the same gangs as those that are stopped, where too few would be left to go on. The
    /// engine knows nothing of the gangs of members that were placed by themselves.
    pub fn companions(&self, stopped: &[PodId]) -> Vec<PodId> {
        let stopped: BTreeSet<Slot> =
            stopped.iter().filter_map(|pod| self.ids.get(pod)).copied().collect();
        let gangs: BTreeSet<&Arc<GangName>> =
            stopped.iter().filter_map(|slot| self.pods.get(*slot).gang.as_ref()).collect();
        let left = gangs.into_iter().flat_map(|name| self.left_without(name, &stopped));
        left.filter_map(|slot| self.pods.get(slot).id).collect()
    }

    /// Who would be left of a gang, if that is too few, or if its group says that all go with one.
    pub(in crate::world) fn left_without(
        &self,
        name: &Arc<GangName>,
        stopped: &BTreeSet<Slot>,
    ) -> Vec<Slot> {
        let Some(gang) = self.gangs.get(name) else { return Vec::new() };
        let Some(Ok(terms)) = self.terms_of(name) else { return Vec::new() };
        let mut roll = self.roll(gang);
        roll.placed.retain(|slot| !stopped.contains(slot));
        let may_go = |slot: &Slot| {
            !self.pods.get(*slot).pod.preemption.is_protected && !self.is_spared(*slot)
        };
        let is_whole = self.is_whole_group(name);
        match !is_whole && self.lack(name, &terms, roll.settled()).is_none() {
            true => Vec::new(),
            false => roll.placed.into_iter().filter(may_go).collect(),
        }
    }

    /// Whether the group of a gang says that all go with one.
    pub(in crate::world) fn is_whole_group(&self, name: &GangName) -> bool {
        self.gangs.groups.get(name).is_some_and(|group| group.is_stopped_whole)
    }

    /// Whether a gang has fewer pods than were ever decided for it, as far as they say.
    pub(in crate::world) fn has_lost_some(&self, name: &GangName) -> bool {
        self.gangs.get(name).is_some_and(|gang| {
            let decided = self.decided_pods(gang);
            decided != u32::MAX && (self.roll(gang).settled().count() as u32) < decided
        })
    }

    /// Whether a pod replaces one that its gang has lost: it is not stopped by itself.
    pub(in crate::world) fn replaces_another(&self, slot: Slot, job: JobId) -> bool {
        self.pods.get(slot).gang.is_some() && job.0 <= LAST_AHEAD
    }
}

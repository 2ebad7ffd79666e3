//! Pods that were placed by themselves in place of lost ones of their gang, and run: they are pods
//! of its job again, so that those for whom the gang is stopped find all of its room.

use std::collections::BTreeSet;

use dovetail_model::{Event, PodId};

use crate::translate::gang::GangName;
use crate::world::World;
use crate::world::pods::Slot;

impl World {
    /// Joins gangs again that run with pods apart from their job, unless something is under way
    /// with any of their pods: those wait until it is over.
    pub fn rejoin(&mut self, is_busy: impl Fn(PodId) -> bool) -> Vec<Event> {
        let mut events = Vec::new();
        for name in std::mem::take(&mut self.gangs.apart) {
            let Some(members) = self.to_be_joined(&name) else { continue };
            let ids = |slot: &Slot| self.pods.get(*slot).id;
            let jobs: BTreeSet<_> = members.iter().filter_map(ids).map(|id| id.job).collect();
            let all_run =
                jobs.iter().all(|job| self.slots_of(*job).all(|slot| members.contains(&slot)));
            if !all_run || members.iter().filter_map(ids).any(&is_busy) {
                self.gangs.apart.insert(name);
                continue;
            }
            events.extend(self.tell_as_one_job(&members));
            self.dirty.gangs.insert(name);
        }
        if !events.is_empty() {
            events.extend(self.settle());
        }
        events
    }

    /// Notes that a pod runs that replaced another of its gang.
    pub(in crate::world) fn note_apart(&mut self, slot: Slot) {
        if let Some(name) = self.pods.get(slot).gang.clone().filter(|_| self.is_apart(slot)) {
            self.gangs.apart.insert(name);
        }
    }

    /// Whether a pod is in place of a lost one of its gang, and not in its job.
    fn is_apart(&self, slot: Slot) -> bool {
        let entry = self.pods.get(slot);
        !entry.is_in_job && entry.id.is_some_and(|id| self.replaces_another(slot, id.job))
    }

    /// The pods of a gang that run by our decisions, those aside that it can do without: in its
    /// job, or in place of a lost one. `None` if none of them is apart.
    fn to_be_joined(&self, name: &GangName) -> Option<Vec<Slot>> {
        let mut members: Vec<Slot> = self.gangs.get(name)?.members.values().copied().collect();
        members.retain(|slot| {
            self.runs_by_our_decision(*slot)
                && (self.pods.get(*slot).is_in_job || self.is_apart(*slot))
        });
        let queue = self.queue_of(*members.first()?);
        members.retain(|slot| self.queue_of(*slot) == queue);
        (members.len() > 1 && members.iter().any(|slot| self.is_apart(*slot))).then_some(members)
    }
}

//! Pods that run, reported again as pods of another job: because a pod of the job may not be
//! preempted, or may be again; because a gang that runs is one job again when a leadership begins;
//! and because pods that were placed by themselves in place of lost ones are pods of the gang's job
//! again, so that a preemptor of the gang finds all of its room.
//!
//! The engine learns who is protected when a job begins to run, so such a job is reported to it
//! again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::{Event, JobId, PodId, Requirement};

use super::Feed;
use super::jobs::{LAST_AHEAD, QueuePosition};
use super::pods::is_apart;
use crate::world::objects::Objects;
use crate::world::objects::pods::Slot;
use crate::world::objects::reported::Reported;
use crate::world::readings::decided::runs_by_our_decision;
use crate::world::readings::gang::{GangReading, terms_of};
use crate::world::readings::standing::{PodReading, standing};
use dovetail_translate::gang::GangName;
use dovetail_translate::started_ms;

/// A gang whose pods need more different things than this is refused.
pub(crate) const MOST_POD_SETS: usize = 4_096;

/// What it takes to report pods that run.
pub(crate) struct Running<'w> {
    pub(crate) objects: &'w mut Objects,
    pub(crate) feed: &'w mut Feed,
}

impl Running<'_> {
    /// Reports again those of these jobs that run: other pods of them are protected than before.
    pub(crate) fn note_protection(&mut self, jobs: BTreeSet<JobId>) {
        for job in jobs {
            let pods = &self.objects.pods;
            let slots: Vec<Slot> = pods.of_job(job).collect();
            let runs = |slot: &Slot| matches!(pods.get(*slot).reported, Reported::Running { .. });
            // Where a part of it is on its way, the whole is reported when the engine restarts; and
            // a job that leaves needs no protection.
            let leaves = slots.iter().all(|slot| pods.get(*slot).pod.meta.is_deleting());
            if slots.iter().all(runs) && !leaves {
                self.in_a_new_job(job, &slots);
            }
        }
    }

    /// The pods of a running job run on as those of a new one.
    fn in_a_new_job(&mut self, job: JobId, slots: &[Slot]) {
        let new = self.feed.jobs.next(QueuePosition::ahead(job.0 <= LAST_AHEAD));
        self.report_again(slots, |running| {
            for slot in slots {
                let entry = running.objects.pods.get(*slot);
                let (id, is_in_job) =
                    (entry.id.map(|id| PodId { job: new, ..id }), entry.is_in_job);
                running.objects.pods.set_id(*slot, id, is_in_job);
            }
        });
    }

    /// Ends pods that run for the engine, gives them other names in one job, and reports that it
    /// runs.
    fn report_again(&mut self, slots: &[Slot], name: impl FnOnce(&mut Self)) {
        let mut reported = Vec::new();
        for slot in slots.iter().copied() {
            self.feed.end(self.objects, slot);
            reported.push(std::mem::take(&mut self.objects.pods.get_mut(slot).reported));
        }
        name(self);
        let Self { objects, feed } = self;
        let mut pods = BTreeMap::new();
        for (slot, reported) in slots.iter().copied().zip(reported) {
            objects.pods.get_mut(slot).reported = reported;
            feed.counted.count(objects, slot);
            pods.extend(objects.pods.get(slot).id.map(|id| (id, slot)));
        }
        let is_gang = slots.iter().any(|slot| objects.pods.get(*slot).is_in_job);
        let job = pods.keys().next().map(|id| id.job);
        let (Some(job), Some(first)) = (job, slots.first()) else { return };
        let job = match is_gang {
            false => {
                let start_ms = started_ms(&objects.pods.get(*first).pod);
                feed.running_job(objects, *first, job, start_ms)
            }
            true => feed.running_gang(objects, job, &pods, objects.now_ms),
        };
        let holdings = slots.iter().filter_map(|slot| match standing(objects, *slot) {
            PodReading::Running(holding) => Some(*holding),
            _ => None,
        });
        let holdings = holdings.collect();
        feed.events.freed.push(Event::Adopted { job: Box::new(job), holdings });
    }

    /// Names the members of each gang that run by our decisions as pods of one job. Nothing of it
    /// is reported: the engine learns it from the snapshot that it starts from.
    pub(crate) fn recognize_gangs(&mut self) {
        let names: Vec<Arc<GangName>> = self.objects.members.names().map(Arc::clone).collect();
        for name in names {
            let members = self.objects.members.of(&name);
            let members = members.filter(|slot| runs_by_our_decision(self.objects, *slot));
            self.join_in_one_job(&members.collect::<Vec<_>>());
        }
    }

    /// Makes pods that run members of the first one's job, as far as they are in its queue; those
    /// that need the same for the same role are a set.
    fn join_in_one_job(&mut self, members: &[Slot]) {
        let Self { objects, feed } = self;
        let [first, _, ..] = members else { return };
        let Some(job) = objects.pods.get(*first).id.map(|id| id.job) else { return };
        let queue = objects.queue_of(*first);
        let together = members.iter().filter(|slot| objects.queue_of(**slot) == queue);
        let together: Vec<Slot> = together.copied().collect();
        let mut sets: Vec<(Arc<Requirement>, Option<usize>, u32)> = Vec::new();
        let mut named = Vec::with_capacity(together.len());
        for slot in &together {
            let requirement = feed.requirements.would_need(objects, *slot);
            let role = role_of(objects, *slot);
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
                feed.counted.stop_counting(objects, *slot);
            }
            objects.pods.set_id(*slot, Some(id), true);
        }
    }

    /// Joins gangs again that run with pods apart from their job, unless something is under way
    /// with any of their pods, such as a bind: those wait until it is over.
    pub(crate) fn rejoin(&mut self, is_busy: impl Fn(PodId) -> bool) {
        for name in std::mem::take(&mut self.feed.apart) {
            let Some(members) = to_be_joined(self.objects, &name) else { continue };
            let pods = &self.objects.pods;
            let ids = |slot: &Slot| pods.get(*slot).id;
            let jobs: BTreeSet<_> = members.iter().filter_map(ids).map(|id| id.job).collect();
            let all_run =
                jobs.iter().all(|job| pods.of_job(*job).all(|slot| members.contains(&slot)));
            let is_under_way = |pod| pods.decisions.is_open_for(pod) || is_busy(pod);
            if !all_run || members.iter().filter_map(ids).any(is_under_way) {
                self.feed.apart.insert(name);
                continue;
            }
            if let Some(first) = members.first() {
                self.report_again(&members, |running| {
                    running.feed.set_own_job(running.objects, *first, QueuePosition::Behind);
                    running.join_in_one_job(&members);
                });
            }
            self.objects.dirty.gangs.insert(name);
        }
    }
}

/// The role of a member, of those that the terms of its gang name.
fn role_of(objects: &Objects, slot: Slot) -> Option<usize> {
    let name = objects.pods.get(slot).gang.as_ref()?;
    let terms = terms_of(objects, name)?.ok()?;
    GangReading { objects, name, terms: &terms }.role(slot)
}

/// The pods of a gang that run by our decisions, those aside that it can do without: in its job, or
/// in place of a lost one. `None` if none of them is apart.
fn to_be_joined(objects: &Objects, name: &GangName) -> Option<Vec<Slot>> {
    let mut members: Vec<Slot> = objects.members.of(name).collect();
    members.retain(|slot| {
        runs_by_our_decision(objects, *slot)
            && (objects.pods.get(*slot).is_in_job || is_apart(objects, *slot))
    });
    let queue = objects.queue_of(*members.first()?);
    members.retain(|slot| objects.queue_of(*slot) == queue);
    (members.len() > 1 && members.iter().any(|slot| is_apart(objects, *slot))).then_some(members)
}

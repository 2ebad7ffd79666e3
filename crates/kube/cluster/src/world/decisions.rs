//! What the scheduler decides, and what follows from it for the engine.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{Event, JobId, NodeName, PodId};

use super::World;
use super::feed::running::Running;
use super::gangs::LostMembers;
use super::index::Index;
use super::key::PodKey;
use super::objects::exempt::{self, Exempt};
use super::objects::pods::{PodPause, Slot};
use super::objects::receipts::{self, RememberedBy};
use super::objects::reported::Reported;
use dovetail_translate::{NotYet, Receipt};

impl World {
    /// The engine has bound pods, all that it bound in one cycle: they hold their nodes until the
    /// watch or [`World::bind_failed`] says otherwise. Call it for everything the engine decides,
    /// before the next change: what follows for one job may be about another that the same cycle
    /// has started. Binds of one job come one after the other, and are one decision; `since_ms`
    /// says since when a job is pending.
    pub fn assumed(
        &mut self,
        binds: &[(PodId, NodeName)],
        since_ms: impl Fn(JobId) -> u64,
    ) -> Vec<Event> {
        let Index { objects, feed, gangs, .. } = &mut self.index;
        for of_job in binds.chunk_by(|(one, _), (next, _)| one.job == next.job) {
            let (first, of_gang) = objects.pods.decisions.take_numbers(of_job.len());
            for (number, (pod, node)) in (first..).zip(of_job) {
                let Some(slot) = objects.pods.by_id(*pod) else { continue };
                let (Reported::Waiting { requirement, .. } | Reported::Member { requirement }) =
                    &objects.pods.get(slot).reported
                else {
                    continue;
                };
                let requirement = Arc::clone(requirement);
                objects.pods.assign(slot, number, node, of_gang, since_ms(pod.job));
                feed.note_assumed(objects, slot, node, requirement);
                if let Some(gang) = objects.pods.get(slot).gang.clone() {
                    gangs.started(&gang, pod.job);
                    objects.dirty.gangs.insert(gang);
                }
                feed.counted.count(objects, slot);
            }
        }
        self.index.settle()
    }

    /// Binds that the engine decided were not carried out, and their pods wait again at once.
    /// Nothing follows for those that are meanwhile seen on a node, or gone.
    pub fn bind_failed(&mut self, pods: &[PodId]) -> Vec<Event> {
        let Index { objects, feed, .. } = &mut self.index;
        for pod in pods {
            let Some(slot) = objects.pods.by_id(*pod) else { continue };
            let entry = objects.pods.get(slot);
            let Reported::Assumed { requirement, .. } = &entry.reported else {
                // Its node went meanwhile.
                if entry.is_decided() && entry.pod.node.is_empty() {
                    feed.release(objects, slot);
                    objects.dirty.pods.insert(slot);
                }
                continue;
            };
            let (requirement, priority) = (Arc::clone(requirement), entry.pod.priority);
            let is_member = entry.gang.is_some();
            objects.pods.unassign(slot);
            objects.pods.index(slot);
            if !is_member {
                let queue = feed.counted.counted_for(pod.job).to_owned();
                feed.counted.stop_counting(objects, slot);
                let kept_room = BTreeSet::new();
                let reported = Reported::Waiting { requirement, priority, queue, kept_room };
                feed.note(objects, slot, reported);
                feed.events.freed.push(Event::BindFailed { pod: *pod });
            }
            objects.dirty.pods.insert(slot);
        }
        self.index.settle()
    }

    /// A bind that the engine decided was not carried out, and its pod is to be left alone until
    /// [`World::resume_pod`]: meanwhile it neither holds nor wants anything, and is left untouched
    /// for the reason given, if one is. Nothing follows if the pod is meanwhile seen on a node, or
    /// gone.
    pub fn pause_pod(&mut self, pod: &PodKey, why: Option<NotYet>) -> Vec<Event> {
        self.index.pause_pod(pod, Some(PodPause { why }))
    }

    /// A pod takes part again.
    pub fn resume_pod(&mut self, pod: &PodKey) -> Vec<Event> {
        self.index.pause_pod(pod, None)
    }

    /// As if these pods were gone: what a dry run would have preempted.
    pub fn assume_gone(&mut self, pods: &[PodId]) -> Vec<Event> {
        let objects = &mut self.index.objects;
        for pod in pods {
            if let Some(slot) = objects.pods.by_id(*pod) {
                objects.pods.get_mut(slot).is_assumed_gone = true;
                objects.dirty.pods.insert(slot);
            }
        }
        self.index.settle()
    }

    /// Something takes no part in preemption, or does again. A job that may not preempt gives back
    /// what is reserved for it.
    pub fn set_exempt(&mut self, what: &Exempt, is_exempt: bool) -> Vec<Event> {
        let objects = &mut self.index.objects;
        let slots: Vec<Slot> = match what {
            Exempt::Pod(pod) => {
                let Some(slot) = objects.pods.by_key(pod) else { return Vec::new() };
                objects.pods.get_mut(slot).is_exempt = is_exempt;
                vec![slot]
            }
            Exempt::Namespace(name) => {
                if !exempt::set(&mut objects.exempt.namespaces, name.clone(), is_exempt) {
                    return Vec::new();
                }
                objects.pods.of_namespace(name).collect()
            }
            Exempt::Preemptor(job) => {
                exempt::set(&mut objects.exempt.preemptors, *job, is_exempt);
                let first = objects.pods.of_job(*job).next();
                let gang = first.and_then(|slot| objects.pods.get(slot).gang.clone());
                objects.dirty.gangs.extend(gang);
                let mut events = self.index.settle();
                events.extend(self.preemption().submit_again(*job));
                return events;
            }
        };
        let jobs = slots.into_iter().filter_map(|slot| Some(objects.pods.get(slot).id?.job));
        let jobs = jobs.collect();
        self.index.note_protection(jobs)
    }

    /// A job is not pending any more: that it may not preempt is forgotten.
    pub fn forget_preemptor(&mut self, job: JobId) {
        self.index.objects.exempt.preemptors.remove(&job);
    }

    /// Notes one more preemption of pods, or none: what their object is to say, all of them
    /// together; `None` if that is nothing new, or it is gone.
    pub fn note_preempted(&mut self, by: &RememberedBy, one: Receipt) -> Option<Receipt> {
        receipts::note(by, one, &mut self.index.objects)
    }

    /// Joins gangs again that run with pods apart from their job, unless something is under way
    /// with any of their pods: those wait until it is over.
    pub fn rejoin(&mut self, is_busy: impl Fn(PodId) -> bool) -> Vec<Event> {
        let Index { objects, feed, .. } = &mut self.index;
        Running { objects, feed }.rejoin(is_busy);
        self.index.settle()
    }

    /// What running gangs have lost, as far as it is known only from those that are left: for a
    /// leader that begins. The most important and oldest gangs come first.
    pub fn lost_members(&mut self) -> Vec<LostMembers> {
        let Index { objects, feed, gangs, .. } = &mut self.index;
        gangs.lost_members(objects, &mut feed.requirements)
    }

    /// Keeps room for lost members: for one of the pod set of this number on each of these nodes.
    pub fn reserve_for_lost(
        &mut self,
        lost: &LostMembers,
        places: &[(u16, NodeName)],
    ) -> Vec<Event> {
        let Index { objects, feed, .. } = &mut self.index;
        lost.keep_room(objects, feed, places);
        self.index.settle()
    }

    /// The engine has given up room for a job of a higher priority.
    pub fn rooms_given_up(&mut self, names: &[String]) -> Vec<Event> {
        let Index { objects, feed, .. } = &mut self.index;
        objects.dirty.gangs.extend(feed.rooms.given_up(names));
        self.index.settle()
    }
}

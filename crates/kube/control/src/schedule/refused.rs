//! What follows when the server refuses to evict pods, or does not say whether it does: others are
//! looked for, and these are exempt for a while.
//!
//! A right that the scheduler's account lacks is missing for every pod of the namespace, so none of
//! them is tried: pods of other namespaces are evicted in their place, and the server is asked
//! again, after pauses, whether it would evict one.

use dovetail_cluster::world::PodKey;
use dovetail_model::JobId;

use super::evictions::victims_to_evict;
use super::known::Known;
use super::news::{EvictionRefused, News};
use super::preempting::Preempting;
use super::refusals::Lasts;
use crate::answer::lacked_right;
use crate::order::{EvictionCause, Order, OrderEnd};

impl Preempting {
    /// The server refuses to evict a pod.
    pub(super) fn eviction_refused(
        &mut self,
        known: &mut Known,
        victim: &PodKey,
        why: EvictionCause,
        code: u16,
        message: &str,
    ) {
        let is_for_another = why == EvictionCause::Preempted;
        if is_for_another && lacked_right(code, message).is_some() {
            return self.lacks_right(known, victim, code, message);
        }
        self.report_not_evicted(known, victim, Some(code), message);
        if !is_for_another {
            return;
        }
        // A server that is busy, or whose webhook fails, may evict it soon.
        let is_soon = matches!(code, 429 | 500);
        self.try_others(known, victim, if is_soon { Lasts::Briefly } else { Lasts::Long });
        if is_soon {
            known.orders.extend(self.take_back(&known.world, victim));
        }
    }

    /// The server does not answer an eviction: others are tried, so that one pod of which it says
    /// nothing does not keep all from starting.
    pub(super) fn eviction_unanswered(
        &mut self,
        known: &mut Known,
        victim: &PodKey,
        problem: &str,
    ) {
        self.report_not_evicted(known, victim, None, problem);
        self.try_others(known, victim, Lasts::Briefly);
    }

    fn report_not_evicted(
        &self,
        known: &mut Known,
        victim: &PodKey,
        code: Option<u16>,
        message: &str,
    ) {
        let jobs = self.jobs_waiting_for(&known.world, victim);
        let preemptor = jobs.first().and_then(|job| known.world.pods().pods_of(*job).next());
        known.news.push(News::EvictionRefused(Box::new(EvictionRefused {
            victim: victim.clone(),
            preemptor: preemptor.map(PodKey::of),
            code,
            message: message.to_owned(),
            is_for_all: false,
        })));
    }

    /// What was decided with the eviction of a pod is decided again, without this pod for a while.
    fn try_others(&mut self, known: &mut Known, victim: &PodKey, lasts: Lasts) {
        for job in self.jobs_waiting_for(&known.world, victim) {
            self.decide_again(known, job);
        }
        self.refusals.victim(victim, lasts, known.now_ms);
        let events = known.world.set_exempt(victim, true);
        known.apply(events);
    }

    /// An eviction for a job failed: the job is decided about as if it were new, and preempts no
    /// pod for a while if that happened too often.
    pub(super) fn decide_again(&mut self, known: &mut Known, job: JobId) {
        self.call_off_evictions(known, job);
        let events = match self.refusals.job(job, known.now_ms) {
            true => known.world.wait_patiently(job, true),
            false => known.world.preemption().submit_again(job),
        };
        known.apply(events);
        self.unnominate(known, job);
    }

    /// A pod whose condition says that its eviction was refused a short while ago is exempt for
    /// another leader, and for questions, too.
    pub(super) fn exempt_by_conditions(&mut self, known: &mut Known) {
        for (pod, kept_ms) in known.world.preemption().with_refused_eviction() {
            if self.refusals.victim_since(&pod, kept_ms, known.now_ms) {
                let events = known.world.set_exempt(&pod, true);
                known.apply(events);
            }
        }
    }

    /// A pod that no longer has that condition may be evicted again: its owner has removed it.
    pub(super) fn end_exemptions_taken_back(&mut self, known: &mut Known) {
        for pod in known.world.notices().evictable_again() {
            self.refusals.victims.forget(&pod);
            let events = known.world.set_exempt(&pod, false);
            known.apply(events);
        }
    }

    /// Ends exemptions of pods and pauses of jobs that are over.
    pub(super) fn end_exemptions(&mut self, known: &mut Known) {
        while let Some(pod) = self.refusals.victims.pop_due(known.now_ms) {
            let events = known.world.set_exempt(&pod, false);
            known.apply(events);
            // What became of its eviction was not known; it is there, and is not evicted.
            known.orders.extend(self.take_back(&known.world, &pod));
        }
        let world = &known.world;
        self.refusals.victims.sweep(|pod| world.pods().has(pod));
        for job in self.refusals.jobs_due(known.now_ms) {
            let events = known.world.wait_patiently(job, false);
            known.apply(events);
        }
    }

    /// The scheduler has no right to evict a pod, nor any other of its namespace.
    pub(super) fn lacks_right(
        &mut self,
        known: &mut Known,
        victim: &PodKey,
        code: u16,
        message: &str,
    ) {
        let is_to_be_told = self.refusals.right(&victim.namespace, message, known.now_ms);
        let mut jobs: Vec<JobId> = Vec::new();
        let mut spared = Vec::new();
        for (job, room) in &self.rooms {
            let victims = victims_to_evict(&known.world, &room.victims);
            if victims.iter().any(|pod| pod.namespace == victim.namespace) {
                jobs.push(*job);
                exempt.extend(victims);
            }
        }
        for job in &jobs {
            self.decide_again(known, *job);
        }
        let events = known.world.set_namespace_exempt(&victim.namespace, true);
        known.apply(events);
        // An earlier leader may have marked them.
        let marks: Vec<Order> =
            exempt.iter().filter_map(|pod| self.take_back(&known.world, pod)).collect();
        known.orders.extend(marks);
        if is_to_be_told {
            let first = jobs.first().and_then(|job| known.world.pods().pods_of(*job).next());
            known.news.push(News::EvictionRefused(Box::new(EvictionRefused {
                victim: victim.clone(),
                preemptor: first.map(PodKey::of),
                code: Some(code),
                message: message.to_owned(),
                is_for_all: true,
            })));
        }
    }

    /// Asks whether pods may be evicted now where that was not so, as long as any are pending.
    pub(super) fn ask_for_rights(&mut self, known: &mut Known) {
        if known.pending.pods() == 0 {
            return;
        }
        while let Some(namespace) = self.refusals.right_to_ask(known.now_ms) {
            match known.world.preemption().preemptible_in(&namespace) {
                Some(pod) => known.orders.push_back(Order::MayEvict { pod }),
                None => self.has_right_again(known, &namespace),
            }
        }
    }

    /// When it is to be asked for rights.
    pub(super) fn rights_due_ms(&self, known: &Known) -> Option<u64> {
        self.refusals.right_due_ms().filter(|_| known.pending.pods() > 0)
    }

    /// Takes the answer for a pod.
    pub(super) fn right_answered(&mut self, known: &mut Known, pod: &PodKey, end: &OrderEnd) {
        match end {
            OrderEnd::Refused { code, message } if lacked_right(*code, message).is_some() => {
                self.lacks_right(known, pod, *code, message);
            }
            // What a policy says of the pod says that there is the right.
            OrderEnd::Done | OrderEnd::Refused { .. } => {
                self.has_right_again(known, &pod.namespace)
            }
            OrderEnd::Gone | OrderEnd::CalledOff | OrderEnd::Unanswered { .. } => {
                self.refusals.ask_again(&pod.namespace, known.now_ms);
            }
        }
    }

    /// Pods of a namespace may be evicted.
    pub(super) fn has_right_again(&mut self, known: &mut Known, namespace: &str) {
        if self.refusals.has_right(namespace) {
            let events = known.world.set_namespace_exempt(namespace, false);
            known.apply(events);
        }
    }
}

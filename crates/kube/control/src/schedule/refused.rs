//! What follows when the server refuses to evict pods, or does not say whether it does: what was
//! decided with it is decided again, without the pod for a while.
//!
//! A right that the scheduler's account lacks is missing for every pod of the namespace, so none of
//! them is tried: pods of other namespaces are evicted in their place, and the server is asked
//! again, after pauses, whether it would evict one.

use dovetail_cluster::world::{Exempt, PodKey};
use dovetail_model::JobId;

use super::evictions::victims_to_evict;
use super::exemptions::Lasts;
use super::known::Known;
use super::news::{EvictionRefused, News};
use super::preempting::Preempting;
use crate::answer::lacked_right;
use crate::order::{EvictionCause, OrderEnd, PodOrder};

impl Preempting {
    /// The server refuses to evict a pod, or (without code) does not answer: others are tried, so
    /// that one pod of which the server says nothing does not keep all from starting.
    pub(super) fn eviction_failed(
        &mut self,
        known: &mut Known,
        victim: &PodKey,
        why: EvictionCause,
        (code, message): (Option<u16>, &str),
    ) {
        let is_for_another = why.is_for_another();
        let lacks_right = code.is_some_and(|code| lacked_right(code, message).is_some());
        if is_for_another && lacks_right {
            return self.lacks_right(known, victim, why, (code, message));
        }
        let jobs = self.jobs_waiting_for(&known.world, victim);
        let news = not_evicted(known, victim, jobs.first(), (code, message), false);
        known.news.push(news);
        if !is_for_another {
            return;
        }
        for job in jobs {
            self.decide_again(known, job);
        }
        // A server that is busy, or whose webhook fails, may evict it soon.
        let is_soon = matches!(code, None | Some(429 | 500));
        let lasts = if is_soon { Lasts::Briefly } else { Lasts::Long };
        self.exemptions.victim(known, victim, lasts);
        if is_soon && code.is_some() {
            known.orders.extend(self.take_back(&known.world, victim));
        }
    }

    /// An eviction for a job failed: the job is decided about as if it were new, and preempts no
    /// pod for a while if that happened too often.
    fn decide_again(&mut self, known: &mut Known, job: JobId) {
        self.call_off_evictions(known, job);
        match self.exemptions.job_failed(job, known.now_ms) {
            true => known.set_exempt(&Exempt::Preemptor(job), true),
            false => {
                let events = known.world.preemption().submit_again(job);
                known.apply(events);
            }
        }
        self.unnominate(known, job);
    }

    /// Pods whose condition says that their eviction was refused a short while ago are exempt for
    /// another leader, and for questions, too.
    pub(super) fn exempt_by_conditions(&mut self, known: &mut Known) {
        for (pod, refused_ms) in known.world.preemption().with_refused_eviction() {
            self.exemptions.victim_since(known, pod, refused_ms);
        }
    }

    /// Pods that no longer have that condition may be evicted again: their owners have removed it.
    pub(super) fn end_exemptions_taken_back(&mut self, known: &mut Known) {
        for pod in known.world.notices().evictable_again() {
            self.exemptions.end_of_victim(known, pod);
        }
    }

    /// Ends exemptions that are over, and asks for rights that may be there by now, as long as any
    /// pods are pending.
    pub(super) fn end_exemptions(&mut self, known: &mut Known) {
        for pod in self.exemptions.end(known) {
            // What became of its eviction was not known; it is there, and is not evicted.
            known.orders.extend(self.take_back(&known.world, &pod));
        }
        while known.pending.pods() > 0
            && let Some((namespace, why)) = self.exemptions.right_to_ask()
        {
            match known.world.preemption().preemptible_in(&namespace) {
                Some(pod) => known.orders.push_back(PodOrder::MayEvict { pod, why }),
                None => self.exemptions.has_right(known, &namespace),
            }
        }
    }

    /// The scheduler has no right to evict a pod, nor any other of its namespace.
    fn lacks_right(
        &mut self,
        known: &mut Known,
        victim: &PodKey,
        why: EvictionCause,
        (code, message): (Option<u16>, &str),
    ) {
        let is_news = self.exemptions.right(&victim.namespace, why, message, known.now_ms);
        let mut jobs: Vec<JobId> = Vec::new();
        let mut exempt = Vec::new();
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
        let namespace = Exempt::Namespace(victim.namespace.clone());
        known.set_exempt(&namespace, true);
        // An earlier leader may have marked them.
        let marks: Vec<PodOrder> =
            exempt.iter().filter_map(|pod| self.take_back(&known.world, pod)).collect();
        known.orders.extend(marks);
        if is_news {
            let news = not_evicted(known, victim, jobs.first(), (code, message), true);
            known.news.push(news);
        }
    }

    /// Takes the answer whether a pod would be evicted.
    pub(super) fn right_answered(
        &mut self,
        known: &mut Known,
        pod: &PodKey,
        why: EvictionCause,
        end: &OrderEnd,
    ) {
        match end {
            OrderEnd::Refused { code, message } if lacked_right(*code, message).is_some() => {
                self.lacks_right(known, pod, why, (Some(*code), message));
            }
            // What a policy says of the pod says that there is the right.
            OrderEnd::Done | OrderEnd::Refused { .. } => {
                self.exemptions.has_right(known, &pod.namespace);
            }
            OrderEnd::Gone | OrderEnd::CalledOff | OrderEnd::Unanswered { .. } => {
                self.exemptions.ask_again(&pod.namespace, known.now_ms);
            }
        }
    }
}

/// That a pod is not evicted for a job, or that none of its namespace is.
fn not_evicted(
    known: &Known,
    victim: &PodKey,
    job: Option<&JobId>,
    (code, message): (Option<u16>, &str),
    is_for_all: bool,
) -> News {
    let preemptor = job.and_then(|job| known.world.pods().pods_of(*job).next());
    News::EvictionRefused(Box::new(EvictionRefused {
        victim: victim.clone(),
        preemptor: preemptor.map(PodKey::of),
        code,
        message: message.to_owned(),
        is_for_all,
    }))
}

//! What takes no part in preemption for a while, because the server refused evictions or did not
//! answer. Each has one backoff: a victim, a namespace in which the scheduler's account lacks a
//! right, and a job whose evictions fail again and again.

use std::collections::BTreeMap;

use dovetail_cluster::world::{Exempt, PodKey};
use dovetail_model::JobId;

use super::known::Known;
use crate::backoffs::Backoffs;
use crate::order::EvictionCause;

/// First and longest time for which a victim is exempt that a policy keeps: it does so for long.
const REFUSED_MS: (u64, u64) = (600_000, 6 * 3_600_000);
/// First and longest time where the server is in trouble or says nothing.
const TROUBLED_MS: (u64, u64) = (1_000, 60_000);
/// First and longest pause between two questions about a right. Once it is given, preemption
/// resumes within the longest.
const RIGHT_MS: (u64, u64) = (1_000, 30_000);
/// After so many evictions without effect, one after the other, none is tried for the job for a
/// while.
const MOST_FAILURES: u32 = 16;
/// First and longest such pause.
const JOB_MS: (u64, u64) = (60_000, 600_000);
/// A missing right is reported again after so long.
const REPORTED_AGAIN_MS: u64 = 300_000;

/// What is exempt, until when, and why.
#[derive(Debug, Default)]
pub(super) struct Exemptions {
    backoffs: Backoffs<Exempt>,
    rights: BTreeMap<Box<str>, MissingRight>,
    /// Evictions for a job without effect, one after the other.
    failures: BTreeMap<JobId, u32>,
}

#[derive(Debug)]
struct MissingRight {
    message: String,
    /// For what it is needed: pods are deleted for some reasons, and evicted for others.
    why: EvictionCause,
    reported_ms: u64,
    /// Whether it is time to ask for it.
    is_due: bool,
}

/// Whether a refusal may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasts {
    /// The server is in trouble, or says nothing.
    Briefly,
    /// A policy keeps the pod.
    Long,
}

impl Exemptions {
    /// The eviction of a pod was refused or not answered: it is exempt for a while.
    pub(super) fn victim(&mut self, known: &mut Known, victim: &PodKey, lasts: Lasts) {
        let range = match lasts {
            Lasts::Briefly => TROUBLED_MS,
            Lasts::Long => REFUSED_MS,
        };
        let what = Exempt::Pod(victim.clone());
        self.backoffs.fail(&what, range, known.now_ms);
        known.set_exempt(&what, true);
    }

    /// A pod says that its eviction was refused at that time: it is exempt if that was not long
    /// ago.
    pub(super) fn victim_since(&mut self, known: &mut Known, victim: PodKey, since_ms: u64) {
        let until_ms = since_ms.min(known.now_ms).saturating_add(REFUSED_MS.0);
        if until_ms > known.now_ms {
            let what = Exempt::Pod(victim);
            self.backoffs.pause(&what, until_ms);
            known.set_exempt(&what, true);
        }
    }

    /// A pod may be evicted again: its owner has taken away what said that it was refused.
    pub(super) fn end_of_victim(&mut self, known: &mut Known, victim: PodKey) {
        let what = Exempt::Pod(victim);
        self.backoffs.forget(&what);
        known.set_exempt(&what, false);
    }

    /// The account lacks the right to evict pods of a namespace; whether that is to be reported.
    pub(super) fn right(
        &mut self,
        namespace: &str,
        why: EvictionCause,
        message: &str,
        now_ms: u64,
    ) -> bool {
        self.backoffs.fail(&Exempt::Namespace(namespace.into()), RIGHT_MS, now_ms);
        let known = self.rights.get(namespace).map(|known| known.reported_ms);
        let before_ms = known.filter(|at_ms| now_ms < at_ms.saturating_add(REPORTED_AGAIN_MS));
        let (message, reported_ms) = (message.to_owned(), before_ms.unwrap_or(now_ms));
        let right = MissingRight { message, why, reported_ms, is_due: false };
        self.rights.insert(namespace.into(), right);
        before_ms.is_none()
    }

    /// It is not known whether a right is there: that is asked again after a pause.
    pub(super) fn ask_again(&mut self, namespace: &str, now_ms: u64) {
        if self.rights.contains_key(namespace) {
            self.backoffs.fail(&Exempt::Namespace(namespace.into()), RIGHT_MS, now_ms);
        }
    }

    /// The account has the right to evict pods of a namespace.
    pub(super) fn has_right(&mut self, known: &mut Known, namespace: &str) {
        let what = Exempt::Namespace(namespace.into());
        self.backoffs.forget(&what);
        if self.rights.remove(namespace).is_some() {
            known.set_exempt(&what, false);
        }
    }

    /// A namespace about whose right it is to be asked now, and what that is needed for.
    pub(super) fn right_to_ask(&mut self) -> Option<(Box<str>, EvictionCause)> {
        let (namespace, right) = self.rights.iter_mut().find(|(_, right)| right.is_due)?;
        right.is_due = false;
        Some((namespace.clone(), right.why))
    }

    /// An eviction for a job had no effect; whether none is tried for it for a while.
    pub(super) fn job_failed(&mut self, job: JobId, now_ms: u64) -> bool {
        let failures = self.failures.entry(job).or_default();
        *failures += 1;
        if *failures < MOST_FAILURES {
            return false;
        }
        *failures = 0;
        self.backoffs.fail(&Exempt::Preemptor(job), JOB_MS, now_ms);
        true
    }

    /// An eviction for a job went well, or the job is not pending any more.
    pub(super) fn forget_job(&mut self, job: JobId) {
        self.failures.remove(&job);
        self.backoffs.forget(&Exempt::Preemptor(job));
    }

    /// Ends what is over; the victims that may be evicted again.
    pub(super) fn end(&mut self, known: &mut Known) -> Vec<PodKey> {
        let mut victims = Vec::new();
        while let Some(what) = self.backoffs.pop_due(known.now_ms) {
            if let Exempt::Namespace(name) = &what {
                // That ends when the right is there.
                self.rights.get_mut(name).into_iter().for_each(|right| right.is_due = true);
                continue;
            }
            known.set_exempt(&what, false);
            if let Exempt::Pod(victim) = what {
                victims.push(victim);
            }
        }
        let world = &known.world;
        self.backoffs.sweep(|what| match what {
            Exempt::Pod(pod) => world.pods().has(pod),
            Exempt::Namespace(_) | Exempt::Preemptor(_) => true,
        });
        victims
    }

    /// When something is over, or to be asked.
    pub(super) fn due_ms(&self, known: &Known) -> Option<u64> {
        let is_asked = known.pending.pods() > 0 && self.rights.values().any(|right| right.is_due);
        is_asked.then_some(known.now_ms).or_else(|| self.backoffs.next_due_ms())
    }

    /// Pods that are exempt, and until when.
    pub(super) fn victims(&self) -> impl Iterator<Item = (u64, &PodKey)> {
        self.backoffs.paused().filter_map(|(until_ms, what)| match what {
            Exempt::Pod(pod) => Some((until_ms, pod)),
            Exempt::Namespace(_) | Exempt::Preemptor(_) => None,
        })
    }

    /// Namespaces whose pods may not be evicted, with what the server says of each.
    pub(super) fn namespaces(&self) -> impl Iterator<Item = (&str, &str)> {
        self.rights.iter().map(|(name, right)| (&**name, &*right.message))
    }

    /// Until when no pods are preempted for a job, if that is so.
    pub(super) fn job_until_ms(&self, job: JobId) -> Option<u64> {
        self.backoffs.until_ms(&Exempt::Preemptor(job))
    }
}

#[cfg(test)]
mod tests {
    use dovetail_cluster::world::{Settings, World};
    use dovetail_model::PreemptReason;
    use dovetail_plan::EngineConfig;

    use super::*;

    fn known() -> Known {
        Known::new(World::new(Settings::default()), EngineConfig::default())
    }

    #[test]
    fn after_so_many_failures_in_a_row_comes_a_pause_that_doubles() {
        let (one, other) = (JobId(1), JobId(2));
        let (mut exemptions, mut known) = (Exemptions::default(), known());
        for pause_ms in [60_000, 120_000, 240_000, 480_000, 600_000, 600_000] {
            assert!((1..MOST_FAILURES).all(|_| !exemptions.job_failed(one, known.now_ms)));
            assert!(!exemptions.job_failed(other, known.now_ms));
            assert_eq!(exemptions.job_until_ms(one), None);
            assert!(exemptions.job_failed(one, known.now_ms));
            exemptions.forget_job(other);
            let until_ms = known.now_ms + pause_ms;
            let (of_job, due_ms) = (exemptions.job_until_ms(one), exemptions.due_ms(&known));
            assert_eq!((of_job, due_ms), (Some(until_ms), Some(until_ms)));
            known.now_ms = until_ms - 1;
            exemptions.end(&mut known);
            assert_eq!(exemptions.job_until_ms(one), Some(until_ms));
            known.now_ms = until_ms;
            exemptions.end(&mut known);
            assert_eq!(exemptions.job_until_ms(one), None);
        }
        exemptions.forget_job(one);
        assert!(!exemptions.job_failed(one, known.now_ms));
    }

    #[test]
    fn a_missing_right_is_reported_once_and_asked_for_with_pauses() {
        let (mut exemptions, mut known) = (Exemptions::default(), known());
        let mut reported = Vec::new();
        let why = EvictionCause::Preempted(PreemptReason::Reclaim);
        for _ in 0..15 {
            if exemptions.right("n", why, "no", known.now_ms) {
                reported.push(known.now_ms);
            }
            assert_eq!(exemptions.right_to_ask(), None);
            known.now_ms = exemptions.due_ms(&known).expect("a question");
            exemptions.end(&mut known);
            assert_eq!(exemptions.right_to_ask(), Some(("n".into(), why)));
        }
        // Questions come after 1, 2, 4, 8, 16, and then 30 s each.
        assert_eq!(reported, [0, 301_000]);
        exemptions.has_right(&mut known, "n");
        assert_eq!(exemptions.namespaces().count(), 0);
    }
}

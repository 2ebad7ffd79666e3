//! What is remembered of evictions that the server refused or did not answer.
//!
//! There is one backoff for each victim, one for each namespace in which the scheduler's account
//! lacks the right to evict pods, and one for each job whose evictions fail again and again.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_cluster::world::PodKey;
use dovetail_model::JobId;

use crate::backoffs::Backoffs;

/// First and longest pause of a victim that a policy keeps: it does so for long.
const REFUSED_MS: (u64, u64) = (600_000, 6 * 3_600_000);
/// First and longest pause of a victim where the server is in trouble or says nothing.
const TROUBLED_MS: (u64, u64) = (1_000, 60_000);
/// First and longest pause between two questions about a right. Once it is given, preemption
/// resumes within the longest.
const RIGHT_MS: (u64, u64) = (1_000, 30_000);
/// After so many evictions without effect, one after the other, none is tried for the job for a
/// while.
pub(super) const MOST_TRIES: u32 = 16;
/// First and longest such pause.
const JOB_MS: (u64, u64) = (60_000, 600_000);
/// A missing right is reported again after so long.
const REPORTED_AGAIN_MS: u64 = 300_000;

/// Refused evictions.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Pods that are not evicted for a while.
    pub(super) victims: Backoffs<PodKey>,
    namespaces: BTreeMap<Box<str>, MissingRight>,
    /// When to ask for rights again.
    rights: Backoffs<Box<str>>,
    tries: BTreeMap<JobId, u32>,
    jobs: Backoffs<JobId>,
}

#[derive(Debug)]
struct MissingRight {
    message: String,
    reported_ms: u64,
}

/// Whether a refusal may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasts {
    /// The server is in trouble, or says nothing.
    Briefly,
    /// A policy keeps the pod.
    Long,
}

impl Refusals {
    /// The eviction of a pod was refused or not answered.
    pub(super) fn victim(&mut self, victim: &PodKey, lasts: Lasts, now_ms: u64) {
        let range = match lasts {
            Lasts::Briefly => TROUBLED_MS,
            Lasts::Long => REFUSED_MS,
        };
        self.victims.fail(victim, range, now_ms);
    }

    /// A pod says that its eviction was refused at that time: whether it is exempt from it still.
    pub(super) fn victim_since(&mut self, victim: &PodKey, since_ms: u64, now_ms: u64) -> bool {
        let until_ms = since_ms.min(now_ms).saturating_add(REFUSED_MS.0);
        let is_exempt = until_ms > now_ms;
        if is_exempt {
            self.victims.pause(victim, until_ms);
        }
        is_exempt
    }

    /// The account lacks the right to evict pods of a namespace; whether that is to be reported.
    pub(super) fn right(&mut self, namespace: &str, message: &str, now_ms: u64) -> bool {
        self.rights.fail(&namespace.into(), RIGHT_MS, now_ms);
        let known = self.namespaces.get_mut(namespace);
        let again_ms = |known: &MissingRight| known.reported_ms.saturating_add(REPORTED_AGAIN_MS);
        let is_reported = known.as_ref().is_some_and(|known| now_ms < again_ms(known));
        let message = message.to_owned();
        match known {
            Some(known) if is_reported => known.message = message,
            _ => {
                let right = MissingRight { message, reported_ms: now_ms };
                self.namespaces.insert(namespace.into(), right);
            }
        }
        !is_reported
    }

    /// It is not known whether a right is there: that is asked again after a pause.
    pub(super) fn ask_again(&mut self, namespace: &str, now_ms: u64) {
        if self.namespaces.contains_key(namespace) {
            self.rights.fail(&namespace.into(), RIGHT_MS, now_ms);
        }
    }

    /// The account has the right; whether it lacked it.
    pub(super) fn has_right(&mut self, namespace: &str) -> bool {
        self.rights.forget(&namespace.into());
        self.namespaces.remove(namespace).is_some()
    }

    /// Namespaces whose pods may not be evicted, with what the server says of each.
    pub(super) fn namespaces(&self) -> impl Iterator<Item = (&str, &str)> {
        self.namespaces.iter().map(|(name, right)| (&**name, &*right.message))
    }

    /// A namespace about which it is to be asked now.
    pub(super) fn right_to_ask(&mut self, now_ms: u64) -> Option<Box<str>> {
        self.rights.pop_due(now_ms)
    }

    /// When it is to be asked for a right.
    pub(super) fn right_due_ms(&self) -> Option<u64> {
        self.rights.next_due_ms()
    }

    /// An eviction for a job had no effect; whether none is to be tried for it now.
    pub(super) fn job(&mut self, job: JobId, now_ms: u64) -> bool {
        let tries = self.tries.entry(job).or_default();
        *tries += 1;
        if *tries < MOST_TRIES {
            return false;
        }
        *tries = 0;
        self.jobs.fail(&job, JOB_MS, now_ms);
        true
    }

    /// Until when none is tried for a job, if that is so.
    pub(super) fn job_until_ms(&self, job: JobId) -> Option<u64> {
        self.jobs.until_ms(&job)
    }

    /// Jobs for which pods may be evicted again.
    pub(super) fn jobs_due(&mut self, now_ms: u64) -> BTreeSet<JobId> {
        std::iter::from_fn(|| self.jobs.pop_due(now_ms)).collect()
    }

    /// An eviction for a job went well, or the job is not pending any more.
    pub(super) fn forget_job(&mut self, job: JobId) {
        self.tries.remove(&job);
        self.jobs.forget(&job);
    }

    /// When a victim or a job is tried again.
    pub(super) fn due_ms(&self) -> Option<u64> {
        self.victims.next_due_ms().into_iter().chain(self.jobs.next_due_ms()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_so_many_in_a_row_comes_a_pause_that_doubles() {
        let (one, other) = (JobId(1), JobId(2));
        let mut refusals = Refusals::default();
        let mut now_ms = 0;
        for pause_ms in [60_000, 120_000, 240_000, 480_000, 600_000, 600_000] {
            assert!((1..MOST_TRIES).all(|_| !refusals.job(one, now_ms)));
            assert!(!refusals.job(other, now_ms) && refusals.job_until_ms(one).is_none());
            assert!(refusals.job(one, now_ms));
            refusals.forget_job(other);
            now_ms += pause_ms;
            assert_eq!(
                (refusals.job_until_ms(one), refusals.due_ms()),
                (Some(now_ms), Some(now_ms))
            );
            assert!(refusals.jobs_due(now_ms - 1).is_empty());
            assert_eq!(refusals.jobs_due(now_ms), [one].into());
        }
        refusals.forget_job(one);
        assert!(!refusals.job(one, now_ms));
    }

    #[test]
    fn a_missing_right_is_reported_once_and_asked_for_with_pauses() {
        let mut refusals = Refusals::default();
        let mut reported = Vec::new();
        let mut now_ms = 0;
        for _ in 0..15 {
            if refusals.right("n", "no", now_ms) {
                reported.push(now_ms);
            }
            now_ms = refusals.right_due_ms().expect("a question");
            assert_eq!(refusals.right_to_ask(now_ms).as_deref(), Some("n"));
        }
        // Questions come after 1, 2, 4, 8, 16, and then 30 s each.
        assert_eq!(reported, [0, 301_000]);
        assert!(refusals.has_right("n") && !refusals.has_right("n"));
    }
}

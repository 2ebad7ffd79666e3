//! Namespaces in which the scheduler's account may not stop pods.
//!
//! That is the same for every pod there, so no other victim is looked for: the stops wait, with the room that they are
//! for. One of them is tried again after a pause, and when it goes well all are.

use std::collections::BTreeMap;

use dovetail_model::JobId;

use super::news::{News, PodName, StopRefused};
use super::scheduler::Scheduler;
use crate::pause::doubled;
use crate::world::PodKey;

/// First and longest pause between two tries, in milliseconds. Who is given the right waits no longer than that.
const PAUSES_MS: (u64, u64) = (1_000, 30_000);

/// Whoever waits is told again after so long.
const TOLD_AGAIN_MS: u64 = 300_000;

/// All of them, by name.
#[derive(Debug, Default)]
pub(super) struct Rightless {
    namespaces: BTreeMap<Box<str>, Refused>,
}

#[derive(Debug, Default)]
struct Refused {
    failures: u32,
    /// When it is tried again; `None` while it is.
    until_ms: Option<u64>,
    message: String,
    told_ms: Option<u64>,
}

impl Rightless {
    /// Whether stops of these pods may be tried now.
    pub(super) fn may_try(&self, victims: &[PodKey], now_ms: u64) -> bool {
        self.due_ms(victims).is_some_and(|due_ms| due_ms <= now_ms)
    }

    /// When stops of these pods may be tried; `None` as long as others are.
    pub(super) fn due_ms(&self, victims: &[PodKey]) -> Option<u64> {
        let refused = victims.iter().filter_map(|pod| self.namespaces.get(&*pod.namespace));
        refused
            .map(|refused| refused.until_ms)
            .try_fold(0, |due_ms, until_ms| until_ms.map(|until_ms: u64| until_ms.max(due_ms)))
    }

    /// Stops of these pods are tried.
    pub(super) fn tries(&mut self, victims: &[PodKey]) {
        for pod in victims {
            if let Some(refused) = self.namespaces.get_mut(&pod.namespace) {
                refused.until_ms = None;
            }
        }
    }

    /// A stop has ended. If that says nothing of the right, the next one is tried.
    pub(super) fn ended(&mut self, namespace: &str, is_stopped: bool, now_ms: u64) {
        if is_stopped {
            self.namespaces.remove(namespace);
        } else if let Some(refused) = self.namespaces.get_mut(namespace) {
            refused.until_ms.get_or_insert(now_ms);
        }
    }

    /// The server says that the account has not the right. Whether that is to be told.
    fn refused(&mut self, namespace: &str, message: &str, now_ms: u64) -> bool {
        let refused = self.namespaces.entry(namespace.into()).or_default();
        let pause_ms = doubled(PAUSES_MS, refused.failures);
        refused.until_ms = Some(now_ms.saturating_add(pause_ms));
        refused.failures = refused.failures.saturating_add(1);
        message.clone_into(&mut refused.message);
        let is_told = |told_ms| now_ms < TOLD_AGAIN_MS.saturating_add(told_ms);
        let is_to_be_told = !refused.told_ms.is_some_and(is_told);
        if is_to_be_told {
            refused.told_ms = Some(now_ms);
        }
        is_to_be_told
    }
}

impl Scheduler {
    /// The scheduler may not stop a pod, nor any other of its namespace.
    pub(super) fn may_stop_nobody(&mut self, victim: &PodKey, code: u16, message: &str) {
        let is_to_be_told = self.rightless.refused(&victim.namespace, message, self.now_ms);
        let is_there = |pod: &PodKey| pod.namespace == victim.namespace;
        let rooms = self
            .rooms
            .iter()
            .filter(|(_, room)| self.victims_to_stop(&room.victims).iter().any(is_there));
        let jobs: Vec<JobId> = rooms.map(|(job, _)| *job).collect();
        for job in &jobs {
            self.call_off_stops(*job);
        }
        if is_to_be_told {
            let first = jobs.first().and_then(|job| self.world.pods_of(*job).next());
            self.news.push(News::StopRefused(Box::new(StopRefused {
                victim: victim.clone(),
                preemptor: first.map(|pod| (PodName::of(pod), pod.meta.uid.to_string())),
                code: Some(code),
                message: message.to_owned(),
                is_tried_again: true,
                jobs,
            })));
        }
    }

    /// What the pods of a job say for whose room nobody may be stopped; `None` if that is not so.
    pub(super) fn says_that_nobody_may_be_stopped(&self, job: JobId) -> Option<String> {
        let room = self.rooms.get(&job).filter(|room| room.stops.is_none())?;
        let victims = self.victims_to_stop(&room.victims);
        let refused =
            victims.iter().find_map(|pod| self.rightless.namespaces.get(&*pod.namespace))?;
        Some(format!(
            "the scheduler may not stop the pods that are to make room for it: {}; give it that right \
             (deploy/rbac.yaml has it): it is tried again",
            refused.message
        ))
    }

    /// When stops are to be tried that were not allowed.
    pub(super) fn held_stops_due_ms(&self) -> Option<u64> {
        let held = self.rooms.values().filter(|room| room.stops.is_none());
        let victims = held.map(|room| self.victims_to_stop(&room.victims));
        let victims = victims.filter(|victims| !victims.is_empty());
        victims.filter_map(|victims| self.rightless.due_ms(&victims)).min()
    }
}

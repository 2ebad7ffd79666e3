//! Namespaces in which the scheduler's account may not stop pods.
//!
//! That is the same for every pod there, so none of them is tried: pods of other namespaces are stopped in their place,
//! and the server is asked again, after pauses, whether it would let one go.

use std::collections::BTreeMap;

use dovetail_cluster::world::PodKey;
use dovetail_model::JobId;

use super::news::{News, PodName, StopRefused};
use super::scheduler::Scheduler;
use crate::answer::lacked_right;
use crate::bind::{Order, OrderEnd};
use crate::pause::doubled;

/// First and longest pause between two questions, in milliseconds. Who is given the right waits no longer than that.
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
    /// When it is asked again; `None` while it is.
    until_ms: Option<u64>,
    message: String,
    told_ms: Option<u64>,
}

impl Rightless {
    /// The namespaces, with what the server says of each.
    pub(super) fn namespaces(&self) -> impl Iterator<Item = (&str, &str)> {
        self.namespaces.iter().map(|(name, refused)| (&**name, &*refused.message))
    }

    /// When it is to be asked about one.
    fn due_ms(&self) -> Option<u64> {
        self.namespaces.values().filter_map(|refused| refused.until_ms).min()
    }

    /// Those about which it is asked now.
    fn take_due(&mut self, now_ms: u64) -> Vec<Box<str>> {
        let is_due =
            |refused: &Refused| refused.until_ms.is_some_and(|until_ms| until_ms <= now_ms);
        let mut due = Vec::new();
        for (name, refused) in self.namespaces.iter_mut().filter(|(_, one)| is_due(one)) {
            refused.until_ms = None;
            due.push(name.clone());
        }
        due
    }

    /// It is asked again after a pause.
    fn pause(&mut self, namespace: &str, now_ms: u64) {
        let Some(refused) = self.namespaces.get_mut(namespace) else { return };
        let pause_ms = doubled(PAUSES_MS, refused.failures);
        refused.until_ms = Some(now_ms.saturating_add(pause_ms));
        refused.failures = refused.failures.saturating_add(1);
    }

    /// The server says that the account has not the right. Whether that is to be told.
    fn refused(&mut self, namespace: &str, message: &str, now_ms: u64) -> bool {
        let refused = self.namespaces.entry(namespace.into()).or_default();
        message.clone_into(&mut refused.message);
        let is_told = |told_ms| now_ms < TOLD_AGAIN_MS.saturating_add(told_ms);
        let is_to_be_told = !refused.told_ms.is_some_and(is_told);
        if is_to_be_told {
            refused.told_ms = Some(now_ms);
        }
        self.pause(namespace, now_ms);
        is_to_be_told
    }
}

impl Scheduler {
    /// The scheduler may not stop a pod, nor any other of its namespace.
    pub(super) fn may_stop_nobody(&mut self, victim: &PodKey, code: u16, message: &str) {
        let is_to_be_told = self.rightless.refused(&victim.namespace, message, self.now_ms);
        let mut jobs: Vec<JobId> = Vec::new();
        let mut spared = Vec::new();
        for (job, room) in &self.rooms {
            let victims = self.victims_to_stop(&room.victims);
            if victims.iter().any(|pod| pod.namespace == victim.namespace) {
                jobs.push(*job);
                spared.extend(victims);
            }
        }
        for job in &jobs {
            self.decide_anew(*job);
        }
        let events = self.world.spare_namespace(&victim.namespace, true);
        self.tell(events);
        // An earlier leader may have marked them.
        let marks: Vec<Order> = spared.iter().filter_map(|pod| self.take_back(pod)).collect();
        self.orders.extend(marks);
        if is_to_be_told {
            let first = jobs.first().and_then(|job| self.world.pods().pods_of(*job).next());
            self.news.push(News::StopRefused(Box::new(StopRefused {
                victim: victim.clone(),
                preemptor: first.map(|pod| (PodName::of(pod), pod.meta.uid.to_string())),
                code: Some(code),
                message: message.to_owned(),
                is_for_all: true,
            })));
        }
    }

    /// Asks whether pods may be stopped now where that was not so, as long as anybody waits.
    pub(super) fn ask_for_rights(&mut self) {
        if !self.somebody_waits() {
            return;
        }
        for namespace in self.rightless.take_due(self.now_ms) {
            match self.world.preemption().stoppable_in(&namespace) {
                Some(pod) => self.orders.push_back(Order::MayStop { pod }),
                None => self.may_stop_again(&namespace),
            }
        }
    }

    /// When it is to be asked for rights.
    pub(super) fn rights_due_ms(&self) -> Option<u64> {
        self.rightless.due_ms().filter(|_| self.somebody_waits())
    }

    /// Takes the answer for a pod.
    pub(super) fn may_be_stopped(&mut self, pod: &PodKey, end: &OrderEnd) {
        match end {
            OrderEnd::Refused { code, message } if lacked_right(*code, message).is_some() => {
                self.may_stop_nobody(pod, *code, message);
            }
            // What a policy says of the pod says that there is the right.
            OrderEnd::Done | OrderEnd::Refused { .. } => self.may_stop_again(&pod.namespace),
            OrderEnd::Gone | OrderEnd::CalledOff | OrderEnd::Unanswered { .. } => {
                self.rightless.pause(&pod.namespace, self.now_ms);
            }
        }
    }

    /// Pods of a namespace may be stopped.
    pub(super) fn may_stop_again(&mut self, namespace: &str) {
        if self.rightless.namespaces.remove(namespace).is_some() {
            let events = self.world.spare_namespace(namespace, false);
            self.tell(events);
        }
    }
}

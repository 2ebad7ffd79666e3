//! What a dry run says of those that wait. Nothing is written to their pods, so the log tells it: a line for each pod or
//! gang when its reason is another one, and when it has said something else for long.

use std::collections::BTreeMap;

use dovetail_model::{JobId, PendingReason};
use dovetail_objects::Pod;

use super::output;
use crate::schedule::{Looks, News, Scheduler};

/// Who waits for less says nothing about it.
const SETTLE_MS: u64 = 500;
/// Another text of the same reason comes at most so often.
const REPEAT_MS: u64 = 300_000;
/// Jobs that are looked at in one round of the loop.
const BATCH: usize = 256;

/// Who waits, and what was said of that.
#[derive(Debug, Default)]
pub(super) struct WouldWait {
    looks: Looks,
    told: BTreeMap<JobId, Told>,
}

/// Word and text of the last line about a job, and when that was.
#[derive(Debug)]
struct Told {
    word: &'static str,
    message: String,
    at_ms: u64,
}

impl WouldWait {
    /// Takes note of who waits.
    pub(super) fn hear(&mut self, news: &News, now_ms: u64) {
        if let News::Waits { job, reason, .. } = news {
            self.looks.at(now_ms + SETTLE_MS, *job, *reason);
        }
    }

    /// When somebody is looked at next.
    pub(super) fn due_ms(&self) -> Option<u64> {
        self.looks.due_ms()
    }

    /// Says of those that have waited for a while why they do. For one that no node takes every node is looked at: one of
    /// these in a round.
    pub(super) fn tell(
        &mut self,
        scheduler: &mut Scheduler,
        now_ms: u64,
        lines: &mut Vec<output::Told>,
    ) {
        if scheduler.take_somebody_leaves() {
            self.looks.somebody_leaves(now_ms);
        }
        for _ in 0..BATCH {
            let Some((job, reason)) = self.looks.pop_due(now_ms) else { return };
            let waiting = scheduler.ask().waiting(job, reason);
            let pods = scheduler.world().pods().pending_pods(job);
            let (Some(waiting), Some(first)) = (waiting, pods.first()) else {
                self.told.remove(&job);
                continue;
            };
            let (word, message) = (waiting.word(), waiting.message);
            let is_told = |told: &Told| {
                let is_late = now_ms >= told.at_ms.saturating_add(REPEAT_MS);
                told.word == word && (told.message == message || !is_late)
            };
            if !self.told.get(&job).is_some_and(is_told) {
                let (who, pods) = (named(scheduler, first), pods.len());
                let told =
                    output::Told::WouldWait { who, pods, reason: word, message: message.clone() };
                lines.push(told);
                self.told.insert(job, Told { word, message, at_ms: now_ms });
            }
            self.looks.again(now_ms, job, reason);
            if reason == PendingReason::Unschedulable {
                return;
            }
        }
    }
}

/// A pod, or the gang with which it starts.
fn named(scheduler: &Scheduler, pod: &Pod) -> String {
    let (namespace, name) = (&pod.meta.namespace, &pod.meta.name);
    match scheduler.world().pods().gang_of(namespace, name) {
        Some(gang) => format!("gang {gang}"),
        None => format!("{namespace}/{name}"),
    }
}

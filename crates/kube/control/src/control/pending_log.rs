//! What a dry run logs about pending pods. Nothing is written to them, so the log has a line for
//! each pod or gang when its reason changes, and when its message has been another one for long.

use std::collections::BTreeMap;

use dovetail_model::JobId;
use dovetail_objects::Pod;

use super::output;
use crate::schedule::{News, Rechecks, Scheduler, is_unschedulable};

/// A pod that is pending for less is not logged.
const SETTLE_MS: u64 = 500;
/// Another text of the same reason comes at most so often.
const REPEAT_MS: u64 = 300_000;
/// Jobs that are checked in one round of the loop.
const BATCH: usize = 256;

/// Pending jobs, and what was logged about them.
#[derive(Debug, Default)]
pub(super) struct PendingLog {
    rechecks: Rechecks,
    told: BTreeMap<JobId, Logged>,
}

/// Word and text of the last line about a job, and when that was.
#[derive(Debug)]
struct Logged {
    word: &'static str,
    message: String,
    at_ms: u64,
}

impl PendingLog {
    /// Takes note of pending jobs.
    pub(super) fn take(&mut self, news: &News, now_ms: u64) {
        if let News::Pending { job, .. } = news {
            self.rechecks.at(now_ms + SETTLE_MS, *job);
        }
    }

    /// When a job is checked next.
    pub(super) fn due_ms(&self) -> Option<u64> {
        self.rechecks.due_ms()
    }

    /// Logs why jobs have been pending for a while. For an unschedulable one every node is checked:
    /// one of these in a round.
    pub(super) fn tell(
        &mut self,
        scheduler: &mut Scheduler,
        now_ms: u64,
        lines: &mut Vec<output::LogEntry>,
    ) {
        if scheduler.take_recheck() {
            self.rechecks.sooner(now_ms, |job| is_unschedulable(scheduler, job));
        }
        for _ in 0..BATCH {
            let Some(job) = self.rechecks.pop_due(now_ms) else { return };
            let waiting = scheduler.ask().waiting(job);
            let pods = scheduler.world().pods().pending_pods(job);
            let (Some(waiting), Some(first)) = (waiting, pods.first()) else {
                self.told.remove(&job);
                continue;
            };
            let (word, message) = (waiting.word(), waiting.message);
            let is_told = |told: &Logged| {
                let is_late = now_ms >= told.at_ms.saturating_add(REPEAT_MS);
                told.word == word && (told.message == message || !is_late)
            };
            if !self.told.get(&job).is_some_and(is_told) {
                let (who, pods) = (named(scheduler, first), pods.len());
                let told = output::LogEntry::WouldBePending {
                    who,
                    pods,
                    reason: word,
                    message: message.clone(),
                };
                lines.push(told);
                self.told.insert(job, Logged { word, message, at_ms: now_ms });
            }
            self.rechecks.again(now_ms, job);
            if is_unschedulable(scheduler, job) {
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

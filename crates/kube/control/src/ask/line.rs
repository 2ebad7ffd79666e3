//! The jobs that wait, first in line first.

use dovetail_cluster::queues::shown_name;
use dovetail_model::{Job, JobId};
use dovetail_translate::Receipt;
use dovetail_units::time::time;
use serde::{Serialize, Serializer};

use super::not_in_line::waits_for_reservation;
use super::starts::StartLine;
use crate::schedule::Scheduler;
use crate::status::{WAITING_FOR_RESERVATION, WaitingReason};

/// A job that waits.
#[derive(Clone, Debug, Serialize)]
pub struct InLine {
    /// Place in its queue, from 1.
    pub place: usize,
    /// Name of the job: that of its pod, if it has but one.
    pub job: String,
    pub queue: String,
    pub priority: i32,
    /// Pods that it needs to start.
    pub pods: u32,
    /// GPUs that it needs to start, in thousandths.
    pub gpu_milli: i64,
    pub waited_ms: u64,
    /// Why, in the word of the condition `PodScheduled`.
    pub reason: &'static str,
    /// Why, for people.
    pub message: String,
    /// What earlier preemptions cost its object or run, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemptions: Option<Preemptions>,
    /// When it is expected to start, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_start: Option<StartLine>,
    #[serde(skip)]
    pub id: JobId,
}

/// What the receipt of an object says: of all its pods, or of all attempts at a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Preemptions {
    /// How often pods were preempted; those that were preempted together count once.
    pub count: u32,
    /// When the last one was, in UTC.
    pub last: String,
    /// GPU-time since the last checkpoint, in milli-GPU times ms.
    #[serde(rename = "lost_gpu_s", serialize_with = "seconds")]
    pub lost_gpu_milli_ms: u64,
}

fn seconds<S: Serializer>(gpu_milli_ms: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(gpu_milli_ms.div_ceil(1_000_000))
}

impl Preemptions {
    fn of(receipt: Receipt) -> Option<Self> {
        let Receipt { preemptions: count, lost_gpu_milli_ms, last_ms, .. } = receipt;
        (count > 0).then(|| Self { count, last: time(last_ms), lost_gpu_milli_ms })
    }
}

/// Every job that waits after the decision: by queue, in the order in which they are tried within
/// it.
pub(super) fn line(now_ms: u64, scheduler: &mut Scheduler) -> Vec<InLine> {
    let mut found: Vec<Job> = Vec::new();
    for job in scheduler.ask().pending() {
        let known = scheduler.engine().and_then(|engine| engine.job(job));
        found.extend(known.filter(|job| job.start_ms.is_none()).cloned());
    }
    // By the engine's own order. Among equal ones the identity of a job says where it stands, which
    // is not always when it came: what completes a gang goes first.
    let place = |job: JobId| scheduler.engine().and_then(|engine| engine.list().place_of(job));
    found.sort_by_key(|job| (shown_name(&job.queue).to_owned(), place(job.id)));
    let mut line: Vec<InLine> = Vec::new();
    for job in found {
        let Some(waiting) = scheduler.ask().waiting(job.id) else { continue };
        let (word, message) = said_by_its_pods(scheduler, job.id, waiting);
        line.push(InLine {
            place: match line.last() {
                Some(before) if before.queue == shown_name(&job.queue) => before.place + 1,
                _ => 1,
            },
            queue: shown_name(&job.queue).to_owned(),
            priority: job.priority,
            pods: job.pod_sets.iter().map(|set| set.min.saturating_sub(set.present)).sum(),
            gpu_milli: job.min_gpu_milli(),
            waited_ms: now_ms.saturating_sub(job.submit_ms.max(job.history.last_end_ms)),
            reason: word,
            message,
            preemptions: Preemptions::of(scheduler.world().preemption().receipt(job.id)),
            expected_start: None,
            id: job.id,
            job: job.name,
        });
    }
    line
}

/// Why a job waits, in a word and for people: of room that is kept, for it or for others, its pods
/// say more. Which room that is, and for whom is waited, the scheduler knows that keeps it.
fn said_by_its_pods(
    scheduler: &Scheduler,
    job: JobId,
    waiting: WaitingReason,
) -> (&'static str, String) {
    let pods = scheduler.world().pods().pending_pods(job);
    let word = waiting.word();
    let said = pods.iter().find_map(|pod| {
        let said = pod.unscheduled.as_ref()?;
        let is_kept_for_it = word == WAITING_FOR_RESERVATION && *said.reason == *word;
        let said_too = is_kept_for_it.then_some(&*said.message);
        waits_for_reservation(pod).filter(|_| waiting.is_unschedulable()).or(said_too)
    });
    match said {
        Some(message) => (WAITING_FOR_RESERVATION, message.to_owned()),
        None => (word, waiting.message),
    }
}

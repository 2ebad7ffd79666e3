//! Standings of jobs that wait and run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::cohort::Cohorts as Plain;
use dovetail_model::{Job, JobId};

use super::{Turns, respite};
use crate::estimate::Cohorts;
use crate::rates::{Claimant, Given, rate};
use crate::requeue::RequeueWaits;
use crate::turn_terms::StandingTerms;

/// A job that runs.
#[derive(Clone, Copy, Debug)]
struct Running {
    standing: u64,
    /// GPUs that it asks for at least, in thousandths.
    gpu_milli: u64,
    /// When its standing, or whether it may be preempted, changes next.
    due_ms: u64,
    /// Whether it may be preempted for a better standing.
    is_open: bool,
}

/// Standings of the jobs that are pending or run.
#[derive(Clone, Debug)]
pub struct TurnBook {
    turns: Turns,
    cohorts: Cohorts,
    running: BTreeMap<JobId, Running>,
    due: BTreeSet<(u64, JobId)>,
    /// Jobs that may be preempted for a better standing, by their GPUs in thousandths, the worst
    /// first.
    open: BTreeMap<u64, BTreeSet<(Reverse<u64>, JobId)>>,
    requeues: RequeueWaits,
}

impl TurnBook {
    /// Nobody has a standing yet; cohorts as they were written, about these jobs.
    pub fn new(turns: Turns, plain: &Plain, jobs: &[Job]) -> Self {
        let gpus = jobs.iter().map(|job| (job.id, job.min_gpu_milli().unsigned_abs()));
        let gpus: BTreeMap<JobId, u64> = gpus.collect();
        let mut book = Self {
            turns,
            cohorts: Cohorts::of(plain),
            running: BTreeMap::new(),
            due: BTreeSet::new(),
            open: BTreeMap::new(),
            requeues: RequeueWaits::of(&plain.requeue_ms),
        };
        for (job, standing, due_ms, is_open) in plain.running.iter().copied() {
            let gpu_milli = gpus.get(&job).copied().unwrap_or(0);
            book.note(job, Running { standing, gpu_milli, due_ms, is_open });
        }
        book
    }

    /// The cohorts as plain data.
    pub fn plain(&self) -> Plain {
        let running = self.running.iter();
        let running = running.map(|(job, at)| (*job, at.standing, at.due_ms, at.is_open));
        let requeue_ms = self.requeues.plain();
        Plain { running: running.collect(), requeue_ms, ..self.cohorts.plain() }
    }

    /// What was learned, as plain data for an engine that knows the same jobs by other numbers.
    pub fn learned(&self) -> Plain {
        Plain { requeue_ms: self.requeues.plain(), ..self.cohorts.learned() }
    }

    /// The jobs that were there when this began were submitted: goes on where the plain data, if
    /// another engine wrote them, left off.
    pub fn settle(&mut self, plain: &Plain) {
        self.cohorts.settle(plain);
    }

    /// Whether queues get back what they are guaranteed.
    pub fn reclaims(&self) -> bool {
        self.turns.reclaims
    }

    /// When a job that waits is to have got back the quota of its queue; until then it may wait for
    /// checkpoints.
    pub fn reclaims_by_ms(&self, job: &Job) -> u64 {
        let since_ms = job.submit_ms.max(job.history.last_end_ms);
        since_ms.saturating_add(u64::from(self.turns.reclaim_within_s) * 1_000)
    }

    /// Whether a job that runs may be preempted so that another queue gets its quota back.
    pub fn gives_back(&self, job: &Job, now_ms: u64) -> bool {
        respite::ends_ms(job, self.turns.respite_ms()) <= now_ms
    }

    /// How long a job that is preempted is expected to wait until it starts again, in ms.
    pub fn requeue_ms(&self, job: &Job) -> u64 {
        self.requeues.expected_ms(&job.queue)
    }

    /// Whether nobody, priority included, takes what a queue holds within its quota.
    pub fn protects_guarantees(&self) -> bool {
        self.turns.protects_guarantees
    }

    /// A job came, or came back.
    pub fn submit(&mut self, job: &Job) {
        let gpus = (job.min_gpu_milli() + 999) / 1_000;
        // By powers of two: 1, 2, 3 to 4, 5 to 8 GPUs, and so on.
        let kind = u64::try_from(gpus).unwrap_or(0).checked_next_power_of_two();
        let kind = kind.map_or(u32::MAX, |power| power.trailing_zeros() + u32::from(gpus > 0));
        self.cohorts.submit(job.id, kind, job.submit_ms);
    }

    /// The run time that is expected until a job ends that has done so much, in ms, and whether
    /// that is its own estimate; [`u64::MAX`] where nothing is known.
    fn expected_ms(&self, job: &Job, done_ms: u64) -> (u64, bool) {
        let estimate_ms = job.estimate.map_or(0, |estimate| estimate.p50_ms);
        if estimate_ms > done_ms {
            return (estimate_ms - done_ms, true);
        }
        let length = self.cohorts.lengths.of(done_ms);
        (self.cohorts.inverse_index_ms(job.id, length).unwrap_or(u64::MAX), false)
    }

    /// The standing of a job that has done so much.
    fn standing_at(&self, job: &Job, done_ms: u64) -> u64 {
        let (expected_ms, _) = self.expected_ms(job, done_ms);
        self.turns.standing(expected_ms, job.min_gpu_milli(), job.submit_ms)
    }

    /// What the standing of a job that waits is made of.
    pub fn terms(&self, job: &Job, now_ms: u64) -> StandingTerms {
        let (expected_ms, is_estimated) = self.expected_ms(job, job.history.saved_ms);
        let [size, run_time] = self.turns.expected(expected_ms, job.min_gpu_milli());
        StandingTerms {
            expected_ms: Some(expected_ms).filter(|expected_ms| *expected_ms < u64::MAX),
            is_estimated,
            gpu_milli: job.min_gpu_milli(),
            size,
            run_time,
            submitted: self.turns.age(job.submit_ms),
            waited: self.turns.age(now_ms),
        }
    }

    /// The standing of a job that waits.
    pub fn standing(&self, job: &Job) -> u64 {
        self.standing_at(job, job.history.saved_ms)
    }

    /// Whether it is known that a job runs.
    pub fn has_running(&self, job: JobId) -> bool {
        self.running.contains_key(&job)
    }

    /// A job runs from now on, or other things are known of it; whether others may preempt it that
    /// might not before.
    pub fn run(&mut self, job: &Job, now_ms: u64) -> bool {
        let before = self.stop(job.id);
        if before.is_none() {
            self.requeues.note_start(job);
        }
        let did = job.attempt_at(now_ms);
        let saved_ms = job.history.saved_ms.saturating_add(did.saved_ms);
        let done_ms = saved_ms.saturating_add(did.unsaved_ms);
        let kept_ms = job.history.saved_ms.saturating_add(job.preempted_at(now_ms).saved_ms);
        let length = self.cohorts.lengths.of(done_ms);
        self.cohorts.reach(job.id, length);
        // Preempted, it would stand as what its checkpoints keep: what is better then than now
        // would take the place back.
        let standing = self.standing_at(job, done_ms).min(self.standing_at(job, kept_ms));
        let opens_ms = opens_ms(job).filter(|_| self.turns.preempts);
        let is_open = opens_ms.is_some_and(|opens_ms| opens_ms <= now_ms);
        let waits_ms = job.interruption.restart_ms(job.history.is_empty()) - did.restart_ms;
        let next_length = self.cohorts.lengths.end_ms(length).map(|end_ms| end_ms - done_ms);
        let next_length =
            next_length.map(|in_ms| now_ms.saturating_add(in_ms).saturating_add(waits_ms));
        let respite_ms =
            self.turns.reclaims.then(|| respite::ends_ms(job, self.turns.respite_ms()));
        let later = |at_ms: Option<u64>| at_ms.filter(|at_ms| *at_ms > now_ms);
        let next = [next_length, later(opens_ms), later(respite_ms)];
        let due_ms = next.into_iter().flatten().min().unwrap_or(u64::MAX);
        let gpu_milli = job.min_gpu_milli().unsigned_abs();
        self.note(job.id, Running { standing, gpu_milli, due_ms, is_open });
        // Before, its next change was to be this end.
        let is_respite_over = respite_ms
            .zip(before)
            .is_some_and(|(respite_ms, before)| (before.due_ms..=now_ms).contains(&respite_ms));
        is_respite_over
            || is_open && before.is_none_or(|before| !before.is_open || before.standing < standing)
    }

    fn note(&mut self, job: JobId, running: Running) {
        self.running.insert(job, running);
        self.due.insert((running.due_ms, job));
        if running.is_open {
            let of_as_many = self.open.entry(running.gpu_milli).or_default();
            of_as_many.insert((Reverse(running.standing), job));
        }
    }

    /// A job runs no more.
    pub fn pause(&mut self, job: JobId) {
        self.stop(job);
    }

    fn stop(&mut self, job: JobId) -> Option<Running> {
        let running = self.running.remove(&job)?;
        self.due.remove(&(running.due_ms, job));
        if let Some(of_as_many) = self.open.get_mut(&running.gpu_milli) {
            of_as_many.remove(&(Reverse(running.standing), job));
            if of_as_many.is_empty() {
                self.open.remove(&running.gpu_milli);
            }
        }
        Some(running)
    }

    /// A job is over, after it had run for so long in all; `None` if nobody knows.
    pub fn end(&mut self, job: JobId, ran_ms: Option<u64>) {
        self.stop(job);
        self.cohorts.end(job, ran_ms);
    }

    /// When something changes even if nothing else happens.
    pub fn due_ms(&self) -> Option<u64> {
        self.due.first().map(|(due_ms, _)| *due_ms).filter(|due_ms| *due_ms < u64::MAX)
    }

    /// Jobs whose time has come.
    pub fn due(&self, now_ms: u64) -> Vec<JobId> {
        let due = self.due.range(..=(now_ms, JobId(u64::MAX)));
        due.map(|(_, job)| *job).collect()
    }

    /// Computes again what is out of date; the jobs that this is about.
    pub fn refresh(&mut self) -> Vec<JobId> {
        self.cohorts.refresh()
    }

    /// Whether any job might make place for another of equal priority; never wrong when it says no.
    pub fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether any job might make place for one of equal priority that waits: whether the worst of
    /// as many GPUs would if nothing were lost. Never wrong when it says no.
    pub fn might_take(&self, claimant: &Claimant) -> bool {
        self.open.iter().any(|(gpu_milli, jobs)| {
            let worst = jobs.first();
            worst.is_some_and(|(Reverse(worst), _)| self.pays(claimant, (*gpu_milli, *worst), 0))
        })
    }

    /// What is expected of a job of this standing beside its age, in GPU-ms.
    pub fn size_of(&self, standing: u64, submit_ms: u64) -> u64 {
        self.turns.size_of(standing, submit_ms)
    }

    /// Whether a job that runs might make place for one that waits. What would be lost must be less
    /// than what is expected of it beyond what the other would do on as many GPUs. Of several that
    /// give way together, [`Self::is_worth`] has the last word.
    pub fn may_take(&self, claimant: &Claimant, from: &Job, now_ms: u64) -> bool {
        let Some(running) = self.running.get(&from.id).filter(|running| running.is_open) else {
            return false;
        };
        let gpu_milli = from.min_gpu_milli().unsigned_abs();
        let lost_ms = from.preempted_at(now_ms).unsaved_ms + from.interruption.restart_weighs_ms();
        let lost = u128::from(lost_ms) * u128::from(gpu_milli) / 1_000;
        self.pays(claimant, (gpu_milli, running.standing), lost)
    }

    /// Whether it pays if one of so many GPUs and this standing makes place, where so many GPU-ms
    /// are lost.
    fn pays(&self, claimant: &Claimant, (gpu_milli, standing): (u64, u64), lost: u128) -> bool {
        let size = self.size_of(claimant.standing, claimant.submit_ms);
        let of_victim = self.size_of(standing, claimant.submit_ms);
        let instead = u128::from(size) * u128::from(gpu_milli.max(1));
        let instead = instead / u128::from(claimant.gpu_milli.max(1));
        if instead.saturating_add(lost) > u128::from(of_victim) {
            return false;
        }
        // Alone it need not give all that is asked for.
        let gains = claimant.gains(size, claimant.gpu_milli, gpu_milli);
        self.turns.is_worth(gains, rate(gpu_milli, of_victim))
    }

    /// What a job that runs gives with so many of its GPUs, as a job that waits sees it: those that
    /// were submitted later count for more. `None` if it makes place for nobody.
    pub fn given(&self, claimant: &Claimant, from: JobId, gpu_milli: u64) -> Option<Given> {
        let running = self.running.get(&from).filter(|running| running.is_open)?;
        let size = self.size_of(running.standing, claimant.submit_ms);
        Some(Given { gpu_milli, rate: rate(gpu_milli, size) })
    }

    /// Whether a part of a job that asks for so many GPUs, and others beside it, are worth what is
    /// given for them.
    pub fn is_worth(&self, claimant: &Claimant, part_milli: u64, given: Given) -> bool {
        let size = self.size_of(claimant.standing, claimant.submit_ms);
        self.turns.is_worth(claimant.gains(size, part_milli, given.gpu_milli), given.rate)
    }
}

/// From when on a job may be preempted for a better standing; `None` is never. Some of its work is
/// kept by then, so that no attempt is without any use.
fn opens_ms(job: &Job) -> Option<u64> {
    let rules = job.preemption;
    let is_spent = rules.max_preemptions.is_some_and(|most| job.history.preemptions >= most);
    if rules.is_protected || is_spent {
        return None;
    }
    let first_ms = job.interruption.first_kept_ms(job.history.is_empty())?;
    Some(job.start_ms?.saturating_add(first_ms.max(rules.min_run_ms.unwrap_or(0))))
}

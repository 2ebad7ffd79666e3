//! How queues fared: what they held against what they should have held, week by week, and how much
//! later their jobs ended than on a part of the cluster of their own.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{Action, Event, JobId, Plan, Queue};
use dovetail_plan::Engine;
use serde::{Deserialize, Serialize};

use super::fair_share::Tree;
use super::run::JobView;
use crate::timed::Observer;

const WEEK_MS: u64 = 7 * 24 * 3_600_000;
const HOUR_MS: f64 = 3.6e6;

/// One queue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueFigures {
    pub name: String,
    pub weight: u32,
    pub jobs: u64,
    /// GPU-hours that its jobs held.
    pub gpu_hours: f64,
    /// That as a part of what all queues held; `None` where nobody held any.
    pub share: Option<f64>,
    /// GPU-hours that it has used at the end, older use counting less, as its turn goes by; `None`
    /// where the order does not count that.
    pub usage_gpu_hours: Option<f64>,
    /// Weeks since the first submission.
    pub weeks: Vec<QueueWeek>,
    /// Over the jobs that ended; `None` without any.
    pub finish_time_fairness: Option<FinishTimes>,
}

/// A queue in one week.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueWeek {
    pub week: u64,
    /// GPU-hours that its jobs held or waited for.
    pub asked_gpu_hours: f64,
    /// GPU-hours that it held, without times in which each of its waiting jobs was larger than what
    /// it lacked of its share.
    pub held_gpu_hours: f64,
    /// GPU-hours of its demand-limited max-min share in the same time.
    pub fair_gpu_hours: f64,
}

/// Submission to end, over what that would have been on the queue's part of the cluster (its weight
/// over all) alone: its jobs one after the other as a fluid, none faster than it runs (Themis, NSDI
/// 2020).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FinishTimes {
    pub mean: f64,
    pub p99: f64,
    pub worst: f64,
}

/// A job that waits or runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Asking {
    queue: usize,
    gpu_milli: i64,
    runs: bool,
}

/// What a watch must keep to go on later.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QueueWatchState {
    jobs: Vec<(JobId, Asking)>,
    begun_ms: Option<u64>,
    weeks: Vec<Vec<QueueWeek>>,
    held_hours: Vec<f64>,
}

/// Watches queues.
#[derive(Clone, Debug)]
pub struct QueueWatch {
    names: BTreeMap<String, usize>,
    queues: Vec<Queue>,
    tree: Tree,
    jobs: BTreeMap<JobId, Asking>,
    /// Names of jobs that can never start: nobody owes their queue anything for them.
    ignored: BTreeSet<String>,
    /// By queue: milli-GPU held, and asked for by those that wait, with how many wait by size.
    held: Vec<i64>,
    waiting: Vec<BTreeMap<i64, u64>>,
    begun_ms: Option<u64>,
    weeks: Vec<Vec<QueueWeek>>,
    held_hours: Vec<f64>,
    gpus: f64,
}

impl QueueWatch {
    /// A watch over these queues of a cluster with so many GPUs; jobs of others are not looked at,
    /// nor are those of these names, which can never start.
    pub fn new(queues: &[Queue], gpus: u64, ignored: BTreeSet<String>) -> Self {
        let count = queues.len();
        Self {
            names: queues.iter().enumerate().map(|(at, q)| (q.name.clone(), at)).collect(),
            queues: queues.to_vec(),
            tree: Tree::of(queues),
            jobs: BTreeMap::new(),
            ignored,
            held: vec![0; count],
            waiting: vec![BTreeMap::new(); count],
            begun_ms: None,
            weeks: vec![Vec::new(); count],
            held_hours: vec![0.0; count],
            gpus: gpus as f64,
        }
    }

    /// What it has seen so far.
    pub fn pause(&self) -> QueueWatchState {
        QueueWatchState {
            jobs: self.jobs.iter().map(|(job, asking)| (*job, *asking)).collect(),
            begun_ms: self.begun_ms,
            weeks: self.weeks.clone(),
            held_hours: self.held_hours.clone(),
        }
    }

    /// This watch, which has seen nothing yet, with what one over the same queues saw before a
    /// pause; `None` if that was over other queues.
    pub fn resume(mut self, state: QueueWatchState) -> Option<Self> {
        let count = self.queues.len();
        let is_other = state.jobs.iter().any(|(_, asking)| asking.queue >= count);
        if is_other || state.weeks.len() != count || state.held_hours.len() != count {
            return None;
        }
        for (job, asking) in state.jobs {
            match asking.runs {
                true => self.held[asking.queue] += asking.gpu_milli,
                false => {
                    *self.waiting[asking.queue].entry(asking.gpu_milli).or_default() += 1;
                }
            }
            self.jobs.insert(job, asking);
        }
        self.begun_ms = state.begun_ms;
        self.weeks = state.weeks;
        self.held_hours = state.held_hours;
        Some(self)
    }

    fn leave(&mut self, job: JobId) {
        let Some(asking) = self.jobs.remove(&job) else { return };
        match asking.runs {
            true => self.held[asking.queue] -= asking.gpu_milli,
            false => self.stop_waiting(asking),
        }
    }

    fn stop_waiting(&mut self, asking: Asking) {
        let waiting = &mut self.waiting[asking.queue];
        if let Some(count) = waiting.get_mut(&asking.gpu_milli) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&asking.gpu_milli);
            }
        }
    }

    fn start(&mut self, job: JobId) {
        let Some(asking) = self.jobs.get_mut(&job).filter(|asking| !asking.runs) else { return };
        asking.runs = true;
        let asking = *asking;
        self.held[asking.queue] += asking.gpu_milli;
        self.stop_waiting(asking);
    }

    /// Adds up a time in which nothing changed, within one week.
    fn add(&mut self, week: u64, hours: f64) {
        let milli = |milli: i64| milli as f64 / 1e3;
        let asked: Vec<f64> = (0..self.queues.len())
            .map(|at| {
                let waiting = self.waiting[at].iter();
                let waiting: i64 = waiting.map(|(size, count)| size * *count as i64).sum();
                milli(self.held[at] + waiting)
            })
            .collect();
        let shares = self.tree.shares(self.gpus, &asked);
        for (at, share) in shares.into_iter().enumerate() {
            let held = milli(self.held[at]);
            self.held_hours[at] += held * hours;
            if asked[at] == 0.0 {
                continue;
            }
            let weeks = &mut self.weeks[at];
            if weeks.last().is_none_or(|last| last.week != week) {
                weeks.push(QueueWeek { week, ..QueueWeek::default() });
            }
            let of = weeks.last_mut().expect("pushed above");
            of.asked_gpu_hours += asked[at] * hours;
            let smallest = self.waiting[at].keys().find(|size| **size > 0).copied();
            let is_too_large = smallest.is_some_and(|size| milli(size) > share - held);
            if held < share && is_too_large {
                continue;
            }
            of.held_gpu_hours += held.min(share) * hours;
            of.fair_gpu_hours += share * hours;
        }
    }

    /// What came out. `usage` is what the order counts at the end, in seconds of the whole cluster.
    pub fn figures<'j>(
        &self,
        outcomes: impl Iterator<Item = JobView<'j>>,
        usage: impl Fn(&str) -> Option<f64>,
    ) -> Vec<QueueFigures> {
        let all_hours: f64 = self.held_hours.iter().sum();
        let outcomes: Vec<JobView<'_>> = outcomes.collect();
        let mut finish_times = self.finish_times(&outcomes);
        let jobs_of = |name: &str| {
            let jobs = outcomes.iter().filter(|view| queue_of(view) == name);
            jobs.count() as u64
        };
        let queues = self.queues.iter().enumerate();
        queues
            .map(|(at, queue)| QueueFigures {
                name: queue.name.clone(),
                weight: queue.weight,
                jobs: jobs_of(&queue.name),
                gpu_hours: self.held_hours[at],
                share: (all_hours > 0.0).then(|| self.held_hours[at] / all_hours),
                usage_gpu_hours: usage(&queue.name).map(|seconds| seconds * self.gpus / 3_600.0),
                weeks: self.weeks[at].clone(),
                finish_time_fairness: FinishTimes::of(&mut finish_times[at]),
            })
            .collect()
    }

    /// By queue, for each job that ended: its time over that on the queue's own part.
    fn finish_times(&self, outcomes: &[JobView<'_>]) -> Vec<Vec<f64>> {
        let (gpus, count) = (self.gpus, self.queues.len());
        let can_start = |view: &&JobView<'_>| !self.ignored.contains(&view.job.id);
        let known = outcomes.iter().filter(can_start);
        let known = known.filter_map(|view| Some((view, self.names.get(queue_of(view))?)));
        // Everybody who has jobs asks for everything: what each is given then is its own part.
        let mut asked = vec![0.0; count];
        known.clone().for_each(|(_, at)| asked[*at] = gpus);
        let parts = self.tree.shares(gpus, &asked);
        let mut ratios = vec![Vec::new(); count];
        // Of each queue, when its own part would have done all that came before.
        let mut free_s = vec![0.0_f64; count];
        for (view, at) in known {
            let (Some(run_ms), submit_ms) = (view.job.duration_ms, view.outcome.submit_ms) else {
                continue;
            };
            let (run_s, submit_s) = (run_ms as f64 / 1e3, submit_ms as f64 / 1e3);
            let work = view.job.total_gpu_milli() as f64 / 1e3 * run_s;
            let part = parts[*at];
            if part <= 0.0 || work <= 0.0 {
                continue;
            }
            free_s[*at] = f64::max(free_s[*at], submit_s) + work / part;
            let alone_s = f64::max(free_s[*at] - submit_s, run_s);
            if let Some(end_ms) = view.outcome.end_ms {
                ratios[*at].push((end_ms as f64 / 1e3 - submit_s) / alone_s);
            }
        }
        ratios
    }
}

/// The name of a job's queue; that of those without one is empty.
fn queue_of<'j>(view: &JobView<'j>) -> &'j str {
    view.job.queue.as_deref().unwrap_or_default()
}

impl FinishTimes {
    fn of(ratios: &mut [f64]) -> Option<Self> {
        ratios.sort_by(f64::total_cmp);
        let worst = *ratios.last()?;
        let p99 = ratios[(ratios.len() * 99 / 100).min(ratios.len() - 1)];
        Some(Self { mean: ratios.iter().sum::<f64>() / ratios.len() as f64, p99, worst })
    }
}

impl Observer for QueueWatch {
    fn advanced(&mut self, _engine: &mut Engine, from_ms: u64, to_ms: u64) {
        let Some(begun_ms) = self.begun_ms else { return };
        let mut from_ms = from_ms;
        while from_ms < to_ms {
            let week = (from_ms - begun_ms) / WEEK_MS;
            let until_ms = to_ms.min(begun_ms + (week + 1) * WEEK_MS);
            self.add(week, (until_ms - from_ms) as f64 / HOUR_MS);
            from_ms = until_ms;
        }
    }

    fn stepped(&mut self, _engine: &mut Engine, now_ms: u64, events: &[Event], plan: &Plan) {
        for event in events {
            match event {
                Event::Submitted(job) => {
                    self.begun_ms.get_or_insert(now_ms);
                    if self.ignored.contains(&job.name) {
                        continue;
                    }
                    let Some(queue) = self.names.get(&job.queue).copied() else { continue };
                    let gpu_milli = job.min_gpu_milli();
                    self.jobs.insert(job.id, Asking { queue, gpu_milli, runs: false });
                    *self.waiting[queue].entry(gpu_milli).or_default() += 1;
                }
                Event::Ended { job, .. } => self.leave(*job),
                _ => {}
            }
        }
        for action in &plan.actions {
            match action {
                Action::Bind { pod, .. } => self.start(pod.job),
                Action::Lost { job } => self.leave(*job),
                _ => {}
            }
        }
    }
}

//! How good expected starts are: forecasts of a simulation held against what came.

use std::collections::{BTreeMap, VecDeque};

use dovetail_model::{Action, Event, JobId, Plan};
use dovetail_plan::{Engine, Foresight, PastForecasts};
use serde::Serialize;

use crate::timed::Observer;
use crate::timed::calibration::{loss, median};

/// Waits that the median of a queue is taken of.
const RECENT: usize = 32;

/// How good the first forecasts of pending jobs were. Losses are mean pinball losses per job: for
/// the quantile q and the error e = start - forecast, max(q e, (q - 1) e).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StartEstimate {
    /// Times at which starts were forecast.
    pub forecasts: u64,
    /// Jobs whose start was forecast while they were pending, and that started.
    pub jobs: u64,
    /// Jobs that started of which the forecast knew nothing.
    pub unknown: u64,
    /// Share of the jobs that started by the expected median; `None` without any.
    pub within_p50: Option<f64>,
    /// Share of them that started by the expected 90th percentile, unknown ones as if far away.
    pub within_p90: Option<f64>,
    /// Mean distance of the start from the expected median, in seconds.
    pub p50_error_s: Option<f64>,
    /// The greatest.
    pub worst_p50_error_s: Option<f64>,
    /// Mean loss of the median, in seconds.
    pub p50_loss_s: Option<f64>,
    /// Mean loss of the median if the median wait of the 32 newest starts of the queue that had to
    /// wait had been expected instead, over the jobs for which there is one.
    pub recent_median_loss_s: Option<f64>,
    /// [`StartEstimate::p50_loss_s`] over the same jobs.
    pub p50_loss_beside_s: Option<f64>,
}

/// Sums of which a [`StartEstimate`] is made; losses in thousandths of ms.
#[derive(Clone, Copy, Debug, Default)]
struct StartSums {
    forecasts: u64,
    jobs: u64,
    unknown: u64,
    within_p50: u64,
    within_p90: u64,
    error_ms: u128,
    worst_error_ms: u64,
    loss: u128,
    beside: u64,
    recent_loss: u128,
    loss_beside: u128,
}

/// What was expected of a pending job when it was first asked.
#[derive(Clone, Copy, Debug)]
struct FirstForecast {
    /// The median and the 90th percentile of the start, corrected by earlier forecasts.
    start_ms: [Option<u64>; 2],
    /// The start if the queue's newest median wait were the job's.
    recent_ms: Option<u64>,
}

#[derive(Clone, Debug)]
struct PendingStart {
    queue: String,
    submit_ms: u64,
    forecast: Option<FirstForecast>,
}

/// Asks a simulated engine every so often when its pending jobs start. A job is judged by the first
/// forecast that it had while pending; a job that never had one is not judged.
#[derive(Clone, Debug)]
pub struct StartWatch {
    every_ms: u64,
    next_ms: u64,
    foresight: Foresight,
    pending: BTreeMap<JobId, PendingStart>,
    /// The newest waits of each queue.
    recent: BTreeMap<String, VecDeque<u64>>,
    past: PastForecasts,
    sums: StartSums,
}

impl StartWatch {
    /// Asks at most once in `every_ms`.
    pub fn new(every_ms: u64, foresight: Foresight) -> Self {
        Self {
            every_ms,
            next_ms: 0,
            foresight,
            pending: BTreeMap::new(),
            recent: BTreeMap::new(),
            past: PastForecasts::default(),
            sums: StartSums::default(),
        }
    }

    fn take_in(&mut self, engine: &Engine, now_ms: u64, event: &Event) {
        match event {
            // A job that runs again has had its first start.
            Event::Submitted(job) if self.is_first(engine, job.id) => {
                let queue = job.queue.to_string();
                self.pending
                    .insert(job.id, PendingStart { queue, submit_ms: now_ms, forecast: None });
            }
            _ => {}
        }
    }

    fn is_first(&self, engine: &Engine, job: JobId) -> bool {
        engine.job(job).is_some_and(|job| job.history.is_empty())
    }

    fn started(&mut self, job: JobId, now_ms: u64) {
        let Some(PendingStart { queue, submit_ms, forecast }) = self.pending.remove(&job) else {
            return;
        };
        if let Some(forecast) = forecast {
            self.past.started(job, now_ms);
            self.sums.take(&forecast, now_ms);
        }
        if now_ms > submit_ms {
            let recent = self.recent.entry(queue).or_default();
            recent.push_back(now_ms - submit_ms);
            if recent.len() > RECENT {
                recent.pop_front();
            }
        }
    }

    /// What is expected of each pending job that was not asked about yet.
    fn forecast(&mut self, engine: &Engine, now_ms: u64) {
        self.sums.forecasts += 1;
        let foresight = Foresight { seed: self.sums.forecasts, ..self.foresight };
        let is_new =
            |job: &JobId| self.pending.get(job).is_some_and(|pending| pending.forecast.is_none());
        let expected = foresight.expected_starts(engine).into_iter();
        let played_ms = expected.filter(|expected| is_new(&expected.job)).map(|expected| {
            (expected.job, [expected.p50_ms, expected.p90_ms].map(|ms| Some(ms? - now_ms)))
        });
        for (job, wait_ms) in self.past.forecast(played_ms.collect(), now_ms) {
            let Some(pending) = self.pending.get_mut(&job) else { continue };
            let start_ms = wait_ms.map(|ms| Some(now_ms.saturating_add(ms?)));
            let recent = self.recent.get(&pending.queue).and_then(median);
            let recent_ms = recent.map(|wait_ms| (pending.submit_ms + wait_ms).max(now_ms));
            pending.forecast = Some(FirstForecast { start_ms, recent_ms });
        }
    }

    /// How good they were so far.
    pub fn figures(&self) -> StartEstimate {
        let sums = &self.sums;
        let share = |some: u64| (sums.jobs > 0).then(|| some as f64 / sums.jobs as f64);
        let mean_s = |sum: u128, jobs: u64| (jobs > 0).then(|| sum as f64 / jobs as f64 / 1e6);
        StartEstimate {
            forecasts: sums.forecasts,
            jobs: sums.jobs,
            unknown: sums.unknown,
            within_p50: share(sums.within_p50),
            within_p90: share(sums.within_p90),
            p50_error_s: mean_s(sums.error_ms * 1_000, sums.jobs),
            worst_p50_error_s: (sums.jobs > 0).then(|| sums.worst_error_ms as f64 / 1e3),
            p50_loss_s: mean_s(sums.loss, sums.jobs),
            recent_median_loss_s: mean_s(sums.recent_loss, sums.beside),
            p50_loss_beside_s: mean_s(sums.loss_beside, sums.beside),
        }
    }
}

impl StartSums {
    fn take(&mut self, forecast: &FirstForecast, start_ms: u64) {
        let [Some(p50_ms), p90_ms] = forecast.start_ms else {
            self.unknown += 1;
            return;
        };
        let error_ms = start_ms.abs_diff(p50_ms);
        let lost = loss(500, start_ms, p50_ms);
        self.jobs += 1;
        self.within_p50 += u64::from(start_ms <= p50_ms);
        self.within_p90 += u64::from(p90_ms.is_none_or(|p90_ms| start_ms <= p90_ms));
        self.error_ms += u128::from(error_ms);
        self.worst_error_ms = self.worst_error_ms.max(error_ms);
        self.loss += lost;
        if let Some(recent_ms) = forecast.recent_ms {
            self.beside += 1;
            self.recent_loss += loss(500, start_ms, recent_ms);
            self.loss_beside += lost;
        }
    }
}

impl Observer for StartWatch {
    fn stepped(&mut self, engine: &mut Engine, now_ms: u64, events: &[Event], plan: &Plan) {
        events.iter().for_each(|event| self.take_in(engine, now_ms, event));
        for action in &plan.actions {
            if let Action::Bind { pod, .. } = action {
                self.started(pod.job, now_ms);
            }
        }
        let is_asked = |pending: &PendingStart| pending.forecast.is_some();
        // Whoever is preempted leaves in the next step of the same instant. Before, it is expected
        // to take as long as it may.
        let preempts = |action: &Action| matches!(action, Action::Preempt { .. });
        let is_over = !plan.actions.iter().any(preempts);
        if is_over && now_ms >= self.next_ms && !self.pending.values().all(is_asked) {
            self.forecast(engine, now_ms);
            self.next_ms = now_ms.saturating_add(self.every_ms);
        }
    }
}

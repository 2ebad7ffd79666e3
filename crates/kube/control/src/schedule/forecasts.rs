//! When pending jobs were expected to start, until they do.
//!
//! Now and then the engine plays itself forward, as it does for `dovetail why`, though with fewer
//! steps and draws, and with a second between two plays: a play copies the engine, and decisions
//! wait for it. The first forecast of each pending job, corrected by what came of earlier ones, is
//! kept until the job starts; what it was worth then shows in metrics.

use std::collections::BTreeMap;

use dovetail_model::JobId;
use dovetail_plan::{Engine, Foresight, PastForecasts, StartCorrections, reached};

/// The step in which a play is made waits for it.
const MOST_STEPS: u64 = 2_000;
/// From one play to the next.
const PAUSE_MS: u64 = 1_000;
/// Plays with run times drawn at random, where they are not certain: the fewest of which nine in
/// ten are not all.
const DRAWS: u32 = 10;

/// The first forecast of each pending job.
#[derive(Debug, Default)]
pub(super) struct Forecasts {
    of: BTreeMap<JobId, StartForecast>,
    past: PastForecasts,
    /// What is being made.
    round: Option<ForecastRound>,
}

/// Plays for the jobs that were pending when they began.
#[derive(Debug)]
struct ForecastRound {
    begun_ms: u64,
    due_ms: u64,
    plays: u64,
    /// When the plays start each of these jobs.
    starts: BTreeMap<JobId, Vec<u64>>,
}

/// When a pending job is expected to start. `None` is unknown.
#[derive(Clone, Copy, Debug)]
pub struct StartForecast {
    pub made_ms: u64,
    /// By then with a chance of one in two.
    pub p50_ms: Option<u64>,
    /// The same with a chance of nine in ten.
    pub p90_ms: Option<u64>,
}

/// How long a job was expected to be pending, and was, from its forecast on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForecastEnd {
    /// Expected with a chance of one in two. `None` is unknown: run times are, or the forecast
    /// ended before.
    pub p50_ms: Option<u64>,
    /// The same with a chance of nine in ten.
    pub p90_ms: Option<u64>,
    pub actual_ms: u64,
}

impl Forecasts {
    /// Pending jobs that have no forecast are to get one.
    pub(super) fn begin(&mut self, pending: impl Iterator<Item = JobId>, now_ms: u64) {
        if self.round.is_some() {
            return;
        }
        let new = pending.filter(|job| !self.of.contains_key(job));
        let starts: BTreeMap<JobId, Vec<u64>> = new.map(|job| (job, Vec::new())).collect();
        let due_ms = now_ms.saturating_add(PAUSE_MS);
        let round = ForecastRound { begun_ms: now_ms, due_ms, plays: 0, starts };
        self.round = (!round.starts.is_empty()).then_some(round);
    }

    /// When the next play is due.
    pub(super) fn due_ms(&self) -> Option<u64> {
        self.round.as_ref().map(|round| round.due_ms)
    }

    /// Makes one play. This copies the engine. Returns the jobs that have a forecast from now on
    /// that says when they start.
    pub(super) fn play(&mut self, engine: &Engine, now_ms: u64) -> Vec<JobId> {
        let Some(mut round) = self.round.take_if(|round| round.due_ms <= now_ms) else {
            return Vec::new();
        };
        let foresight = Foresight { draws: DRAWS, max_steps: MOST_STEPS, ..Foresight::default() };
        let played = foresight.play_once(engine, round.plays);
        for (job, at_ms) in played.starts {
            round.starts.entry(job).and_modify(|starts| starts.push(at_ms));
        }
        round.plays += 1;
        round.due_ms = now_ms.saturating_add(PAUSE_MS);
        // Jobs that started between two plays had none.
        round.starts.retain(|job, _| engine.job(*job).is_some_and(|job| job.start_ms.is_none()));
        match played.is_certain && round.plays == 1 || round.plays == u64::from(DRAWS) {
            true => self.take(round),
            false => {
                self.round = Some(round);
                Vec::new()
            }
        }
    }

    /// Forecasts are corrected by what came of earlier ones, of another process.
    pub(super) fn go_on(&mut self, corrections: StartCorrections) {
        self.past = PastForecasts::after(corrections);
    }

    /// What corrects forecasts from now on.
    pub(super) fn corrections(&self, now_ms: u64) -> StartCorrections {
        self.past.corrections(now_ms)
    }

    /// The first forecast of a pending job.
    pub(super) fn of(&self, job: JobId) -> Option<StartForecast> {
        self.of.get(&job).copied()
    }

    fn take(&mut self, round: ForecastRound) -> Vec<JobId> {
        let ForecastRound { begun_ms: made_ms, plays, starts, .. } = round;
        let played_ms = starts.into_iter().map(|(job, mut starts)| {
            starts.sort_unstable();
            let wait = |percent| Some(reached(&starts, plays, percent)?.saturating_sub(made_ms));
            (job, [wait(50), wait(90)])
        });
        let mut known = Vec::new();
        for (job, wait_ms) in self.past.forecast(played_ms.collect(), made_ms) {
            let at = |wait_ms: Option<u64>| Some(made_ms.saturating_add(wait_ms?));
            let [p50_ms, p90_ms] = wait_ms.map(at);
            known.extend(p50_ms.map(|_| job));
            self.of.entry(job).or_insert(StartForecast { made_ms, p50_ms, p90_ms });
        }
        known
    }

    /// A job starts; what came of its forecast, if it has one.
    pub(super) fn started(&mut self, job: JobId, now_ms: u64) -> Option<ForecastEnd> {
        self.past.started(job, now_ms);
        let StartForecast { made_ms, p50_ms, p90_ms } = self.of.remove(&job)?;
        let after = |at_ms: u64| at_ms.saturating_sub(made_ms);
        let (p50_ms, p90_ms) = (p50_ms.map(after), p90_ms.map(after));
        Some(ForecastEnd { p50_ms, p90_ms, actual_ms: after(now_ms) })
    }

    pub(super) fn forget(&mut self, job: JobId, now_ms: u64) {
        self.past.left(job, now_ms);
        self.of.remove(&job);
    }
}

//! When pending jobs were expected to start, until they do.
//!
//! Now and then the engine plays itself forward, as it does for `dovetail why`, though with fewer
//! steps and draws. The first forecast of each pending job is kept until the job starts; what it
//! was worth then shows in metrics.

use std::collections::BTreeMap;

use dovetail_model::JobId;
use dovetail_plan::{Engine, Foresight};

/// The step in which this is made waits for it.
const MOST_STEPS: u64 = 20_000;
/// Plays with run times drawn at random, where they are not certain: the fewest of which nine in
/// ten are not all.
const DRAWS: u32 = 10;

/// The first forecast of each pending job.
#[derive(Debug, Default)]
pub(super) struct Forecasts {
    of: BTreeMap<JobId, Forecast>,
}

#[derive(Clone, Copy, Debug)]
struct Forecast {
    made_ms: u64,
    p50_ms: Option<u64>,
    p90_ms: Option<u64>,
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
    /// Makes forecasts for pending jobs that have none. This copies the engine.
    pub(super) fn make(
        &mut self,
        engine: &Engine,
        mut pending: impl Iterator<Item = JobId>,
        now_ms: u64,
    ) {
        if pending.all(|job| self.of.contains_key(&job)) {
            return;
        }
        let foresight = Foresight { draws: DRAWS, max_steps: MOST_STEPS, ..Foresight::default() };
        for start in foresight.expected_starts(engine) {
            let (p50_ms, p90_ms) = (start.p50_ms, start.p90_ms);
            let forecast = Forecast { made_ms: now_ms, p50_ms, p90_ms };
            self.of.entry(start.job).or_insert(forecast);
        }
    }

    /// A job starts; what came of its forecast, if it has one.
    pub(super) fn started(&mut self, job: JobId, now_ms: u64) -> Option<ForecastEnd> {
        let Forecast { made_ms, p50_ms, p90_ms } = self.of.remove(&job)?;
        let after = |at_ms: u64| at_ms.saturating_sub(made_ms);
        let (p50_ms, p90_ms) = (p50_ms.map(after), p90_ms.map(after));
        Some(ForecastEnd { p50_ms, p90_ms, actual_ms: after(now_ms) })
    }

    /// A job is gone.
    pub(super) fn forget(&mut self, job: JobId) {
        self.of.remove(&job);
    }
}

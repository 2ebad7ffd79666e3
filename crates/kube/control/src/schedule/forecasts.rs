//! When pending jobs were expected to start, until they do.
//!
//! Now and then the engine plays itself forward with the median of each run time, as it does for
//! `dovetail why`, though with fewer steps and without draws. The first forecast of each pending
//! job is kept until the job starts; what it was worth then shows in metrics.

use std::collections::BTreeMap;

use dovetail_model::JobId;
use dovetail_plan::{Engine, Foresight};

/// The step in which this is made waits for it.
const MOST_STEPS: u64 = 20_000;

/// The first forecast of each pending job.
#[derive(Debug, Default)]
pub(super) struct Forecasts {
    of: BTreeMap<JobId, Forecast>,
}

#[derive(Clone, Copy, Debug)]
struct Forecast {
    made_ms: u64,
    start_ms: Option<u64>,
}

/// How long a job was expected to be pending, and was, from its forecast on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForecastEnd {
    /// `None` is unknown: run times are, or the forecast ended before.
    pub expected_ms: Option<u64>,
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
        let medians = Foresight { draws: 0, max_steps: MOST_STEPS, ..Foresight::default() };
        for start in medians.expected_starts(engine) {
            let forecast = Forecast { made_ms: now_ms, start_ms: start.p50_ms };
            self.of.entry(start.job).or_insert(forecast);
        }
    }

    /// A job starts; what came of its forecast, if it has one.
    pub(super) fn started(&mut self, job: JobId, now_ms: u64) -> Option<ForecastEnd> {
        let Forecast { made_ms, start_ms } = self.of.remove(&job)?;
        let expected_ms = start_ms.map(|start_ms| start_ms.saturating_sub(made_ms));
        Some(ForecastEnd { expected_ms, actual_ms: now_ms.saturating_sub(made_ms) })
    }

    /// A job is gone.
    pub(super) fn forget(&mut self, job: JobId) {
        self.of.remove(&job);
    }
}

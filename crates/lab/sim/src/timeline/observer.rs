//! The observer of a timed simulation that adds up GPU-time and fills the series.

use dovetail_capacity::{CauseJudgement, ClockError, Imbalance, Usage, UsageIntegral};
use dovetail_model::{Event, Plan};
use dovetail_plan::Engine;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::timed::Observer;
use crate::timeline::gpu_time::ModelTimes;
use crate::timeline::series::{Bins, Series};
use crate::timeline::waiting::PendingJobSizes;

/// Watches a simulation from its first submission on.
///
/// It changes nothing that the engine decides. In one process a simulation may be paused and go on
/// under the same timeline; between processes, [`Timeline::pause`] and [`Timeline::resume`] carry
/// it over.
#[derive(Clone, Debug)]
pub struct Timeline {
    state: TimelineState,
    /// The ledger's account since the begin or since the last resumption.
    account: Option<UsageIntegral>,
    /// What of the account is in the state already.
    taken: ModelTimes,
    taken_samples: u64,
    failure: Option<TimelineError>,
}

/// What to watch, and how closely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineConfig {
    /// The longest that a judgement of causes may be out of date, in virtual time; 0 judges at
    /// every change. Everything but the split of free GPU-time by causes that rest on demand is
    /// exact whatever this is.
    pub cause_period_ms: u64,
    /// Where the account ends; `None` is the end of the simulation. The last submission is the
    /// natural end where policies are compared: after it a trace offers nothing, and an empty
    /// cluster says nothing.
    pub until_ms: Option<u64>,
}

impl Default for TimelineConfig {
    /// Ten minutes, to the end.
    fn default() -> Self {
        Self { cause_period_ms: 600_000, until_ms: None }
    }
}

/// Everything of a timeline that must be kept to go on later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineState {
    config: TimelineConfig,
    now_ms: u64,
    /// `None` before the first submission.
    begun: Option<Begun>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Begun {
    from_ms: u64,
    times: ModelTimes,
    cause_samples: u64,
    /// The judgement of causes that was in force at the pause, until the account goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    judgement: Option<CauseJudgement>,
    bins: Bins,
    waiting: PendingJobSizes,
}

/// Why there is no account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TimelineError {
    /// The simulation did not tell of time in order: a bug of the simulator.
    #[error("the account of GPU time is out of order: {0}")]
    Clock(#[from] ClockError),
    /// installed = unavailable + allocated + free does not hold.
    #[error("the account of GPU time does not add up: {0}")]
    Imbalance(#[from] Imbalance),
    /// No job was submitted while it watched.
    #[error(
        "the account of GPU time is empty: no job was submitted while it watched; pass it to the simulation \
         from the start"
    )]
    NothingSeen,
    /// The GPU-time at its prices is more than an amount of money can be.
    #[error(
        "the GPU time from {from_ms} ms to {to_ms} ms costs more than 9.2e12 USD, or would in a \
         month: check the times of the trace and the prices"
    )]
    Money {
        /// Begin of the account, on the trace's clock.
        from_ms: u64,
        to_ms: u64,
    },
}

impl Timeline {
    /// A timeline that has seen nothing.
    pub fn new(config: TimelineConfig) -> Self {
        Self::resume(TimelineState { config, now_ms: 0, begun: None })
    }

    /// A timeline that was paused.
    pub fn resume(state: TimelineState) -> Self {
        let taken = ModelTimes::default();
        Self { state, account: None, taken, taken_samples: 0, failure: None }
    }

    /// What must be kept to go on later. The judgement of causes stays in force, so that the causes
    /// are judged as often and at the same times as in a run without a pause, and all sums are the
    /// same; with a period above 0 the split by causes that rest on demand is rounded to the
    /// milli-GPU × ms once more.
    ///
    /// # Errors
    /// Whatever has gone wrong before; see [`Timeline::usage`].
    pub fn pause(mut self) -> Result<TimelineState, TimelineError> {
        self.take()?;
        if let (Some(account), Some(begun)) = (&self.account, &mut self.state.begun) {
            begun.judgement = account.judgement();
        }
        Ok(self.state)
    }

    /// GPU-time so far, checked: installed = unavailable + allocated + free by cause for every
    /// model.
    ///
    /// # Errors
    /// [`TimelineError`] if the sums do not add up, time went wrong, or nothing was seen.
    pub fn usage(&mut self) -> Result<Usage, TimelineError> {
        self.take()?;
        let begun = self.state.begun.as_ref().ok_or(TimelineError::NothingSeen)?;
        let judged = (self.state.config.cause_period_ms, begun.cause_samples);
        let usage = begun.times.usage((begun.from_ms, self.state.now_ms), judged);
        usage.check()?;
        Ok(usage)
    }

    /// The series so far.
    ///
    /// # Errors
    /// As [`Timeline::usage`].
    pub fn series(&mut self) -> Result<Series, TimelineError> {
        self.take()?;
        let begun = self.state.begun.as_ref().ok_or(TimelineError::NothingSeen)?;
        Ok(begun.bins.series(self.state.now_ms))
    }

    /// Accounts for the time up to `to_ms`, bin by bin.
    fn advance(&mut self, engine: &mut Engine, to_ms: u64) -> Result<(), TimelineError> {
        let Some(begun) = &mut self.state.begun else { return Ok(()) };
        let to_ms = self.state.config.until_ms.map_or(to_ms, |until_ms| until_ms.min(to_ms));
        if to_ms <= self.state.now_ms {
            return Ok(());
        }
        if self.account.is_none() {
            let period_ms = self.state.config.cause_period_ms;
            let account = UsageIntegral::new(engine, self.state.now_ms, period_ms)?;
            self.account = Some(match begun.judgement.take() {
                Some(judgement) => account.with_judgement(&judgement),
                None => account,
            });
        }
        let mut boundary_ms = begun.bins.boundary_ms();
        while boundary_ms <= to_ms {
            self.advance_within_bin(engine, boundary_ms)?;
            self.take()?;
            let Some(begun) = &mut self.state.begun else { return Ok(()) };
            begun.bins.close();
            boundary_ms = begun.bins.boundary_ms();
        }
        self.advance_within_bin(engine, to_ms)
    }

    fn advance_within_bin(&mut self, engine: &mut Engine, to_ms: u64) -> Result<(), TimelineError> {
        let elapsed_ms = to_ms - self.state.now_ms;
        if let (Some(account), Some(begun)) = (&mut self.account, &mut self.state.begun) {
            account.advance(engine, to_ms)?;
            let waiting = &begun.waiting;
            begun.bins.current.add_waiting(waiting.jobs(), waiting.gpu_milli(), elapsed_ms);
        }
        self.state.now_ms = to_ms;
        Ok(())
    }

    /// Moves what is new in the account into the state, and checks it.
    fn take(&mut self) -> Result<(), TimelineError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if let (Some(account), Some(begun)) = (&mut self.account, &mut self.state.begun) {
            let usage = account.usage();
            usage.check()?;
            let times = ModelTimes::of(&usage);
            let new = times.since(&self.taken);
            begun.bins.current.add_time(&new.total());
            begun.times.add(&new);
            begun.cause_samples += usage.cause_samples - self.taken_samples;
            self.taken = times;
            self.taken_samples = usage.cause_samples;
        }
        Ok(())
    }
}

impl Observer for Timeline {
    fn advanced(&mut self, engine: &mut Engine, _from_ms: u64, to_ms: u64) {
        if self.failure.is_none() {
            self.failure = self.advance(engine, to_ms).err();
        }
    }

    fn stepped(&mut self, _engine: &mut Engine, now_ms: u64, events: &[Event], plan: &Plan) {
        if self.state.begun.is_none() {
            if !events.iter().any(|event| matches!(event, Event::Submitted(_))) {
                return;
            }
            self.state.now_ms = now_ms;
            self.state.begun = Some(Begun {
                from_ms: now_ms,
                times: ModelTimes::default(),
                cause_samples: 0,
                judgement: None,
                bins: Bins::new(now_ms),
                waiting: PendingJobSizes::default(),
            });
        }
        if let Some(begun) = &mut self.state.begun {
            begun.waiting.stepped(events, plan);
        }
    }
}

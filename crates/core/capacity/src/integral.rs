//! GPU-time: the account of every moment, added up while an engine moves through time.
//!
//! What is installed, unavailable, allocated, draining, starting, kept by reservations and open to
//! demand is exact at every event. How the open part splits by cause is judged at every change
//! (period 0), or at least once per period of virtual time: a judgement holds until the next one,
//! at most one period unless nothing changes, and what was open of each model is split by it in
//! proportion. So a split is never older than the period, and the sums stay exact.

use dovetail_model::{FreeCause, in_proportion};
use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_model::Requirement;
use dovetail_plan::Engine;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::assign::ByCause;
use crate::cause::CAUSES;
use crate::states::States;
use crate::survey::CapacityAccount;
use crate::tracker::{FreeTracker, add_to};
use crate::usage::Usage;

/// Adds up GPU-time by state, model, queue and cause.
#[derive(Clone, Debug)]
pub struct UsageIntegral {
    tracker: FreeTracker,
    from_ms: u64,
    now_ms: u64,
    cause_period_ms: u64,
    judged_ms: Option<u64>,
    samples: u64,
    /// Per account: milli-GPU × ms up to the time beside it.
    meters: Vec<(i128, u64)>,
    /// Per model: how the open part splits.
    split_milli: Vec<ByCause>,
    /// Per model: open milli-GPU × ms that have been split already, and by cause.
    split_so_far: Vec<(i128, [i128; CAUSES])>,
}

/// A judgement of causes that is in force, with which another account can begin
/// ([`UsageIntegral::with_judgement`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CauseJudgement {
    judged_ms: u64,
    /// Per model: how the open part splits, in milli-GPU; causes of nothing are left out.
    split_milli: BTreeMap<String, BTreeMap<FreeCause, i64>>,
}

/// The account was not told of time in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ClockError {
    /// Time goes forward.
    #[error(
        "the change at {told_ms} ms is before the last change at {now_ms} ms; pass changes in time order"
    )]
    WentBack {
        /// Time of the account.
        now_ms: u64,
        /// Time it was told of.
        told_ms: u64,
    },
    /// The state between the two times is unknown.
    #[error(
        "the engine is at {engine_ms} ms and the account at {now_ms} ms: advance the account to the time of \
         an event before the engine takes the event"
    )]
    EngineAhead {
        /// Time of the account.
        now_ms: u64,
        /// Time of the engine.
        engine_ms: u64,
    },
}

impl UsageIntegral {
    /// An account that begins at `from_ms`, which must not lie before the engine's newest event.
    ///
    /// `cause_period_ms`: the longest a judgement of causes may be out of date; 0 judges at every
    /// change.
    pub fn new(engine: &Engine, from_ms: u64, cause_period_ms: u64) -> Result<Self, ClockError> {
        let account = Self {
            tracker: FreeTracker::new(),
            from_ms,
            now_ms: from_ms,
            cause_period_ms,
            judged_ms: None,
            samples: 0,
            meters: Vec::new(),
            split_milli: Vec::new(),
            split_so_far: Vec::new(),
        };
        account.check_clock(engine, from_ms)?;
        Ok(account)
    }

    /// The same account with a judgement that an earlier one made of this cluster: it is in force
    /// until its period is over.
    #[must_use]
    pub fn with_judgement(mut self, judgement: &CauseJudgement) -> Self {
        for (model, by_cause) in &judgement.split_milli {
            let number = self.tracker.surveyor.models.number(model) as usize;
            if self.split_milli.len() <= number {
                self.split_milli.resize(number + 1, [0; CAUSES]);
            }
            for (cause, milli) in by_cause {
                self.split_milli[number][*cause as usize] = *milli;
            }
        }
        self.judged_ms = Some(judgement.judged_ms);
        self
    }

    /// The judgement in force; `None` before the first.
    pub fn judgement(&self) -> Option<CauseJudgement> {
        let by_cause = |split: &ByCause| -> BTreeMap<FreeCause, i64> {
            let all = FreeCause::ALL.into_iter().map(|cause| (cause, split[cause as usize]));
            all.filter(|(_, milli)| *milli != 0).collect()
        };
        let models = &self.tracker.surveyor.models;
        let splits = self.split_milli.iter().enumerate();
        let splits =
            splits.map(|(number, split)| (models.name(number as u32).to_owned(), by_cause(split)));
        Some(CauseJudgement { judged_ms: self.judged_ms?, split_milli: splits.collect() })
    }

    /// Accounts for the time up to `now_ms` with the state the engine is in.
    ///
    /// Call it with the time of each event before the engine takes it, and at the end. More than
    /// one event at one time need one call.
    pub fn advance(&mut self, engine: &mut Engine, now_ms: u64) -> Result<(), ClockError> {
        self.check_clock(engine, now_ms)?;
        if now_ms == self.now_ms {
            return Ok(());
        }
        self.sync(engine);
        let out_of_date = self.judged_ms.is_none_or(|at| now_ms - at >= self.cause_period_ms);
        if out_of_date || self.has_open_without_split() {
            self.judge(engine);
        }
        self.now_ms = now_ms;
        Ok(())
    }

    /// Adds pods that were turned away and do not wait in the engine.
    pub fn turn_away(&mut self, engine: &mut Engine, requirement: &Arc<Requirement>, pods: u64) {
        self.tracker.turn_away(engine, requirement, pods);
    }

    /// GPU-time from the begin up to where the account is.
    pub fn usage(&mut self) -> Usage {
        self.settle();
        let surveyor = &self.tracker.surveyor;
        let mut models: BTreeMap<String, States<i128>> = BTreeMap::new();
        for (number, (model, account)) in self.tracker.accounts.keys.iter().enumerate() {
            let name = surveyor.models.name(*model).to_owned();
            let states = models.entry(name).or_insert_with(States::zero);
            add_to(states, surveyor, *account, self.metered(number));
        }
        for (model, (_, by_cause)) in self.split_so_far.iter().enumerate() {
            let name = surveyor.models.name(model as u32).to_owned();
            let states = models.entry(name).or_insert_with(States::zero);
            for cause in FreeCause::ALL {
                states.add_free(cause, by_cause[cause as usize]);
            }
        }
        let mut total = States::zero();
        models.values().for_each(|states| total.add(states));
        Usage {
            from_ms: self.from_ms,
            to_ms: self.now_ms,
            cause_period_ms: self.cause_period_ms,
            cause_samples: self.samples,
            total_gpu_milli_ms: total,
            models_gpu_milli_ms: models,
        }
    }

    fn check_clock(&self, engine: &Engine, told_ms: u64) -> Result<(), ClockError> {
        let now_ms = self.now_ms;
        if told_ms < now_ms {
            return Err(ClockError::WentBack { now_ms, told_ms });
        }
        match engine.now_ms() > now_ms {
            true => Err(ClockError::EngineAhead { now_ms, engine_ms: engine.now_ms() }),
            false => Ok(()),
        }
    }

    /// Takes over what changed at the time of the account.
    fn sync(&mut self, engine: &Engine) {
        let (meters, now_ms) = (&mut self.meters, self.now_ms);
        self.tracker.sync(engine, |number, level_milli| {
            if meters.len() <= number {
                meters.resize(number + 1, (0, now_ms));
            }
            let (metered, since_ms) = &mut meters[number];
            *metered += i128::from(level_milli) * i128::from(now_ms - *since_ms);
            *since_ms = now_ms;
        });
    }

    /// Milli-GPU × ms of an account up to the present.
    fn metered(&self, number: usize) -> i128 {
        let Some((metered, since_ms)) = self.meters.get(number) else { return 0 };
        let level_milli = self.tracker.accounts.levels_milli[number];
        metered + i128::from(level_milli) * i128::from(self.now_ms - since_ms)
    }

    fn has_open_without_split(&self) -> bool {
        let models = 0..self.tracker.surveyor.models.len();
        models.into_iter().any(|model| {
            let open = self.tracker.accounts.level(model as u32, CapacityAccount::Open);
            let split = self.split_milli.get(model).map_or(0, |split| split.iter().sum());
            open > 0 && split == 0
        })
    }

    fn judge(&mut self, engine: &mut Engine) {
        self.settle();
        let (pieces, split) = self.tracker.classify(engine);
        self.split_milli = self.tracker.by_model(&pieces, &split);
        self.judged_ms = Some(self.now_ms);
        self.samples += 1;
    }

    /// Splits what was open since the last time by the judgement in force.
    fn settle(&mut self) {
        let models = self.tracker.surveyor.models.len();
        self.split_so_far.resize(models, (0, [0; CAUSES]));
        for model in 0..models {
            let open = self.tracker.accounts.find(model as u32, CapacityAccount::Open);
            let metered = open.map_or(0, |number| self.metered(number));
            let new = metered - self.split_so_far[model].0;
            if new == 0 {
                continue;
            }
            let weights = self.split_milli[model].map(i128::from);
            let (so_far, by_cause) = &mut self.split_so_far[model];
            *so_far = metered;
            let parts = in_proportion(new, &weights);
            by_cause.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
        }
    }
}

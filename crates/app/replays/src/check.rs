//! The judge beside a replay, as a flag asks for it.

use anyhow::Result;
use clap::ValueEnum;
use dovetail_check::{Violations, Watch};
use dovetail_model::{Event, Plan, Snapshot};
use dovetail_order::QueueTurns;
use dovetail_plan::{Engine, EngineConfig};
use dovetail_settings::errors::Violated;

/// When everything is added up again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Check {
    /// Every 1,000 steps and at the end
    #[default]
    Sampled,
    /// After every step (slow)
    EveryStep,
    /// No checks; use it only to measure speed
    Off,
}

/// Watches a replay, unless that is off.
#[derive(Debug)]
pub struct ReplayWatch(Option<Watch>);

impl ReplayWatch {
    /// A judge over the world as it is before the first event.
    pub fn new(check: Check, world: &Snapshot) -> Self {
        Self(match check {
            Check::Sampled => Some(Watch::new(world, Watch::SAMPLED)),
            Check::EveryStep => Some(Watch::new(world, 1)),
            Check::Off => None,
        })
    }

    /// The same beside an engine whose order may divide the cluster among queues, and that may
    /// reserve room for the jobs that are next.
    pub fn of_turns(check: Check, world: &Snapshot, engine: &EngineConfig) -> Self {
        let is_divided = engine.turns.queues == QueueTurns::Kai;
        let Self(watch) = Self::new(check, world);
        let watch = watch.map(|watch| {
            watch.with_divided_cluster(is_divided).with_lent_percent(engine.reserve.lent_percent)
        });
        Self(watch)
    }

    /// What happened at one moment and what was decided.
    pub fn step(&mut self, events: &[Event], plan: &Plan, now_ms: u64) {
        if let Some(watch) = &mut self.0 {
            watch.step(events, plan, now_ms);
        }
    }

    /// What an engine has reserved after a step, and how much of that is lent.
    pub fn lent(&mut self, engine: &Engine) {
        if let Some(watch) = &mut self.0 {
            watch.lent(&engine.list().lending());
        }
    }

    /// The last full check, and the verdict.
    ///
    /// # Errors
    /// What decisions did that they must not do.
    pub fn verdict(self) -> Result<()> {
        let violated = |violations: Violations| Violated(violations.to_string());
        self.0.map_or(Ok(()), Watch::verdict).map_err(|found| violated(found).into())
    }
}

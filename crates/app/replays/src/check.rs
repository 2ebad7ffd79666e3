//! The judge beside a replay: every action on what it touches, everything now and then.

use anyhow::Result;
use clap::ValueEnum;
use dovetail_check::{Judge, Violation};
use dovetail_model::{Event, Plan, Snapshot};
use dovetail_order::QueueTurns;
use dovetail_plan::EngineConfig;
use dovetail_settings::errors::Violated;

/// Steps between two full checks, unless every step is one.
const FULL_CHECK_EVERY: u64 = 1_000;
/// Violations told; the first ones say what went wrong, the others follow from them.
const TOLD: usize = 5;

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

/// Watches a replay.
#[derive(Debug)]
pub struct ReplayWatch {
    judge: Option<Judge>,
    check: Check,
    steps: u64,
    violations: Vec<String>,
}

impl ReplayWatch {
    /// A judge over the world as it is before the first event.
    pub fn new(check: Check, world: &Snapshot) -> Self {
        let judge = (check != Check::Off).then(|| Judge::new(world));
        Self { judge, check, steps: 0, violations: Vec::new() }
    }

    /// The same beside an engine whose order may divide the cluster among queues.
    pub fn of_turns(check: Check, world: &Snapshot, engine: &EngineConfig) -> Self {
        let is_divided = engine.turns.queues == QueueTurns::Kai;
        let Self { judge, check, steps, violations } = Self::new(check, world);
        let judge = judge.map(|judge| judge.with_divided_cluster(is_divided));
        Self { judge, check, steps, violations }
    }

    /// What happened at one moment and what was decided.
    pub fn step(&mut self, events: &[Event], plan: &Plan, now_ms: u64) {
        let Some(judge) = &mut self.judge else { return };
        self.steps += 1;
        for event in events {
            judge.event(event, now_ms);
        }
        let mut found = judge.plan(plan);
        if self.check == Check::EveryStep || self.steps.is_multiple_of(FULL_CHECK_EVERY) {
            found.extend(judge.recheck_all());
        }
        self.note(found);
    }

    /// The last full check, and the verdict.
    pub fn verdict(mut self) -> Result<()> {
        let found = self.judge.as_ref().map(Judge::recheck_all).unwrap_or_default();
        self.note(found);
        if self.violations.is_empty() {
            return Ok(());
        }
        let told = self.violations.iter().take(TOLD).map(|text| format!("\n  {text}"));
        let text = format!(
            "{} violations; this is a bug, report it with the command line{}",
            self.violations.len(),
            told.collect::<String>()
        );
        Err(Violated(text).into())
    }

    fn note(&mut self, found: Vec<Violation>) {
        let steps = self.steps;
        let text = |violation: Violation| format!("step {steps}: {violation}");
        self.violations.extend(found.into_iter().map(text));
    }
}

//! A judge beside a replay: every action on what it touches, everything now and then.

use dovetail_model::{Event, Plan, Reserved, Snapshot};
use thiserror::Error;

use crate::{Judge, Violation};

/// Violations in the text of the error; the first ones say what went wrong, the others follow from
/// them.
const SHOWN: usize = 5;

/// Watches a replay.
#[derive(Debug)]
pub struct Watch {
    judge: Judge,
    full_check_every: u64,
    steps: u64,
    violations: Vec<String>,
}

/// What decisions did that they must not do, with the step of each.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{} violations; this is a bug, report it with the command line{}",
    .0.len(),
    .0.iter().take(SHOWN).map(|text| format!("\n  {text}")).collect::<String>()
)]
pub struct Violations(pub Vec<String>);

impl Watch {
    /// Steps between two full checks that a replay of any length can afford.
    pub const SAMPLED: u64 = 1_000;

    /// A judge over the world as it is before the first event, which adds everything up again after
    /// every so many steps and at the end.
    pub fn new(world: &Snapshot, full_check_every: u64) -> Self {
        Self { judge: Judge::new(world), full_check_every, steps: 0, violations: Vec::new() }
    }

    /// The same where an order may divide the cluster among queues.
    #[must_use]
    pub fn with_divided_cluster(self, is_divided: bool) -> Self {
        Self { judge: self.judge.with_divided_cluster(is_divided), ..self }
    }

    /// The same where jobs with a reservation lend at most so many percent of their own GPUs.
    #[must_use]
    pub fn with_lent_percent(self, lent_percent: u32) -> Self {
        Self { judge: self.judge.with_lent_percent(lent_percent), ..self }
    }

    /// What happened at one moment and what was decided.
    pub fn step(&mut self, events: &[Event], plan: &Plan, now_ms: u64) {
        self.steps += 1;
        for event in events {
            self.judge.event(event, now_ms);
        }
        let mut found = self.judge.plan(plan);
        if self.steps.is_multiple_of(self.full_check_every) {
            found.extend(self.judge.recheck_all());
        }
        self.note(found);
    }

    /// What is reserved after a step, by jobs that lend it.
    pub fn lent(&mut self, reserved: &[Reserved]) {
        let found = self.judge.lent(reserved);
        self.note(found);
    }

    /// The last full check, and the verdict.
    ///
    /// # Errors
    /// All violations.
    pub fn verdict(mut self) -> Result<(), Violations> {
        let found = self.judge.recheck_all();
        self.note(found);
        if self.violations.is_empty() { Ok(()) } else { Err(Violations(self.violations)) }
    }

    fn note(&mut self, found: Vec<Violation>) {
        let steps = self.steps;
        let text = |violation: Violation| format!("step {steps}: {violation}");
        self.violations.extend(found.into_iter().map(text));
    }
}

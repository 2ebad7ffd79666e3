//! What an engine has learned, for another engine of the same cluster.

use dovetail_model::cohort::Cohorts;
use dovetail_model::{RunTimeTables, Snapshot};
use dovetail_order::book::TurnBook;
use dovetail_order::estimate::RunTimes;
use dovetail_policy::learn::Learnt;

use super::events::expect_ends;
use super::{Engine, EngineConfig};
use crate::starts::StartCorrections;

/// What an engine has learned from the jobs that came and ended. Nothing is known by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// Which pods arrive and how far jobs come and go; `None` with a policy that learns nothing.
    pub policy: Option<Learnt>,
    /// How long jobs run; `None` where that is not learned.
    pub run_times: Option<RunTimeTables>,
    /// How long jobs run that came together, without the jobs that are there; `None` with another
    /// order than `dovetail`.
    pub cohorts: Option<Cohorts>,
    /// How much later jobs start than forecasts say. Engines do not forecast by themselves: whoever
    /// has them do it fills this in.
    pub starts: StartCorrections,
}

impl Learned {
    /// What an engine has learned, and what it was told that others had before.
    pub fn of(engine: &Engine) -> Self {
        Self {
            policy: engine.learnt(),
            run_times: engine.books.run_times.tables(),
            cohorts: engine.books.turns.as_ref().map(TurnBook::learned),
            starts: StartCorrections::default(),
        }
    }

    /// An engine of this configuration over this world goes on from here.
    pub fn go_on(&self, config: &mut EngineConfig, world: &mut Snapshot) {
        if let Some(policy) = &self.policy {
            config.policy.learnt = Some(policy.for_another_engine());
        }
        if self.run_times.is_some() {
            world.run_times.clone_from(&self.run_times);
            let run_times = RunTimes::new(config.estimates, self.run_times.as_ref());
            expect_ends(world, &run_times);
        }
        if self.cohorts.is_some() {
            world.cohorts.clone_from(&self.cohorts);
        }
    }
}

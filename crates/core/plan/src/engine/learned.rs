//! What an engine has learned, for another engine of the same cluster.

use dovetail_model::{RunTimeTables, Snapshot};
use dovetail_order::estimate::{self, RunTimesError};
use dovetail_policy::learn::{Learnt, LearntError};
use thiserror::Error;

use super::{Engine, EngineConfig};

/// What an engine has learned from the jobs that came and ended. Nothing is known by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// Which pods arrive and how far jobs come and go; `None` with a policy that learns nothing.
    pub policy: Option<Learnt>,
    /// How long jobs run; `None` where that is not learned.
    pub run_times: Option<RunTimeTables>,
}

/// A number is none that an engine learns.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LearnedError {
    #[error(transparent)]
    Policy(#[from] LearntError),
    #[error(transparent)]
    RunTimes(#[from] RunTimesError),
}

impl Learned {
    /// What an engine has learned, and what it was told that others had before.
    pub fn of(engine: &Engine) -> Self {
        Self { policy: engine.learnt(), run_times: engine.books.run_times.tables() }
    }

    /// Whether an engine could have learned this.
    ///
    /// # Errors
    /// The first number that is beyond its limits.
    pub fn check(&self) -> Result<(), LearnedError> {
        self.policy.as_ref().map_or(Ok(()), Learnt::check)?;
        Ok(self.run_times.as_ref().map_or(Ok(()), estimate::check)?)
    }

    /// An engine of this configuration over this world goes on from here.
    pub fn go_on(&self, config: &mut EngineConfig, world: &mut Snapshot) {
        if let Some(policy) = &self.policy {
            config.policy.learnt = Some(policy.for_another_engine());
        }
        if self.run_times.is_some() {
            world.run_times.clone_from(&self.run_times);
        }
    }
}

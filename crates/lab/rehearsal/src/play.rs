//! Plays one history and says how it went.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dovetail_control::record::Recording;

use crate::recipe::Recipe;
use crate::run::HistoryRun;

/// What went wrong in a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryFailure {
    /// What, for people.
    pub problem: String,
    /// Names of the steps that happened and the faults that struck.
    pub happened: Vec<String>,
}

/// How a history went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// Everything that happened, a line each.
    pub log: String,
    /// What went wrong, if anything did.
    pub failure: Option<HistoryFailure>,
}

/// Plays a history to its end. A panic of what is played is what went wrong.
pub fn play(recipe: &Recipe) -> Played {
    play_run(HistoryRun::new(recipe, None))
}

/// As [`play`], with a recording of each process that starts.
pub fn play_recorded(recipe: &Recipe, recordings: &dyn Fn() -> Recording) -> Played {
    play_run(HistoryRun::new(recipe, Some(recordings)))
}

fn play_run(mut run: HistoryRun<'_>) -> Played {
    let ended = catch_unwind(AssertUnwindSafe(|| run.go()));
    let panic = ended.err().map(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| Some((*panic.downcast_ref::<&str>()?).to_owned()));
        format!("panic: {}", text.unwrap_or_default())
    });
    let problem = panic.or_else(|| run.problem.take());
    let failure = problem.map(|problem| HistoryFailure { problem, happened: run.happened() });
    Played { log: run.take_log(), failure }
}

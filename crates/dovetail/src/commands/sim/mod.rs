//! `dovetail sim`: replays of traces.

mod check;
mod run;
mod run_fgd;
mod run_timed;
mod timed_replay;

use anyhow::Result;
use clap::Subcommand;

use crate::app::App;

/// Commands of the simulator.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Replay one trace under one policy.
    Run(Box<run::RunFlags>),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(self, app: &App) -> Result<()> {
        match self {
            Self::Run(flags) => run::run(app, &flags),
        }
    }
}

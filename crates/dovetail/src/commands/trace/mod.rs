//! `dovetail trace`: files with jobs and machines.

mod stats;

use anyhow::Result;
use clap::Subcommand;

use crate::app::App;

/// Commands for traces.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print what a person asks first about a trace.
    Stats(stats::StatsFlags),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(self, app: &App) -> Result<()> {
        match self {
            Self::Stats(flags) => stats::run(app, &flags),
        }
    }
}

//! `dovetail usage`: what GPUs did while somebody held them.

mod idle;

use anyhow::Result;
use clap::Subcommand;

use crate::app::App;

/// Commands for usage samples.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find long runs of low activity in samples, and the GPU-hours that could be taken back.
    Idle(idle::IdleFlags),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(self, app: &App) -> Result<()> {
        match self {
            Self::Idle(flags) => idle::run(app, &flags),
        }
    }
}

//! `dovetail usage`: what GPUs did while somebody held them.

pub(crate) mod gpus;
mod idle;

use anyhow::Result;
use clap::Subcommand;
use dovetail_console::app::App;

/// Commands for usage samples.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find long runs of low activity in samples, and the GPU-hours that could be taken back.
    Idle(idle::IdleFlags),
    /// Read what every GPU did from Prometheus: allocated against active time, and what idle time
    /// costs.
    Gpus(Box<gpus::GpusFlags>),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(self, app: &App) -> Result<()> {
        match self {
            Self::Idle(flags) => idle::run(app, &flags),
            Self::Gpus(flags) => gpus::run(app, &flags),
        }
    }
}

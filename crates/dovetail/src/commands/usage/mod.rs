//! `dovetail usage`: what GPUs did while somebody held them.

pub(crate) mod gpus;
mod idle;

use anyhow::Result;
use clap::Subcommand;
use dovetail_console::app::App;

/// Commands for usage samples.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find long idle periods in samples, and the GPU-hours that could be reclaimed.
    Idle(idle::IdleFlags),
    /// Show allocated and active GPU time from Prometheus, and what idle time costs.
    Gpus(Box<gpus::GpusFlags>),
}

impl Command {
    pub(crate) fn run(self, app: &App) -> Result<()> {
        match self {
            Self::Idle(flags) => idle::run(app, &flags),
            Self::Gpus(flags) => gpus::run(app, &flags),
        }
    }
}

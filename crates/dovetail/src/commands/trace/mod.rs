//! `dovetail trace`: files with jobs and nodes.

mod export;
mod import;
mod stats;
mod synth;

use anyhow::Result;
use clap::Subcommand;
use dovetail_console::app::App;

/// Commands for traces.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Convert a trace in any supported format to dovetail's CSV format.
    Import(import::ImportFlags),
    /// Generate a cluster and a realistic stream of jobs, or the objects of a cluster, from a
    /// seed.
    Synth(synth::SynthFlags),
    /// Print statistics of a trace.
    Stats(stats::StatsFlags),
    /// Write a trace as a job table for other tools, or a ledger as a trace.
    Export(export::ExportFlags),
}

impl Command {
    pub(crate) fn run(self, app: &App) -> Result<()> {
        match self {
            Self::Import(flags) => import::run(app, &flags),
            Self::Synth(flags) => synth::run(app, &flags),
            Self::Stats(flags) => stats::run(app, &flags),
            Self::Export(flags) => export::run(app, &flags),
        }
    }
}

//! `dovetail trace`: files with jobs and machines.

mod export;
mod import;
mod stats;
mod synth;

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context, Result};
use clap::Subcommand;

use crate::app::App;

/// Commands for traces.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Turn a trace of any known format into dovetail's own CSV, which keeps everything.
    Import(import::ImportFlags),
    /// Generate a cluster and a stream of jobs that look like real ones, by seed.
    Synth(synth::SynthFlags),
    /// Print what a person asks first about a trace.
    Stats(stats::StatsFlags),
    /// Write a trace as a job table, the smallest common form for other tools.
    Export(export::ExportFlags),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(self, app: &App) -> Result<()> {
        match self {
            Self::Import(flags) => import::run(app, &flags),
            Self::Synth(flags) => synth::run(app, &flags),
            Self::Stats(flags) => stats::run(app, &flags),
            Self::Export(flags) => export::run(app, &flags),
        }
    }
}

/// Writes a file; the writer's own error says what could not be written.
fn write_file<T, E: Into<anyhow::Error>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, E>,
) -> Result<T> {
    let name = path.display();
    let file = File::create(path).with_context(|| format!("{name}: cannot create it"))?;
    let mut file = BufWriter::new(file);
    let written = write(&mut file).map_err(Into::into).with_context(|| name.to_string())?;
    file.flush().with_context(|| format!("{name}: cannot write it"))?;
    Ok(written)
}

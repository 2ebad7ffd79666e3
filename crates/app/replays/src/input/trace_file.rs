//! Reads trace files and tells on standard error what was left out.

use std::path::Path;

use anyhow::{Error, Result};
use clap::Args;
use dovetail_console::app::App;
use dovetail_console::table::counted;
use dovetail_trace::{
    ReadOptions, SkippedRow, Trace, TraceCluster, TraceError, read_cluster, read_trace,
};
use dovetail_units::place::FilePosition;

use crate::input::baseline;

/// How bad rows are met.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct RowFlags {
    /// Skip bad rows and list them on standard error
    #[arg(long)]
    pub skip_bad_rows: bool,
}

impl RowFlags {
    fn options(self) -> ReadOptions {
        ReadOptions { skip_bad_rows: self.skip_bad_rows, ..ReadOptions::default() }
    }
}

/// The jobs of a file.
pub fn jobs(app: &App, path: &Path, rows: RowFlags) -> Result<Trace> {
    jobs_with(app, path, &rows.options())
}

/// The jobs of a file, read as told.
pub fn jobs_with(app: &App, path: &Path, options: &ReadOptions) -> Result<Trace> {
    let trace = read_trace(path, options).map_err(or_skip)?;
    tell(app, path, &trace.notes, &trace.skipped);
    Ok(trace)
}

/// The jobs of a file for a use that needs to know when each came and how long it ran.
pub fn jobs_with_times(app: &App, path: &Path, rows: RowFlags, needed_by: &str) -> Result<Trace> {
    let trace = read_trace(path, &rows.options()).map_err(or_skip)?;
    baseline::check_times(&trace, needed_by)?;
    let trace = trace.with_run_times(rows.skip_bad_rows, needed_by).map_err(or_skip)?;
    tell(app, path, &trace.notes, &trace.skipped);
    Ok(trace)
}

/// The machines of a file.
pub fn machines(app: &App, path: &Path, rows: RowFlags) -> Result<TraceCluster> {
    machines_with(app, path, &rows.options())
}

/// The machines of a file, read as told.
pub fn machines_with(app: &App, path: &Path, options: &ReadOptions) -> Result<TraceCluster> {
    let cluster = read_cluster(path, options).map_err(or_skip)?;
    tell(app, path, &cluster.notes, &cluster.skipped);
    Ok(cluster)
}

/// Names the flag that gets past a bad row.
fn or_skip(error: TraceError) -> Error {
    match &error {
        TraceError::Row(_) => {
            let text = format!("{error}; to skip and list such rows, pass --skip-bad-rows");
            Error::new(error).context(text)
        }
        _ => error.into(),
    }
}

fn tell(app: &App, path: &Path, notes: &[String], skipped: &[SkippedRow]) {
    let file = path.display();
    for note in notes {
        app.note(&format!("{file}: {note}"));
    }
    for row in skipped {
        let name = file.to_string();
        let place = FilePosition::line(&name, row.line).column(row.column.as_deref());
        app.note(&format!("skipped {place}: `{}` {}", row.text, row.reason));
    }
    if !skipped.is_empty() {
        app.note(&format!("{file}: {} skipped", counted(skipped.len(), "bad row")));
    }
}

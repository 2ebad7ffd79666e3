//! `dovetail trace export`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use dovetail_trace::write_job_table;
use serde::Serialize;

use crate::app::App;
use crate::input::trace_file::{self, RowFlags};
use crate::output::Output;
use crate::output::file::write_whole;
use crate::output::places::refuse_shared;
use crate::output::table::{facts, whole};

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct ExportFlags {
    /// File with jobs
    #[arg(value_name = "FILE")]
    jobs: PathBuf,
    /// File to write
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    #[command(flatten)]
    rows: RowFlags,
}

/// The result, as JSON.
#[derive(Debug, Serialize)]
struct Report {
    jobs: usize,
    /// Columns that some job has and the table cannot hold.
    left_out_columns: Vec<&'static str>,
    written: String,
}

/// Writes a job table.
pub(crate) fn run(app: &App, flags: &ExportFlags) -> Result<()> {
    let output = app.output("trace export", &[Output::Table, Output::Json])?;
    refuse_shared(&[("FILE", Some(&flags.jobs))], &[("--to", Some(&flags.to))])?;
    let trace = trace_file::jobs_with_times(app, &flags.jobs, flags.rows, "a job table")?;
    let left_out_columns = write_whole(&flags.to, |file| write_job_table(&trace, file))?;
    let written = flags.to.display().to_string();
    let report = Report { jobs: trace.jobs.len(), left_out_columns, written };
    match output {
        Output::Json => app.print_json(&report),
        _ => {
            let left_out = match report.left_out_columns.is_empty() {
                true => "nothing".to_owned(),
                false => report.left_out_columns.join(", "),
            };
            app.print(&facts(vec![
                ("jobs", whole(report.jobs as u64)),
                ("a job table cannot hold", left_out),
                ("written", report.written),
            ]))
        }
    }
}

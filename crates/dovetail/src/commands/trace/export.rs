//! `dovetail trace export`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use dovetail_console::app::App;
use dovetail_console::file::write_whole;
use dovetail_console::places::refuse_shared;
use dovetail_console::table::{facts, whole};
use dovetail_settings::form::Output;
use dovetail_trace::write_job_table;
use dovetail_traces::from_ledger;
use serde::Serialize;

use dovetail_replays::input::trace_file::{self, RowFlags};

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct ExportFlags {
    /// File with jobs [required without --from-ledger]
    #[arg(value_name = "FILE", required_unless_present = "from_ledger")]
    jobs: Option<PathBuf>,
    /// File to write
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    #[command(flatten)]
    rows: RowFlags,
    #[command(flatten)]
    ledger: from_ledger::LedgerFlags,
}

/// The result, as JSON.
#[derive(Debug, Serialize)]
struct TableWritten {
    jobs: usize,
    /// Columns that some job has and the table cannot hold.
    left_out_columns: Vec<&'static str>,
    written: String,
}

/// Writes a job table, or what a ledger saw.
pub(crate) fn run(app: &App, flags: &ExportFlags) -> Result<()> {
    if let Some(ledger) = &flags.ledger.from_ledger {
        return from_ledger::run(app, &flags.ledger, ledger, &flags.to);
    }
    let Some(jobs) = &flags.jobs else { bail!("FILE or --from-ledger is required") };
    let output = app.output("trace export")?;
    refuse_shared(&[("FILE", Some(jobs))], &[("--to", Some(&flags.to))])?;
    let trace = trace_file::jobs_with_times(app, jobs, flags.rows, "a job table")?;
    let left_out_columns = write_whole(&flags.to, |file| write_job_table(&trace, file))?;
    let written = flags.to.display().to_string();
    let report = TableWritten { jobs: trace.jobs.len(), left_out_columns, written };
    match output {
        Output::Json => app.print_json(&report),
        _ => {
            let left_out = match report.left_out_columns.is_empty() {
                true => "none".to_owned(),
                false => report.left_out_columns.join(", "),
            };
            app.print(&facts(vec![
                ("jobs", whole(report.jobs as u64)),
                ("columns left out", left_out),
                ("written", report.written),
            ]))
        }
    }
}

//! `dovetail trace stats`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use dovetail_console::app::App;
use dovetail_settings::form::Output;
use dovetail_trace::stats::{describe, stats_table};

use dovetail_replays::input::cluster::NodesFlag;
use dovetail_replays::input::trace_file::{self, RowFlags};

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct StatsFlags {
    /// File with jobs
    #[arg(value_name = "FILE")]
    jobs: PathBuf,
    /// Nodes for the jobs: a CSV file, or COUNTxGPUS such as 8x8
    #[arg(long, value_name = "FILE|SIZES")]
    nodes: Option<NodesFlag>,
    #[command(flatten)]
    rows: RowFlags,
}

/// Describes a trace.
pub(crate) fn run(app: &App, flags: &StatsFlags) -> Result<()> {
    let output = app.output("trace stats")?;
    let trace = trace_file::jobs(app, &flags.jobs, flags.rows)?;
    let cluster = flags.nodes.as_ref().map(|nodes| nodes.cluster(app, flags.rows)).transpose()?;
    let stats = describe(&trace, cluster.as_ref());
    match output {
        Output::Json => app.print_json(&stats),
        _ => app.print(&stats_table(&stats)),
    }
}

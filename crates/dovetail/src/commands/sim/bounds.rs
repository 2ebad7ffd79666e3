//! `dovetail sim bounds`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use dovetail_console::app::App;
use dovetail_console::style::OutputStream;
use dovetail_console::table::{counted, facts, percent, table, whole};
use dovetail_settings::errors::{BadInput, UsageError};
use dovetail_settings::form::Output;
use dovetail_trace::fgd::trace_name;
use dovetail_units::duration::duration_of_seconds;
use serde::Serialize;

use crate::commands::sim::run::Protocol;
use dovetail_replays::impossible;
use dovetail_replays::input::baseline;
use dovetail_replays::input::cluster::NodesFlag;
use dovetail_replays::input::fgd_world::{FgdTrace, OrderFlags};
use dovetail_replays::input::trace_file::{self, RowFlags};
use dovetail_replays::limits::{TimeLimits, times};
use dovetail_sim::fgd::prefixes;
use dovetail_sim::timed::Impossible;

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct BoundsFlags {
    /// What to bound: how many of the arriving pods fit (fgd), or the times at which jobs
    /// finish (timed)
    #[arg(long, value_enum, value_name = "NAME")]
    protocol: Protocol,
    /// Nodes: a CSV file, or COUNTxGPUS such as 8x8 or 4x8,2x4 (these nodes have ample CPU and
    /// memory)
    #[arg(long, value_name = "FILE|SIZES")]
    nodes: NodesFlag,
    /// fgd: file with the pods [required with fgd]
    #[arg(long, value_name = "FILE", required_if_eq("protocol", "fgd"))]
    pods: Option<PathBuf>,
    /// timed: file with the jobs [required with timed]
    #[arg(long, value_name = "FILE", required_if_eq("protocol", "timed"))]
    jobs: Option<PathBuf>,
    #[command(flatten)]
    orders: OrderFlags,
    /// fgd: also compute a third bound, which is tighter if pods name GPU models, but takes several
    /// times as long to compute
    #[arg(long)]
    combined: bool,
    #[command(flatten)]
    rows: RowFlags,
}

/// Bounds on arrivals, as JSON.
#[derive(Debug, Serialize)]
struct PrefixReport {
    protocol: &'static str,
    trace: String,
    seed: u64,
    nodes: usize,
    gpus: u64,
    pods: usize,
    device_prefix_pods: usize,
    device_prefix_percent: f64,
    device_prefix_is_tight: bool,
    lp_prefix_pods: usize,
    lp_prefix_percent: f64,
    lp_prefix_is_tight: bool,
    combined_prefix_pods: Option<usize>,
    combined_prefix_percent: Option<f64>,
    limit_pods: usize,
    limit_percent: f64,
}

/// Bounds on times, as JSON.
#[derive(Debug, Serialize)]
struct TimeReport {
    protocol: &'static str,
    trace: String,
    nodes: usize,
    gpus: u64,
    jobs: usize,
    #[serde(flatten)]
    impossible: Impossible,
    #[serde(flatten)]
    limits: TimeLimits,
}

pub(crate) fn run(app: &App, flags: &BoundsFlags) -> Result<()> {
    let output = app.output("sim bounds")?;
    let refuse = |flag: &str, other: &str| {
        Err(UsageError(format!("{flag} requires --protocol {other}; omit it")).into())
    };
    match flags.protocol {
        Protocol::Fgd if flags.jobs.is_some() => refuse("--jobs", "timed"),
        Protocol::Timed if flags.pods.is_some() => refuse("--pods", "fgd"),
        Protocol::Timed if flags.combined => refuse("--combined", "fgd"),
        Protocol::Timed if flags.orders.given().is_some() => {
            refuse(flags.orders.given().unwrap_or_default(), "fgd")
        }
        Protocol::Fgd => of_arrivals(app, flags, output),
        Protocol::Timed => of_times(app, flags, output),
    }
}

fn of_arrivals(app: &App, flags: &BoundsFlags, output: Output) -> Result<()> {
    let cluster = flags.nodes.cluster(app, flags.rows)?;
    let path = flags.pods.as_deref().context("--pods is required")?;
    let trace = FgdTrace::read(app, path, flags.rows)?;
    let seed = app.settings.seed.value;
    let orders = trace.orders_from(app, &cluster, seed, &flags.orders)?;
    let bounds = prefixes(&trace.world(&cluster, &orders), flags.combined)?;
    let limit = bounds.combined.unwrap_or(bounds.limit());
    let report = PrefixReport {
        protocol: "fgd",
        trace: trace.name.clone(),
        seed,
        nodes: cluster.nodes.len(),
        gpus: cluster.total_gpus(),
        pods: orders.arrivals.len(),
        device_prefix_pods: bounds.device.pods,
        device_prefix_percent: bounds.device.arrived_percent,
        device_prefix_is_tight: bounds.device.tight,
        lp_prefix_pods: bounds.lp.pods,
        lp_prefix_percent: bounds.lp.arrived_percent,
        lp_prefix_is_tight: bounds.lp.tight,
        combined_prefix_pods: bounds.combined.map(|bound| bound.pods),
        combined_prefix_percent: bounds.combined.map(|bound| bound.arrived_percent),
        limit_pods: limit.pods,
        limit_percent: limit.arrived_percent,
    };
    match output {
        Output::Json => app.print_json(&report),
        _ => app.print(&report.text(app)),
    }
}

fn of_times(app: &App, flags: &BoundsFlags, output: Output) -> Result<()> {
    let cluster = flags.nodes.cluster(app, flags.rows)?;
    let path = flags.jobs.as_deref().context("--jobs is required")?;
    let trace = trace_file::jobs_with_times(app, path, flags.rows, baseline::TIMED)?;
    let impossible = Impossible::of(&cluster.nodes, &trace.jobs)?;
    impossible::tell(&impossible, app, &trace);
    let limits = times(&trace, &cluster, &impossible)?;
    let none =
        || BadInput(format!("{}: no job of this trace can start on this cluster", trace.source));
    let limits = limits.ok_or_else(none)?;
    let report = TimeReport {
        protocol: "timed",
        trace: trace_name(path),
        nodes: cluster.nodes.len(),
        gpus: cluster.total_gpus(),
        jobs: trace.jobs.len(),
        impossible,
        limits,
    };
    match output {
        Output::Json => app.print_json(&report),
        _ => app.print(&report.text(app)),
    }
}

impl PrefixReport {
    fn text(&self, app: &App) -> String {
        let title = format!("upper bound for any policy on {}, seed {}", self.trace, self.seed);
        let line = |what: &str, pods: usize, at: f64| {
            vec![what.to_owned(), whole(pods as u64), percent(Some(at))]
        };
        let mut rows = vec![
            line("by GPUs alone", self.device_prefix_pods, self.device_prefix_percent),
            line("by nodes, CPU, memory, models", self.lp_prefix_pods, self.lp_prefix_percent),
        ];
        if let Some((pods, at)) = self.combined_prefix_pods.zip(self.combined_prefix_percent) {
            rows.push(line("by both together", pods, at));
        }
        rows.push(line("limit", self.limit_pods, self.limit_percent));
        let cluster =
            format!("{}, {}", counted(self.nodes, "node"), counted(self.gpus as usize, "GPU"));
        format!(
            "{}\n\n{}\n{}",
            app.style(OutputStream::Result).strong(&title),
            table(&["first rejection at the latest after", "pods", "GPU requested"], rows),
            facts(vec![("cluster", cluster), ("pods that arrive", whole(self.pods as u64))]),
        )
    }
}

impl TimeReport {
    fn text(&self, app: &App) -> String {
        let title = format!("lower bound for any schedule on {}", self.trace);
        let cluster =
            format!("{}, {}", counted(self.nodes, "node"), counted(self.gpus as usize, "GPU"));
        let rows = vec![
            ("cluster", cluster),
            ("jobs", whole(self.jobs as u64)),
            ("submission to end, mean", duration_of_seconds(self.limits.average_jct_s)),
            ("end of the last job", duration_of_seconds(self.limits.makespan_s)),
            ("  by the longest job", duration_of_seconds(self.limits.longest_job_s)),
            ("  by all work together", duration_of_seconds(self.limits.work_s)),
            ("  by jobs on over half the GPUs", duration_of_seconds(self.limits.wide_jobs_s)),
        ];
        format!("{}\n\n{}", app.style(OutputStream::Result).strong(&title), facts(rows))
    }
}

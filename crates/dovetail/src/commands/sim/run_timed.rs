//! `dovetail sim run --protocol timed`.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use clap::ValueEnum;
use dovetail_sim::baseline::{
    BaselineEvent, BaselineMetrics, BaselineOrder, StartOverheads, replay_baseline,
};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::app::App;
use crate::commands::sim::run::RunFlags;
use crate::exit::UsageError;
use crate::input::{baseline, trace_file};
use crate::output::table::{duration, facts, percent, whole};
use crate::output::{Output, style::Stream};

/// In which order waiting jobs start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderName {
    /// Shortest remaining time first, preemptive, as published
    Srtf,
    /// Shortest remaining time x GPUs first, preemptive, as published
    Srsf,
    /// Least attained service in three queues, preemptive, as published; one pool of GPUs
    Las,
}

/// The result, as JSON.
#[derive(Debug, Serialize)]
struct Report {
    protocol: &'static str,
    order: &'static str,
    trace: String,
    nodes: usize,
    gpus: u64,
    jobs: usize,
    average_jct_s: f64,
    p99_jct_s: f64,
    makespan_s: f64,
    average_queue_s: f64,
    gpu_occupancy: f64,
    event_log_hash: String,
}

/// Replays the jobs of one file.
pub(crate) fn run(app: &App, flags: &RunFlags) -> Result<()> {
    let output = app.output("sim run", &[Output::Table, Output::Json])?;
    let order = flags.order.context("the command line asks for --order")?;
    let preemptive = match order {
        OrderName::Srtf => BaselineOrder::Srtf,
        OrderName::Srsf => BaselineOrder::Srsf,
        OrderName::Las => BaselineOrder::Las,
    };
    if flags.policy.is_some() {
        let text = format!("--policy: {} chooses nodes as published; leave it out", preemptive.name());
        return Err(UsageError(text).into());
    }
    let cluster = flags.nodes.cluster(app, flags.rows)?;
    let path = flags.jobs.as_deref().context("the command line asks for --jobs")?;
    let trace = trace_file::jobs(app, path, flags.rows)?;
    let overheads = flags.start_overhead.as_deref().map(StartOverheads::open).transpose()?;
    let jobs = baseline::jobs(&trace)?;
    let pool = baseline::cluster(&cluster)?;
    let mut log = Sha256::new();
    let mut on_event = |event: BaselineEvent| {
        let BaselineEvent { time_us, job, kind } = event;
        log.update(format!("{time_us} {} {job}\n", kind.name()));
    };
    let run = replay_baseline(&jobs, &pool, preemptive, overheads.as_ref(), &mut on_event)?;
    let BaselineMetrics {
        jobs,
        average_jct_s,
        p99_jct_s,
        makespan_s,
        average_queue_s,
        gpu_occupancy,
    } = run.metrics;
    let report = Report {
        protocol: "timed",
        order: preemptive.name(),
        trace: dovetail_trace::fgd::trace_name(path),
        nodes: cluster.nodes.len(),
        gpus: cluster.total_gpus(),
        jobs,
        average_jct_s,
        p99_jct_s,
        makespan_s,
        average_queue_s,
        gpu_occupancy,
        event_log_hash: hexadecimal(&log.finalize()),
    };
    match output {
        Output::Json => app.print_json(&report),
        _ => app.print(&report.text(app)),
    }
}

impl Report {
    /// What a person wants to see.
    fn text(&self, app: &App) -> String {
        let title = format!("{} on {}", self.order, self.trace);
        let title = app.style(Stream::Result).strong(&title);
        let rows = vec![
            ("cluster", format!("{} nodes, {} GPUs", whole(self.nodes as u64), whole(self.gpus))),
            ("jobs", whole(self.jobs as u64)),
            ("submission to end, mean", duration(self.average_jct_s)),
            ("submission to end, p99", duration(self.p99_jct_s)),
            ("waiting, mean", duration(self.average_queue_s)),
            ("end of the last job", duration(self.makespan_s)),
            ("GPUs held", percent(Some(self.gpu_occupancy * 100.0))),
            ("event log", self.event_log_hash.clone()),
        ];
        format!("{title}\n\n{}", facts(rows))
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

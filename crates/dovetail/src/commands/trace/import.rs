//! `dovetail trace import`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use clap::builder::PossibleValuesParser;
use dovetail_console::app::App;
use dovetail_console::file::write_whole;
use dovetail_console::places::refuse_shared;
use dovetail_console::table::{counted, facts, whole};
use dovetail_settings::form::Output;
use dovetail_trace::{
    FORMATS, ReadOptions, SwfProcessors, TraceFormat, detect_format, write_cluster, write_trace,
};
use serde::Serialize;

use dovetail_replays::input::trace_file::{self, RowFlags};

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct ImportFlags {
    /// File with jobs or nodes, plain or gzip
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// File to write
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Format of the file, see docs/reference/trace-formats.md; swf is the Standard Workload Format
    /// [default: detected from its first line]
    #[arg(
        long,
        value_name = "NAME",
        value_parser = PossibleValuesParser::new(FORMATS.map(TraceFormat::name))
    )]
    format: Option<String>,
    /// swf: what a processor in the file is: a GPU (gpu), a CPU core of a job without GPUs (core),
    /// or one of the N CPU cores that come with each GPU (N)
    #[arg(long, value_name = "gpu|core|N", default_value = "gpu", value_parser = processors)]
    processor: SwfProcessors,
    #[command(flatten)]
    rows: RowFlags,
}

fn processors(text: &str) -> Result<SwfProcessors, String> {
    match text {
        "gpu" => Ok(SwfProcessors::AsGpus),
        "core" => Ok(SwfProcessors::AsCpuCores),
        number => {
            let cores: Option<NonZeroU32> = number.parse().ok();
            cores.map(SwfProcessors::PerGpu).ok_or_else(|| "expected gpu, core or a number".into())
        }
    }
}

/// The result, as JSON.
#[derive(Debug, Serialize)]
struct Imported {
    format: TraceFormat,
    jobs: Option<usize>,
    nodes: Option<usize>,
    skipped_rows: usize,
    written: String,
}

/// Converts a file.
pub(crate) fn run(app: &App, flags: &ImportFlags) -> Result<()> {
    let output = app.output("trace import")?;
    refuse_shared(&[("FILE", Some(&flags.file))], &[("--to", Some(&flags.to))])?;
    let named = flags.format.as_deref().and_then(TraceFormat::from_name);
    let format = named.map_or_else(|| detect_format(&flags.file), Ok)?;
    let options = ReadOptions {
        format: Some(format),
        skip_bad_rows: flags.rows.skip_bad_rows,
        swf_processors: flags.processor,
    };
    let written = flags.to.display().to_string();
    let report = if format.holds_nodes() {
        let cluster = trace_file::machines_with(app, &flags.file, &options)?;
        write_whole(&flags.to, |file| write_cluster(&cluster, file))?;
        let (nodes, skipped_rows) = (Some(cluster.nodes.len()), cluster.skipped.len());
        Imported { format, jobs: None, nodes, skipped_rows, written }
    } else {
        let trace = trace_file::jobs_with(app, &flags.file, &options)?;
        write_whole(&flags.to, |file| write_trace(&trace, file))?;
        let finer = trace.jobs.iter().filter(|job| job.exact.is_some()).count();
        if finer > 0 {
            let (file, jobs) = (flags.file.display(), counted(finer, "job"));
            app.note(&format!(
                "{file}: times of {jobs} have fractions of a millisecond; dovetail rounds them to \
                 milliseconds"
            ));
        }
        let (jobs, skipped_rows) = (Some(trace.jobs.len()), trace.skipped.len());
        Imported { format, jobs, nodes: None, skipped_rows, written }
    };
    match output {
        Output::Json => app.print_json(&report),
        _ => app.print(&report.text()),
    }
}

impl Imported {
    fn text(&self) -> String {
        let mut rows = vec![("read as", self.format.to_string())];
        rows.extend(self.jobs.map(|jobs| ("jobs", whole(jobs as u64))));
        rows.extend(self.nodes.map(|nodes| ("nodes", whole(nodes as u64))));
        rows.push(("bad rows skipped", whole(self.skipped_rows as u64)));
        rows.push(("written", self.written.clone()));
        facts(rows)
    }
}

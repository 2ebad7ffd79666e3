//! `dovetail demo`: the demonstration with flags, settings and a progress bar.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use dovetail_comparison as report;
use dovetail_console::app::{App, to_stderr};
use dovetail_console::file::{check_place, write_whole};
use dovetail_console::progress::Progress;
use dovetail_demo::{DemoMonth, Host, Prices};
use dovetail_settings::form::Output;
use dovetail_sources::prices::PriceFlags;
use dovetail_trace::TraceCluster;
use dovetail_units::duration::duration_of_seconds;

/// What to show, and where to put the report.
#[derive(Debug, Args)]
pub(crate) struct DemoFlags {
    /// Number of nodes in the generated cluster
    #[arg(long, value_name = "N", default_value_t = DemoMonth::default().nodes)]
    nodes: u32,
    /// Length of the trace, in days
    #[arg(long, value_name = "N", default_value_t = DemoMonth::default().days)]
    days: u32,
    /// GPU time that the jobs can use within --days, as a fraction of the cluster's GPU time
    #[arg(long, value_name = "RATIO", default_value_t = DemoMonth::default().load)]
    load: f64,
    /// Folder of real traces to replay instead of a generated trace
    #[arg(long, value_name = "FOLDER", env = "DOVETAIL_TRACES")]
    traces: Option<PathBuf>,
    /// File for the report
    #[arg(long, value_name = "FILE", default_value = "out/demo.html")]
    report: PathBuf,
    #[command(flatten)]
    prices: PriceFlags,
}

pub(crate) fn run(app: &App, flags: &DemoFlags) -> Result<()> {
    let output = app.output("demo")?;
    prepare_place(&flags.report)?;
    let started = Instant::now();
    let seed = app.settings.seed.value;
    let DemoFlags { nodes, days, load, .. } = *flags;
    let traces = flags.traces.as_deref().filter(|folder| !folder.as_os_str().is_empty());
    let host = CommandHost { app, flags, progress: Mutex::default() };
    let data = dovetail_demo::run(&DemoMonth { nodes, days, load, seed }, traces, &host)?;
    drop(host);
    let html = report::html(&data)?;
    write_whole(&flags.report, |file| file.write_all(html.as_bytes()))?;
    match output {
        Output::Json => return app.print_json(&data),
        Output::Html => return app.print(&html),
        _ => app.print(&report::text(&data)?)?,
    }
    let path = flags.report.canonicalize().unwrap_or_else(|_| flags.report.clone());
    let seconds = started.elapsed().as_secs_f64();
    let took = duration_of_seconds(seconds);
    app.print(&format!("\nReport with plots: {}  ({took})\n", path.display()))
}

/// Makes the folder of the report and sees that it can be written there, before the long work.
fn prepare_place(path: &Path) -> Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("{}: cannot create the folder", folder.display()))?;
    }
    check_place(path)
}

struct CommandHost<'a> {
    app: &'a App,
    flags: &'a DemoFlags,
    progress: Mutex<Option<Progress>>,
}

impl Host for CommandHost<'_> {
    fn prices(&self, cluster: &TraceCluster) -> Result<Prices> {
        self.flags.prices.of(cluster, &self.app.settings)
    }

    fn assumes_prices(&self) -> bool {
        self.flags.prices.given().is_some()
    }

    fn say(&self, line: &str) {
        to_stderr(line);
    }

    fn started(&self, jobs: u64) {
        if let Ok(mut progress) = self.progress.lock() {
            *progress = Some(Progress::new("jobs", jobs));
        }
    }

    fn advanced(&self, jobs: u64) {
        if let Ok(Some(progress)) = self.progress.lock().as_deref() {
            progress.advance(jobs);
        }
    }
}

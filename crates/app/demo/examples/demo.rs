//! What `make demo` runs: the demonstration as it is by default, with the built-in prices.
//!
//! `dovetail demo` has flags for everything; this program is built in a fraction of the time.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use dovetail_demo::{DemoMonth, Host, Prices, built_in_prices, run};
use dovetail_trace::TraceCluster;
use dovetail_units::duration::duration_of_seconds;

const REPORT: &str = "out/demo.html";

struct Terminal;

impl Host for Terminal {
    fn prices(&self, cluster: &TraceCluster) -> Result<Prices> {
        Ok(built_in_prices(cluster))
    }

    fn assumes_prices(&self) -> bool {
        false
    }

    fn say(&self, line: &str) {
        // There is nobody to tell if that fails.
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    }

    fn started(&self, _jobs: u64) {}

    fn advanced(&self, _jobs: u64) {}
}

fn main() -> Result<()> {
    let started = Instant::now();
    let traces = std::env::var_os("DOVETAIL_TRACES").filter(|folder| !folder.is_empty());
    let report = Path::new(REPORT);
    let folder = report.parent().context("the report has a folder")?;
    std::fs::create_dir_all(folder)
        .with_context(|| format!("{}: cannot create the folder", folder.display()))?;
    let traces = traces.map(PathBuf::from);
    let data = run(&DemoMonth::default(), traces.as_deref(), &Terminal)?;
    std::fs::write(report, dovetail_comparison::html(&data)?)
        .with_context(|| format!("{REPORT}: cannot be written"))?;
    let took = duration_of_seconds(started.elapsed().as_secs_f64());
    let text = dovetail_comparison::text(&data)?;
    let path = report.canonicalize().unwrap_or_else(|_| report.to_owned());
    write!(std::io::stdout().lock(), "{text}\nReport with plots: {}  ({took})\n", path.display())
        .context("cannot write to standard output")
}

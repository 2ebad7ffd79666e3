//! The demonstration: a month of a real-size cluster under four policies, and where the money went.
//!
//! It needs the simulator, the built-in prices and the page, and nothing that talks to a cluster,
//! so that `make demo` has little to build. `dovetail demo` runs the same with flags and settings.

mod host;
mod on_traces;
mod replay;
mod synthetic;

use std::path::Path;

use anyhow::Result;
use dovetail_sim::comparison::ReportData;

pub use host::{Host, Prices, built_in_prices};

/// What to simulate where no traces are given.
#[derive(Clone, Copy, Debug)]
pub struct DemoMonth {
    /// Nodes of the generated cluster.
    pub nodes: u32,
    /// Length of the stream of jobs.
    pub days: u32,
    /// GPU time that the jobs can use within the days, over the cluster's GPU time.
    pub load: f64,
    pub seed: u64,
}

impl Default for DemoMonth {
    fn default() -> Self {
        Self { nodes: 1_200, days: 30, load: 0.9, seed: 42 }
    }
}

/// Simulates a generated month, or the real traces of a folder, and returns what a report shows.
///
/// # Errors
/// A trace that cannot be read, prices that the host refuses, or a decision that breaks a rule.
pub fn run(month: &DemoMonth, traces: Option<&Path>, host: &dyn Host) -> Result<ReportData> {
    let mut data = ReportData {
        title: "dovetail demo".to_owned(),
        program: format!("dovetail {}", env!("CARGO_PKG_VERSION")),
        ..ReportData::default()
    };
    match traces {
        Some(folder) => on_traces::fill(&mut data, folder, host)?,
        None => {
            let DemoMonth { nodes, days, load, seed } = month;
            data.command = Some(format!(
                "dovetail demo --nodes {nodes} --days {days} --load {load} --seed {seed}"
            ));
            data.timed.push(synthetic::compared(month, host)?);
        }
    }
    Ok(data)
}

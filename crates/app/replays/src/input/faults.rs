//! What happens to machines during a replay, from files and flags.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use dovetail_console::open::open;
use dovetail_console::places::Named;
use dovetail_sim::timed::FaultModel;
use dovetail_sim::timed::cluster_events::{ClusterEvent, read_cluster_events};
use dovetail_trace::TraceCluster;

const MS_PER_HOUR: f64 = 3_600_000.0;
/// The longest mean time, in hours: a thousand years.
const MAX_HOURS: f64 = 8_766_000.0;

/// Flags as written.
#[derive(Clone, Debug, Default, Args)]
pub struct FaultFlags {
    /// timed: CSV file of node events (at_s,action,node); actions: cordon, uncordon, fail, repair,
    /// remove, add
    #[arg(long, value_name = "FILE")]
    cluster_events: Option<PathBuf>,
    /// timed: mean time between random failures of a node [required with --repair-time]
    #[arg(long, value_name = "HOURS", value_parser = hours, requires = "repair_time")]
    time_between_failures: Option<u64>,
    /// timed: mean time to repair a node [required with --time-between-failures]
    #[arg(long, value_name = "HOURS", value_parser = hours, requires = "time_between_failures")]
    repair_time: Option<u64>,
}

impl FaultFlags {
    /// The file that is read, by its flag.
    pub fn file(&self) -> Named<'_> {
        ("--cluster-events", self.cluster_events.as_deref())
    }

    /// The first flag that was given, if any.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--cluster-events", self.cluster_events.is_some()),
            ("--time-between-failures", self.time_between_failures.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }

    /// What happens at given times to the machines of a cluster.
    pub fn events(&self, cluster: &TraceCluster) -> Result<Vec<ClusterEvent>> {
        let Some(path) = &self.cluster_events else { return Ok(Vec::new()) };
        Ok(read_cluster_events(open(path)?, &path.display().to_string(), cluster)?)
    }

    /// What happens by chance.
    pub fn model(&self, seed: u64) -> Option<FaultModel> {
        Some(FaultModel {
            mean_time_between_failures_ms: self.time_between_failures?,
            mean_time_to_repair_ms: self.repair_time?,
            seed,
        })
    }
}

fn hours(text: &str) -> Result<u64, String> {
    let hours = text.parse().ok().filter(|hours| (0.001..=MAX_HOURS).contains(hours));
    let hours: f64 = hours.ok_or_else(|| format!("expected hours from 0.001 to {MAX_HOURS}"))?;
    Ok((hours * MS_PER_HOUR).round() as u64)
}

//! Jobs that can never start on the cluster of a replay: counted, and the first ones named with the
//! reason.

use anyhow::Result;
use dovetail_console::app::App;
use dovetail_console::table::{whole, wrapped};
use dovetail_sim::timed::{ImpossibleJob, impossible_jobs};
use dovetail_trace::{Trace, TraceCluster, TraceJob};
use serde::Serialize;

/// Jobs that are named; the others are counted.
const NAMED: usize = 5;

/// What is told of such jobs, also as JSON.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Impossible {
    pub impossible_jobs: u64,
    pub first_impossible_jobs: Vec<ImpossibleJob>,
    /// Places of all in the trace, ascending.
    #[serde(skip)]
    rows: Vec<usize>,
}

impl Impossible {
    /// Those among some jobs on a cluster.
    pub fn of(jobs: &[TraceJob], cluster: &TraceCluster) -> Result<Self> {
        let mut found = impossible_jobs(&cluster.nodes, jobs)?;
        let rows: Vec<usize> = found.iter().map(|job| job.row).collect();
        found.truncate(NAMED);
        Ok(Self { impossible_jobs: rows.len() as u64, first_impossible_jobs: found, rows })
    }

    /// Whether the job at a place of the trace is one.
    pub fn contains(&self, row: usize) -> bool {
        self.rows.binary_search(&row).is_ok()
    }

    /// Tells it before the replay, which may be long, with the place of the first job.
    pub fn tell(&self, app: &App, trace: &Trace) {
        if let Some(ImpossibleJob { job, reason, row }) = self.first_impossible_jobs.first() {
            let place = trace.place(*row);
            let text = match self.impossible_jobs - 1 {
                0 => {
                    format!("job {job} can never start on this cluster and stays pending: {reason}")
                }
                more => format!(
                    "job {job} and {} more can never start on this cluster and stay pending; \
                     job {job}: {reason}",
                    whole(more)
                ),
            };
            app.note(&format!("{place}: {text}"));
        }
    }

    /// The named jobs, a line each.
    pub fn text(&self) -> String {
        if self.impossible_jobs == 0 {
            return String::new();
        }
        let line = |job: &ImpossibleJob| wrapped(&format!("{}: {}", job.job, job.reason), 2);
        let named: String = self.first_impossible_jobs.iter().map(line).collect();
        let more = self.impossible_jobs - self.first_impossible_jobs.len() as u64;
        let more = match more {
            0 => String::new(),
            more => format!("  and {} more\n", whole(more)),
        };
        format!("\ncan never start on this cluster\n{named}{more}")
    }
}

//! Writes job tables, the smallest common form for other tools.

use std::io::Write;

use super::{CsvLine, checked_text, unwritable, write_header};
use crate::error::TraceError;
use crate::job::{RecordedOutcome, TraceJob, UnseenEnds, Violation};
use crate::trace::Trace;

const COLUMNS: [&str; 12] = [
    "job_id",
    "submit_s",
    "duration_s",
    "num_gpu",
    "gpu_milli",
    "nodes",
    "model",
    "deadline_s",
    "queue",
    "user",
    "status",
    "estimate_s",
];

/// A column of what a preemption costs, which the table has if a job states it.
type StopCost = (&'static str, fn(&TraceJob) -> Option<u64>);

const STOP_COSTS: [StopCost; 4] = [
    ("checkpoint_interval_s", |job| job.stop_costs.checkpoint_interval_ms),
    ("checkpoint_cost_s", |job| job.stop_costs.checkpoint_cost_ms),
    ("restart_cost_s", |job| job.stop_costs.restart_cost_ms),
    ("save_on_notice_s", |job| job.stop_costs.save_on_notice_ms),
];

/// Writes all jobs as a job table, and returns the names of the values that some job has and the
/// table cannot hold (of `cpu_milli`, `memory_bytes`, `gpu_models`, `service_class`, `start_ms`,
/// and `cut`). It has the column `priority` where some job has one.
///
/// # Errors
/// [`TraceError::Unwritable`] for a job without run time or submit time, or with text that CSV
/// lines cannot carry; [`TraceError::Write`] when the output fails.
pub fn write_job_table(
    trace: &Trace,
    mut output: impl Write,
) -> Result<Vec<&'static str>, TraceError> {
    let costs =
        STOP_COSTS.iter().filter(|(_, cost)| trace.jobs.iter().any(|job| cost(job).is_some()));
    let costs: Vec<&StopCost> = costs.collect();
    let has_priority = trace.jobs.iter().any(|job| job.priority != 0);
    let priority = has_priority.then_some("priority");
    let columns = COLUMNS.into_iter().chain(priority);
    let columns = columns.chain(costs.iter().map(|(name, _)| *name));
    write_header(&mut output, "job table", &columns.collect::<Vec<_>>())?;
    for job in &trace.jobs {
        job.check().map_err(|violation| unwritable(&job.id, violation))?;
        if !trace.known.submit_times {
            return Err(missing(job, "submit_s", "a trace with submission times"));
        }
        let Some(duration_us) = job.duration_us() else {
            return Err(missing(job, "duration_s", "a run time"));
        };
        let id = Some(job.id.clone());
        let mut line = CsvLine::new(&mut output, "job table");
        line.put(checked_text(&job.id, "job_id", &id)?)?;
        line.put(&seconds_of_us(job.submit_us()))?;
        line.put(&seconds_of_us(duration_us))?;
        line.put(&job.total_gpus().to_string())?;
        line.put(&job.gpu_milli.to_string())?;
        line.put(&nodes(job))?;
        line.put(checked_text(&job.id, "model", &job.model)?)?;
        line.put(&job.deadline_ms.map_or_else(String::new, seconds))?;
        line.put(checked_text(&job.id, "queue", &job.queue)?)?;
        line.put(checked_text(&job.id, "user", &job.user)?)?;
        line.put(status(job.outcome))?;
        line.put(&job.estimate_ms.map_or_else(String::new, seconds))?;
        if has_priority {
            line.put(&job.priority.to_string())?;
        }
        for (_, cost) in &costs {
            line.put(&cost(job).map_or_else(String::new, seconds))?;
        }
        line.end()?;
    }
    output.flush().map_err(|source| TraceError::Write { what: "job table", source })?;
    Ok(lost(trace))
}

fn missing(job: &TraceJob, column: &'static str, expected: &str) -> TraceError {
    unwritable(&job.id, Violation::new(column, "", "is unknown", expected))
}

/// The word that the table's reader turns back into the same outcome.
fn status(outcome: RecordedOutcome) -> &'static str {
    outcome.name()
}

/// Seconds with three decimals, or none where they are zero.
fn seconds(ms: u64) -> String {
    match ms % 1000 {
        0 => (ms / 1000).to_string(),
        rest => format!("{}.{rest:03}", ms / 1000),
    }
}

/// Seconds with six decimals where milliseconds do not say all.
fn seconds_of_us(us: u64) -> String {
    match us % 1000 {
        0 => seconds(us / 1000),
        _ => format!("{}.{:06}", us / 1_000_000, us % 1_000_000),
    }
}

/// Number of pods; empty for one pod, which is what a table without the column means.
fn nodes(job: &TraceJob) -> String {
    if job.pod_count == 1 { String::new() } else { job.pod_count.to_string() }
}

fn lost(trace: &Trace) -> Vec<&'static str> {
    let any = |test: fn(&TraceJob) -> bool| trace.jobs.iter().any(test);
    let checks: [(&'static str, bool); 6] = [
        ("cpu_milli", any(|job| job.cpu_milli != 0)),
        ("memory_bytes", any(|job| job.memory_bytes != 0)),
        ("gpu_models", any(|job| !job.gpu_models.is_empty())),
        ("service_class", any(|job| job.service_class.is_some())),
        ("start_ms", any(|job| job.start_ms.is_some())),
        ("cut", any(|job| job.cut != UnseenEnds::Nowhere)),
    ];
    checks.into_iter().filter(|(_, is_lost)| *is_lost).map(|(name, _)| name).collect()
}

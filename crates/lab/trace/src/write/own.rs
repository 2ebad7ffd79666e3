//! Writes dovetail's own CSV; reading it back gives the same jobs and machines.

use std::io::Write;

use super::{CsvLine, checked_text, unwritable, write_header};
use crate::error::TraceError;
use crate::job::{TraceJob, Violation};
use crate::node::TraceCluster;
use crate::read::{JOB_COLUMNS, NODE_COLUMNS};
use crate::trace::Trace;

/// Writes all jobs. Columns for what the trace does not know are left out, and those of stop costs
/// where no job states that cost.
///
/// # Errors
/// [`TraceError::Unwritable`] for a job that breaks a rule of its type or holds text that CSV lines
/// cannot carry, [`TraceError::Write`] when the output fails.
pub fn write_trace(trace: &Trace, mut output: impl Write) -> Result<(), TraceError> {
    let columns: Vec<&'static str> =
        JOB_COLUMNS.into_iter().filter(|column| is_known(trace, column)).collect();
    write_header(&mut output, "jobs", &columns)?;
    for job in &trace.jobs {
        job.check().map_err(|violation| unwritable(&job.id, violation))?;
        let mut line = CsvLine::new(&mut output, "jobs");
        for column in &columns {
            put_job_cell(&mut line, job, column)?;
        }
        line.end()?;
    }
    output.flush().map_err(|source| TraceError::Write { what: "jobs", source })
}

/// Writes all machines.
///
/// # Errors
/// As [`write_trace`].
pub fn write_cluster(cluster: &TraceCluster, mut output: impl Write) -> Result<(), TraceError> {
    write_header(&mut output, "nodes", &NODE_COLUMNS)?;
    for node in &cluster.nodes {
        node.check().map_err(|violation| unwritable(&node.name, violation))?;
        let name = Some(node.name.clone());
        let mut line = CsvLine::new(&mut output, "nodes");
        line.put(checked_text(&node.name, "node_name", &name)?)?;
        line.put(&node.cpu_milli.to_string())?;
        line.put(&node.memory_bytes.to_string())?;
        line.put(&node.gpu_count.to_string())?;
        line.put(checked_text(&node.name, "gpu_model", &node.gpu_model)?)?;
        line.put(&node.gpu_memory_bytes.map_or_else(String::new, |bytes| bytes.to_string()))?;
        line.put(checked_text(&node.name, "rack", &node.rack)?)?;
        line.put(checked_text(&node.name, "zone", &node.zone)?)?;
        line.end()?;
    }
    output.flush().map_err(|source| TraceError::Write { what: "nodes", source })
}

fn is_known(trace: &Trace, column: &str) -> bool {
    let known = trace.known;
    let any = |cost: fn(&TraceJob) -> Option<u64>| trace.jobs.iter().any(|job| cost(job).is_some());
    match column {
        "submit_ms" => known.submit_times,
        "cpu_milli" => known.cpu,
        "memory_bytes" => known.memory,
        "gpu_models" => known.gpu_models,
        "cut" => known.cuts,
        "checkpoint_interval_ms" => any(|job| job.stop_costs.checkpoint_interval_ms),
        "checkpoint_cost_ms" => any(|job| job.stop_costs.checkpoint_cost_ms),
        "restart_cost_ms" => any(|job| job.stop_costs.restart_cost_ms),
        "save_on_notice_ms" => any(|job| job.stop_costs.save_on_notice_ms),
        _ => true,
    }
}

fn put_job_cell<W: Write>(
    line: &mut CsvLine<'_, W>,
    job: &TraceJob,
    column: &'static str,
) -> Result<(), TraceError> {
    let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    let text = |value| checked_text(&job.id, column, value);
    match column {
        "job_id" => line.put(checked_text(&job.id, column, &Some(job.id.clone()))?),
        "submit_ms" => line.put(&job.submit_ms.to_string()),
        "duration_ms" => line.put(&number(job.duration_ms)),
        "estimate_ms" => line.put(&number(job.estimate_ms)),
        "start_ms" => line.put(&number(job.start_ms)),
        "pod_count" => line.put(&job.pod_count.to_string()),
        "cpu_milli" => line.put(&job.cpu_milli.to_string()),
        "memory_bytes" => line.put(&job.memory_bytes.to_string()),
        "gpu_count" => line.put(&job.gpu_count.to_string()),
        "gpu_milli" => line.put(&job.gpu_milli.to_string()),
        "gpu_models" => line.put(&joined_models(job)?),
        "user" => line.put(text(&job.user)?),
        "queue" => line.put(text(&job.queue)?),
        "model" => line.put(text(&job.model)?),
        "service_class" => line.put(text(&job.service_class)?),
        "priority" => line.put(&job.priority.to_string()),
        "deadline_ms" => line.put(&number(job.deadline_ms)),
        "cut" => line.put(job.cut.name()),
        "checkpoint_interval_ms" => line.put(&number(job.stop_costs.checkpoint_interval_ms)),
        "checkpoint_cost_ms" => line.put(&number(job.stop_costs.checkpoint_cost_ms)),
        "restart_cost_ms" => line.put(&number(job.stop_costs.restart_cost_ms)),
        "save_on_notice_ms" => line.put(&number(job.stop_costs.save_on_notice_ms)),
        _ => line.put(job.outcome.name()),
    }
}

fn joined_models(job: &TraceJob) -> Result<String, TraceError> {
    for model in &job.gpu_models {
        checked_text(&job.id, "gpu_models", &Some(model.clone()))?;
        if model.contains('|') {
            let problem = "contains the separator of models";
            let violation = Violation::new("gpu_models", model, problem, "a model without |");
            return Err(unwritable(&job.id, violation));
        }
    }
    Ok(job.gpu_models.join("|"))
}

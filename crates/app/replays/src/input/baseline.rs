//! Jobs and machines as the published preemptive orders take them.

use anyhow::{Error, Result};
use dovetail_settings::errors::BadInput;
use dovetail_sim::baseline::{BaselineCluster, BaselineError, BaselineJob};
use dovetail_trace::{StopCosts, Trace, TraceCluster};

/// What needs to know when jobs come and how long they run.
pub const TIMED: &str = "the timed protocol";

/// The jobs of a trace, which must all say when they come and how long they run. With `charges`,
/// stops cost what the trace says, and else this.
///
/// # Errors
/// Names the job that lacks a value, or asks for more than these orders know.
pub fn jobs(trace: &Trace, charges: Option<StopCosts>) -> Result<Vec<BaselineJob>> {
    check_times(trace, TIMED)?;
    Ok(match charges {
        None => BaselineJob::of_trace(trace)?,
        Some(costs) => BaselineJob::charged(trace, costs)?,
    })
}

/// What a preemptive order says of a trace, with the place of the job.
pub fn placed(trace: &Trace, error: BaselineError) -> Error {
    let name = error.job();
    let row = name.and_then(|name| trace.jobs.iter().position(|job| job.id == name));
    match row {
        Some(row) => BadInput(format!("{}: {error}", trace.place(row))).into(),
        None => Error::new(error).context(trace.source.clone()),
    }
}

/// Refuses a trace that has an order but no times.
///
/// # Errors
/// Names the file.
pub fn check_times(trace: &Trace, needed_by: &str) -> Result<(), BadInput> {
    if trace.known.submit_times {
        return Ok(());
    }
    let text = format!("{}: has no submission times: {needed_by} needs them", trace.source);
    Err(BadInput(text))
}

/// The GPUs of the machines.
pub fn cluster(cluster: &TraceCluster) -> Result<BaselineCluster> {
    let gpus = cluster.nodes.iter().map(|node| node.gpu_count).collect();
    BaselineCluster::new(gpus).map_err(|error| Error::new(error).context(cluster.source.clone()))
}

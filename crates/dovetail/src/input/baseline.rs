//! Jobs and machines as the published preemptive orders take them.

use dovetail_sim::baseline::{BaselineCluster, BaselineJob};
use dovetail_trace::{Cluster, Trace};

use crate::exit::BadInput;

/// What needs to know when jobs come and how long they run.
pub(crate) const TIMED: &str = "the timed protocol";

/// Microseconds in a millisecond.
const MICROS_PER_MS: u64 = 1_000;

/// The jobs of a trace, which must all say when they come and how long they run.
///
/// # Errors
/// Names the job that lacks a value, or asks for more than these orders know.
pub(crate) fn jobs(trace: &Trace) -> Result<Vec<BaselineJob>, BadInput> {
    check_times(trace, TIMED)?;
    let bad = |id: &str, problem: &str| BadInput(format!("{}: job {id}: {problem}", trace.source));
    let job = |job: &dovetail_trace::TraceJob| {
        let duration_ms = job.duration_ms.ok_or_else(|| bad(&job.id, "has no run time"))?;
        if job.is_share() {
            return Err(bad(
                &job.id,
                "asks for a part of a GPU, which preemptive orders do not know",
            ));
        }
        Ok(BaselineJob {
            name: job.id.clone(),
            submit_us: job.submit_ms * MICROS_PER_MS,
            service_us: duration_ms * MICROS_PER_MS,
            num_gpu: u32::try_from(job.total_gpus())
                .map_err(|_| bad(&job.id, "asks for more GPUs than can be counted"))?,
            model: job.model.clone(),
        })
    };
    trace.jobs.iter().map(job).collect()
}

/// Refuses a trace that has an order but no times.
///
/// # Errors
/// Names the file.
pub(crate) fn check_times(trace: &Trace, needed_by: &str) -> Result<(), BadInput> {
    if trace.known.submit_times {
        return Ok(());
    }
    let text = format!("{}: has no submission times: {needed_by} needs them", trace.source);
    Err(BadInput(text))
}

/// The GPUs of the machines.
pub(crate) fn cluster(
    cluster: &Cluster,
) -> Result<BaselineCluster, dovetail_sim::baseline::BaselineError> {
    BaselineCluster::new(cluster.nodes.iter().map(|node| node.gpu_count).collect())
}

//! Jobs as given, and as checked and sorted for the replay.

use super::{BaselineCluster, BaselineError, StartOverheads};

/// One job of a trace: all its GPUs at once, for `service_us` in total, preemptible at any instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineJob {
    /// Name used in errors, usually the trace's `job_id`.
    pub name: String,
    /// When it is submitted, in microseconds on the trace's clock.
    pub submit_us: u64,
    /// How long it runs when never preempted, in microseconds.
    pub service_us: u64,
    /// GPUs it needs at once.
    pub num_gpu: u32,
    /// Model it trains, by which the start overhead is looked up.
    pub model: Option<String>,
}

/// A checked job; position in the list of arrivals is its number during the replay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) input_index: u32,
    pub(super) submit_us: u64,
    pub(super) service_us: u64,
    pub(super) num_gpu: u32,
    pub(super) overhead_us: u64,
}

/// Checks every job and sorts by submit time; jobs submitted together keep the input's order.
pub(super) fn arrivals(
    jobs: &[BaselineJob],
    cluster: &BaselineCluster,
    overheads: Option<&StartOverheads>,
) -> Result<Vec<Arrival>, BaselineError> {
    if jobs.is_empty() {
        return Err(BaselineError::NoJobs);
    }
    if u32::try_from(jobs.len()).is_err() {
        return Err(BaselineError::TooManyJobs { jobs: jobs.len(), limit: u32::MAX });
    }
    let mut arrivals = jobs
        .iter()
        .zip(0_u32..)
        .map(|(job, input_index)| check(job, input_index, cluster, overheads))
        .collect::<Result<Vec<_>, _>>()?;
    arrivals.sort_by_key(|arrival| arrival.submit_us);
    Ok(arrivals)
}

fn check(
    job: &BaselineJob,
    input_index: u32,
    cluster: &BaselineCluster,
    overheads: Option<&StartOverheads>,
) -> Result<Arrival, BaselineError> {
    let BaselineJob { name, submit_us, service_us, num_gpu, model } = job;
    if *num_gpu == 0 {
        return Err(BaselineError::ZeroGpus { job: name.clone() });
    }
    if *num_gpu > cluster.total_gpus() {
        return Err(BaselineError::JobLargerThanCluster {
            job: name.clone(),
            num_gpu: *num_gpu,
            cluster_gpus: cluster.total_gpus(),
        });
    }
    if service_us.checked_mul(u64::from(*num_gpu)).is_none() {
        return Err(BaselineError::TimeTooLarge { job: name.clone() });
    }
    let overhead_us = match (overheads, model) {
        (None, _) => 0,
        (Some(_), None) => return Err(BaselineError::NoModel { job: name.clone() }),
        (Some(table), Some(model)) => table.overhead_us(*num_gpu, model).ok_or_else(|| {
            BaselineError::NoOverhead { job: name.clone(), num_gpu: *num_gpu, model: model.clone() }
        })?,
    };
    Ok(Arrival {
        input_index,
        submit_us: *submit_us,
        service_us: *service_us,
        num_gpu: *num_gpu,
        overhead_us,
    })
}

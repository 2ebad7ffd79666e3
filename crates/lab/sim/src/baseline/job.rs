//! Jobs as given, and as checked and sorted for the replay.

use dovetail_model::InterruptionCost;
use dovetail_trace::{StopCosts, Trace, TraceError};

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
    /// What stopping and starting it again costs; `None` is nothing, as published.
    pub stop_costs: Option<StopCosts>,
}

impl BaselineJob {
    /// The jobs of a trace, with their times to the microsecond.
    ///
    /// # Errors
    /// [`TraceError::Row`] names the first job that has no run time, or asks for a part of a GPU,
    /// with its place.
    pub fn of_trace(trace: &Trace) -> Result<Vec<Self>, TraceError> {
        let bad = |row: usize, column: &str, text: &str, problem: &str, expected: &str| {
            trace.row_error(row, column, text, problem, expected)
        };
        let job = |(row, job): (usize, &dovetail_trace::TraceJob)| {
            let service_us = job.duration_us().ok_or_else(|| {
                bad(row, "duration", "", "has no run time", "a run time, which the order needs")
            })?;
            if job.is_share() {
                let text = job.gpu_milli.to_string();
                let problem = "requests a part of a GPU, which preemptive orders do not support";
                return Err(bad(row, "gpu_milli", &text, problem, "whole GPUs, or another order"));
            }
            Ok(Self {
                name: job.id.clone(),
                submit_us: job.submit_us(),
                service_us,
                // A trace has at most a million GPUs in a job.
                num_gpu: u32::try_from(job.total_gpus()).unwrap_or(u32::MAX),
                model: job.model.clone(),
                stop_costs: None,
            })
        };
        trace.jobs.iter().enumerate().map(job).collect()
    }

    /// The jobs of a trace, which pay for every stop and restart: as the trace says, and where it
    /// does not, as `defaults` say.
    ///
    /// # Errors
    /// As [`BaselineJob::of_trace`].
    pub fn charged(trace: &Trace, defaults: StopCosts) -> Result<Vec<Self>, TraceError> {
        let mut jobs = Self::of_trace(trace)?;
        for (job, of_trace) in jobs.iter_mut().zip(&trace.jobs) {
            job.stop_costs = Some(of_trace.stop_costs.or(defaults));
        }
        Ok(jobs)
    }
}

/// A checked job; position in the list of arrivals is its number during the replay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) input_index: u32,
    pub(super) submit_us: u64,
    pub(super) service_us: u64,
    pub(super) num_gpu: u32,
    pub(super) overhead_us: u64,
    /// In microseconds, though its fields say otherwise: they are but times.
    pub(super) stop_costs: Option<InterruptionCost>,
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
    let BaselineJob { name, submit_us, service_us, num_gpu, model, stop_costs } = job;
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
    let overhead_us = match (overheads, model) {
        (None, _) => 0,
        (Some(_), None) => return Err(BaselineError::NoModel { job: name.clone() }),
        (Some(table), Some(model)) => table.overhead_us(*num_gpu, model).ok_or_else(|| {
            let (job, file, model) = (name.clone(), table.file().to_owned(), model.clone());
            BaselineError::NoOverhead { job, file, num_gpu: *num_gpu, model }
        })?,
    };
    Ok(Arrival {
        input_index,
        submit_us: *submit_us,
        service_us: *service_us,
        num_gpu: *num_gpu,
        overhead_us,
        stop_costs: stop_costs.map(in_microseconds),
    })
}

/// The arithmetic of stops knows no unit: here it counts in microseconds, as everything does.
fn in_microseconds(costs: StopCosts) -> InterruptionCost {
    let us = |ms: Option<u64>| ms.map(|ms| ms.saturating_mul(1_000));
    InterruptionCost {
        checkpoint_interval_ms: us(costs.checkpoint_interval_ms),
        checkpoint_cost_ms: us(costs.checkpoint_cost_ms),
        restart_cost_ms: us(costs.restart_cost_ms),
        save_on_notice_ms: us(costs.save_on_notice_ms),
        ..InterruptionCost::default()
    }
}

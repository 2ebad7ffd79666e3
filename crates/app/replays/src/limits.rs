//! What no policy can exceed, from traces.

use anyhow::{Error, Result};
use dovetail_exact::{
    BoundError, BoundJob, CAPACITY_LIMIT, DEVICE_MILLI, PrefixBounds, completion_bounds,
    greatest_common_divisor, makespan_bounds,
};
use dovetail_settings::errors::BadInput;
use dovetail_trace::{Trace, TraceCluster, TraceJob};
use serde::Serialize;

use crate::input::baseline;
use dovetail_sim::timed::Impossible;

/// What no policy can exceed on one trace under one seed.
#[derive(Clone, Copy, Debug)]
pub enum PolicyBound {
    /// Requested share of the cluster in the longest prefix that fits.
    Prefix { device_percent: f64, lp_percent: f64 },
    /// Times that no schedule beats.
    Times { average_jct_s: f64, makespan_s: f64 },
}

impl PolicyBound {
    /// The figure that policies are measured against: percent, or mean seconds from submission to
    /// end.
    pub fn figure(self) -> f64 {
        match self {
            Self::Prefix { device_percent, lp_percent } => device_percent.min(lp_percent),
            Self::Times { average_jct_s, .. } => average_jct_s,
        }
    }
}

impl From<&PrefixBounds> for PolicyBound {
    fn from(bounds: &PrefixBounds) -> Self {
        Self::Prefix {
            device_percent: bounds.device.arrived_percent,
            lp_percent: bounds.lp.arrived_percent,
        }
    }
}

impl From<TimeLimits> for PolicyBound {
    fn from(limits: TimeLimits) -> Self {
        let TimeLimits { average_jct_s, makespan_s, .. } = limits;
        Self::Times { average_jct_s, makespan_s }
    }
}

/// Times that no schedule beats, with free preemption and full knowledge of the future.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TimeLimits {
    /// Mean of end - submission.
    #[serde(rename = "limit_average_jct_s")]
    pub average_jct_s: f64,
    /// End of the last job, on the trace's own clock.
    #[serde(rename = "limit_makespan_s")]
    pub makespan_s: f64,
    /// The same by the longest job alone.
    #[serde(rename = "longest_job_makespan_s")]
    pub longest_job_s: f64,
    /// The same by the work of all jobs.
    #[serde(rename = "work_makespan_s")]
    pub work_s: f64,
    /// The same by jobs on more than half of the GPUs.
    #[serde(rename = "wide_jobs_makespan_s")]
    pub wide_jobs_s: f64,
}

/// Bounds on the times of the jobs that can start at all; nothing without such jobs.
pub fn times(
    trace: &Trace,
    cluster: &TraceCluster,
    impossible: &Impossible,
) -> Result<Option<TimeLimits>> {
    baseline::check_times(trace, baseline::TIMED)?;
    let possible = trace.jobs.iter().enumerate().filter(|(row, _)| !impossible.contains(*row));
    let (rows, possible): (Vec<usize>, Vec<&TraceJob>) = possible.unzip();
    let unit = Unit::of(&possible, cluster);
    let gpus = u32::try_from(cluster.total_gpus() * unit.in_a_gpu)?;
    let jobs = possible.into_iter().map(|job| bound_job(trace, job, unit));
    let jobs: Vec<BoundJob> = jobs.collect::<Result<_>>()?;
    let placed = |error: BoundError| match error {
        BoundError::Job { index, field, value, expected } => {
            let place = trace.place(rows[index]);
            let problem = format!("{field} is {value}, but these bounds require {expected}");
            Error::new(BadInput(format!("{place}: {problem}")))
        }
        error => Error::new(error).context(cluster.source.clone()),
    };
    let makespan = makespan_bounds(&jobs, gpus).map_err(placed)?;
    let completion = completion_bounds(&jobs, gpus).map_err(placed)?;
    let seconds = |ms: i64| ms as f64 / 1e3;
    Ok(makespan.zip(completion).map(|(makespan, completion)| TimeLimits {
        average_jct_s: completion.average_completion_ms() / 1e3,
        makespan_s: seconds(makespan.best_ms()),
        longest_job_s: seconds(makespan.longest_job_ms),
        work_s: seconds(makespan.work_ms),
        wide_jobs_s: seconds(makespan.wide_jobs_ms),
    }))
}

/// In what GPUs are counted: whole, or in the largest part of one that every share is a multiple
/// of.
#[derive(Clone, Copy, Debug)]
struct Unit {
    in_a_gpu: u64,
    /// Parts would make more units than the bounds accept: shares count as nothing, which keeps a
    /// bound a bound.
    leaves_shares_out: bool,
}

impl Unit {
    fn of(jobs: &[&TraceJob], cluster: &TraceCluster) -> Self {
        let shares = jobs.iter().filter(|job| job.is_share());
        let part = shares.map(|job| job.gpu_milli).fold(DEVICE_MILLI, greatest_common_divisor);
        let in_a_gpu = (DEVICE_MILLI / part).unsigned_abs();
        match cluster.total_gpus().saturating_mul(in_a_gpu) <= u64::from(CAPACITY_LIMIT) {
            true => Self { in_a_gpu, leaves_shares_out: false },
            false => Self { in_a_gpu: 1, leaves_shares_out: true },
        }
    }
}

fn bound_job(trace: &Trace, job: &TraceJob, unit: Unit) -> Result<BoundJob> {
    let bad = || BadInput(format!("{}: job {} has no run time", trace.source, job.id));
    let duration_ms = job.duration_ms.ok_or_else(bad)?;
    let units = match job.is_share() && unit.leaves_shares_out {
        true => 0,
        false => job.total_gpu_milli() * u128::from(unit.in_a_gpu) / 1000,
    };
    let gpu_count = u32::try_from(units)?;
    Ok(BoundJob {
        submit_ms: i64::try_from(job.submit_ms)?,
        duration_ms: i64::try_from(duration_ms)?,
        gpu_count,
    })
}

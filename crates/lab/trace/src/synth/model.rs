//! What a generated stream is drawn around: expectations in closed form.

use serde::Serialize;

use super::arrivals::hour_shares;
use super::inside::mean_inside_s;
use super::job_maker::{completed_part_moment, model_pools, possible_sizes};
use super::people::team_share;
use super::profile::{Parameters, SHARES_MILLI, SizeClass, SizeKind};
use super::run_time::RunTime;
use super::{SynthConfig, estimate};
use crate::node::TraceCluster;

/// Expectations of one stream.
///
/// A stream differs from them by chance alone: counts have the standard deviation of a Poisson or
/// binomial count, GPU-hours have [`SynthModel::gpu_hours_sd`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SynthModel {
    /// Mean number of jobs.
    pub expected_jobs: f64,
    /// Mean GPU-hours of all jobs, with what they run for beyond the end of the stream.
    pub expected_gpu_hours: f64,
    /// Mean GPU-hours of these that can run inside the stream: the load times the GPU-hours there
    /// are.
    pub expected_gpu_hours_inside: f64,
    /// Standard deviation of the GPU-hours over seeds.
    pub gpu_hours_sd: f64,
    pub sizes: Vec<SizeModel>,
    pub failed_share: f64,
    /// Share of the jobs that are stopped.
    pub killed_share: f64,
    /// Share of the jobs in each hour of the day.
    pub hour_of_day_share: Vec<f64>,
    /// Share of the jobs of the largest team.
    pub largest_queue_share: f64,
    /// Share of the jobs with an estimate.
    pub estimated_share: f64,
}

/// Expectations of jobs of one size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeModel {
    pub pods: u32,
    pub gpus_per_pod: u32,
    /// True when the pod has a part of its GPU.
    pub is_share: bool,
    pub job_share: f64,
    /// Median planned run time, in s.
    pub run_time_p50_s: f64,
    /// 90th percentile of the planned run time, in s.
    pub run_time_p90_s: f64,
    /// 99th percentile of the planned run time, in s.
    pub run_time_p99_s: f64,
    #[serde(skip)]
    run_time: RunTime,
}

impl SizeModel {
    /// Probability that a job of this size is planned to run at most so many s.
    pub fn probability_up_to(&self, seconds: f64) -> f64 {
        self.run_time.probability_up_to(seconds)
    }
}

impl SynthModel {
    pub(super) fn of(
        config: &SynthConfig,
        profile: &'static Parameters,
        cluster: &TraceCluster,
    ) -> Self {
        let sizes = possible_sizes(profile, &model_pools(cluster));
        let total: f64 = sizes.iter().map(|size| size.weight).sum();
        // k-th moment of the GPU-hours of one job.
        let moment = |power: i32| {
            let of_size = |size: &&SizeClass| {
                size.weight / total
                    * gpu_moment(size, power)
                    * size.run_time.moment(power)
                    * completed_part_moment(profile, size, power)
                    / libm::pow(3600.0, power.into())
            };
            sizes.iter().map(of_size).sum::<f64>()
        };
        let capacity = cluster.total_gpus() as f64 * f64::from(config.days) * 24.0;
        let inside = |size: &&SizeClass| {
            let seconds = mean_inside_s(profile, size, config.days);
            size.weight / total * gpu_moment(size, 1) * seconds / 3600.0
        };
        let expected_gpu_hours_inside = config.load * capacity;
        let expected_jobs = expected_gpu_hours_inside / sizes.iter().map(inside).sum::<f64>();
        Self {
            expected_jobs,
            expected_gpu_hours: expected_jobs * moment(1),
            expected_gpu_hours_inside,
            // Of a sum of a Poisson number of independent terms.
            gpu_hours_sd: libm::sqrt(expected_jobs * moment(2)),
            sizes: sizes.iter().map(|size| size_model(size, total)).collect(),
            failed_share: profile.failed,
            killed_share: profile.killed,
            hour_of_day_share: hour_shares(profile),
            largest_queue_share: team_share(1),
            estimated_share: estimate::ESTIMATED,
        }
    }
}

/// Mean of the k-th power of the GPUs of one job.
fn gpu_moment(size: &SizeClass, power: i32) -> f64 {
    if size.kind == SizeKind::Share {
        let total: f64 = SHARES_MILLI.iter().map(|share| share.1).sum();
        let of_share =
            |share: &(i64, f64)| libm::pow(share.0 as f64 / 1000.0, power.into()) * share.1 / total;
        return SHARES_MILLI.iter().map(of_share).sum();
    }
    libm::pow(f64::from(size.pods * size.gpus), power.into())
}

fn size_model(size: &SizeClass, total: f64) -> SizeModel {
    SizeModel {
        pods: size.pods,
        gpus_per_pod: size.gpus,
        is_share: size.kind == SizeKind::Share,
        job_share: size.weight / total,
        run_time_p50_s: size.run_time.p50_s,
        run_time_p90_s: size.run_time.p90_s,
        run_time_p99_s: size.run_time.p99_s,
        run_time: size.run_time,
    }
}

//! What can be wrong with the input of a baseline replay.

use dovetail_units::amount::counted;
use thiserror::Error;

/// Why a baseline replay could not be run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BaselineError {
    /// There is nothing to replay.
    #[error("the trace has no jobs; pass a trace with at least one job")]
    NoJobs,
    /// More jobs than the replay can number.
    #[error("the trace has {jobs} jobs, more than {limit}; split the trace")]
    TooManyJobs {
        /// Jobs in the input.
        jobs: usize,
        /// Largest number of jobs that can be replayed.
        limit: u32,
    },
    /// The cluster holds no GPU, or more than can be counted.
    #[error(
        "the cluster ({}) has {}; pass between 1 and {} GPUs",
        counted(*.nodes as u64, "node"),
        counted(*.gpus, "GPU"),
        u32::MAX
    )]
    BadCluster {
        nodes: usize,
        /// Sum of their GPUs.
        gpus: u64,
    },
    /// A job asks for no GPU; these orders share out GPUs alone.
    #[error("job {job} requests 0 GPUs; remove it, or correct its number of GPUs")]
    ZeroGpus { job: String },
    /// A job could never start.
    #[error(
        "job {job} requests {num_gpu} GPUs, but the cluster has {cluster_gpus}; remove the job or enlarge the cluster"
    )]
    JobLargerThanCluster {
        job: String,
        /// GPUs the job asks for.
        num_gpu: u32,
        /// GPUs of the whole cluster.
        cluster_gpus: u32,
    },
    /// Start overheads are charged, but the job names no model to look up.
    #[error(
        "job {job} has no model, so its start overhead is unknown; add its model or run without start overheads"
    )]
    NoModel { job: String },
    /// The start-overhead table has no row for the job.
    #[error(
        "job {job}: the start-overhead table {file} has no row for {} and model {model}; \
         add the row or run without start overheads",
        counted(u64::from(*.num_gpu), "GPU")
    )]
    NoOverhead {
        job: String,
        /// Name of the table.
        file: String,
        /// GPUs the job asks for.
        num_gpu: u32,
        model: String,
    },
    /// A time of the job does not fit the 64-bit microseconds used here.
    #[error(
        "job {job}: it would end later than 64-bit microseconds can hold; correct the run times of the trace"
    )]
    TimeTooLarge { job: String },
    /// No preemptive baseline has this name.
    #[error("unknown preemptive order {name}; choose srtf, srsf or las")]
    UnknownOrder { name: String },
}

impl BaselineError {
    /// Name of the job at fault, if it is one.
    pub fn job(&self) -> Option<&str> {
        match self {
            Self::ZeroGpus { job }
            | Self::JobLargerThanCluster { job, .. }
            | Self::NoModel { job }
            | Self::NoOverhead { job, .. }
            | Self::TimeTooLarge { job } => Some(job),
            Self::NoJobs
            | Self::TooManyJobs { .. }
            | Self::BadCluster { .. }
            | Self::UnknownOrder { .. } => None,
        }
    }
}

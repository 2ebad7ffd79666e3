//! What would run at once if no job ever waited: the demand a cluster has to meet.

use serde::Serialize;

use crate::job::TraceJob;
use crate::trace::Trace;

/// Resources asked for at once, each job from its submission for its run time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DemandStats {
    /// Most GPUs at once; a half GPU counts half.
    pub peak_gpus: f64,
    /// Mean number of GPUs from the first to the last submission; `None` when all come at once.
    pub mean_gpus: Option<f64>,
    /// Most CPU cores at once; `None` when the trace tells no CPU.
    pub peak_cpu_cores: Option<f64>,
    /// Most jobs at once.
    pub peak_jobs: u64,
}

/// Running sum with its maximum.
#[derive(Default)]
struct RunningPeak {
    now: i128,
    peak: i128,
}

impl RunningPeak {
    fn add(&mut self, change: i128) {
        self.now += change;
        self.peak = self.peak.max(self.now);
    }
}

impl DemandStats {
    /// `None` when no job has a run time.
    pub(super) fn of(trace: &Trace) -> Option<Self> {
        let mut changes: Vec<(u64, i8, &TraceJob)> = Vec::new();
        for job in &trace.jobs {
            if let Some(duration) = job.duration_ms.filter(|duration| *duration > 0) {
                changes.push((job.submit_ms, 1, job));
                changes.push((job.submit_ms + duration, -1, job));
            }
        }
        // At the same instant ends come before starts.
        changes.sort_by_key(|(time, sign, _)| (*time, *sign));
        changes.first()?;
        let submissions = || trace.jobs.iter().map(|job| job.submit_ms);
        let (first, last) = (submissions().min()?, submissions().max()?);
        let (mut before, mut gpu_milli_ms) = (first, 0);
        let (mut gpus, mut cpu, mut jobs) =
            (RunningPeak::default(), RunningPeak::default(), RunningPeak::default());
        for (time, sign, job) in changes {
            // What still runs after the last submission would only dilute the mean.
            let time = time.min(last);
            gpu_milli_ms += gpus.now * i128::from(time - before);
            before = time;
            let sign = i128::from(sign);
            gpus.add(sign * job.total_gpu_milli() as i128);
            cpu.add(sign * i128::from(job.cpu_milli) * i128::from(job.pod_count));
            jobs.add(sign);
        }
        Some(Self {
            peak_gpus: gpus.peak as f64 / 1000.0,
            mean_gpus: super::ratio(gpu_milli_ms as f64 / 1000.0, (last - first) as f64),
            peak_cpu_cores: trace.known.cpu.then_some(cpu.peak as f64 / 1000.0),
            peak_jobs: jobs.peak as u64,
        })
    }
}

//! Jobs by size, by outcome, by user, queue and model; and how good the estimates are.

use std::collections::BTreeMap;

use serde::Serialize;

use super::quantiles::Quantiles;
use super::{gpu_hours, ratio};
use crate::job::{RecordedOutcome, TraceJob};

/// How many of the largest users, queues or models are named.
const NAMED_GROUPS: usize = 10;

/// Jobs whose number of GPUs is in one range.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeStats {
    /// `0`, `share` (a part of one GPU), `1`, `2`, `3-4`, `5-8`, ... .
    pub gpus: String,
    pub jobs: u64,
    pub job_share: f64,
    /// GPU-hours of those with a run time.
    pub gpu_hours: Option<f64>,
    pub gpu_hours_share: Option<f64>,
    pub run_time_s: Option<Quantiles>,
}

/// Jobs with one outcome.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutcomeStats {
    pub outcome: RecordedOutcome,
    pub jobs: u64,
    pub job_share: f64,
    /// GPU-hours of those with a run time.
    pub gpu_hours: Option<f64>,
}

/// Jobs by a name they carry.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupStats {
    /// Number of different names.
    pub count: u64,
    /// Jobs without a name.
    pub unnamed_jobs: u64,
    /// The names with most jobs, largest first, ten at most.
    pub largest: Vec<GroupShare>,
}

/// Jobs with one name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupShare {
    pub name: String,
    pub jobs: u64,
    pub job_share: f64,
    /// GPU-hours of those with a run time.
    pub gpu_hours: Option<f64>,
}

/// Estimated against real run times, over jobs that have both.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EstimateStats {
    /// Share of all jobs that carry an estimate.
    pub estimated_share: f64,
    /// Share of the jobs whose estimate is below the run time.
    pub underestimated_share: f64,
    /// Median of estimate over run time.
    pub ratio_p50: f64,
    /// Estimate over run time that nine of ten jobs stay below.
    pub ratio_p90: f64,
}

/// Range of a job's GPUs: the exponent of the power of two that bounds it from above.
fn size_class(job: &TraceJob) -> u32 {
    match job.total_gpus() {
        0 => 0,
        1 if job.gpu_milli < 1000 => 1,
        gpus => 2 + gpus.next_power_of_two().trailing_zeros(),
    }
}

fn size_label(class: u32) -> String {
    match class {
        0 => "0".into(),
        1 => "share".into(),
        2 => "1".into(),
        3 => "2".into(),
        class => format!("{}-{}", (1_u64 << (class - 3)) + 1, 1_u64 << (class - 2)),
    }
}

pub(super) fn sizes(jobs: &[TraceJob]) -> Vec<SizeStats> {
    let total_hours = gpu_hours(jobs);
    let make = |(class, members): (u32, Vec<&TraceJob>)| {
        let hours = gpu_hours(members.iter().copied());
        SizeStats {
            gpus: size_label(class),
            jobs: members.len() as u64,
            job_share: members.len() as f64 / jobs.len() as f64,
            gpu_hours: hours,
            gpu_hours_share: hours.zip(total_hours).and_then(|(part, all)| ratio(part, all)),
            run_time_s: Quantiles::of_ms(
                members.iter().filter_map(|job| job.duration_ms).collect(),
            ),
        }
    };
    grouped(jobs, |job| Some(size_class(job))).into_iter().map(make).collect()
}

pub(super) fn outcomes(jobs: &[TraceJob]) -> Vec<OutcomeStats> {
    let make = |(outcome, members): (RecordedOutcome, Vec<&TraceJob>)| OutcomeStats {
        outcome,
        jobs: members.len() as u64,
        job_share: members.len() as f64 / jobs.len() as f64,
        gpu_hours: gpu_hours(members),
    };
    grouped(jobs, |job| Some(job.outcome)).into_iter().map(make).collect()
}

impl GroupStats {
    /// `None` when no job has a name.
    pub(super) fn of<'j>(
        jobs: &'j [TraceJob],
        name: impl Fn(&'j TraceJob) -> Option<&'j str>,
    ) -> Option<Self> {
        let groups = grouped(jobs, name);
        let named: usize = groups.values().map(Vec::len).sum();
        let count = groups.len() as u64;
        let mut largest: Vec<(&str, Vec<&TraceJob>)> = groups.into_iter().collect();
        largest.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then(a.0.cmp(b.0)));
        largest.truncate(NAMED_GROUPS);
        let share = |(name, members): (&str, Vec<&TraceJob>)| GroupShare {
            name: name.to_owned(),
            jobs: members.len() as u64,
            job_share: members.len() as f64 / jobs.len() as f64,
            gpu_hours: gpu_hours(members),
        };
        (count > 0).then(|| Self {
            count,
            unnamed_jobs: (jobs.len() - named) as u64,
            largest: largest.into_iter().map(share).collect(),
        })
    }
}

impl EstimateStats {
    /// `None` when no job has an estimate and a run time above 0.
    pub(super) fn of(jobs: &[TraceJob]) -> Option<Self> {
        let both = jobs.iter().filter_map(|job| job.estimate_ms.zip(job.duration_ms));
        let positive = both.filter(|(_, duration)| *duration > 0);
        let mut ratios: Vec<f64> =
            positive.map(|(estimate, duration)| estimate as f64 / duration as f64).collect();
        if ratios.is_empty() {
            return None;
        }
        ratios.sort_by(f64::total_cmp);
        let at = |percent: usize| ratios[(ratios.len() * percent / 100).min(ratios.len() - 1)];
        let estimated = jobs.iter().filter(|job| job.estimate_ms.is_some()).count();
        Some(Self {
            estimated_share: estimated as f64 / jobs.len() as f64,
            underestimated_share: ratios.partition_point(|ratio| *ratio < 1.0) as f64
                / ratios.len() as f64,
            ratio_p50: at(50),
            ratio_p90: at(90),
        })
    }
}

fn grouped<'j, K: Ord>(
    jobs: &'j [TraceJob],
    key: impl Fn(&'j TraceJob) -> Option<K>,
) -> BTreeMap<K, Vec<&'j TraceJob>> {
    let mut groups: BTreeMap<K, Vec<&TraceJob>> = BTreeMap::new();
    for job in jobs {
        if let Some(key) = key(job) {
            groups.entry(key).or_default().push(job);
        }
    }
    groups
}

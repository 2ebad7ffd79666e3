//! When jobs come.

use serde::Serialize;

use super::quantiles::Quantiles;
use crate::job::TraceJob;

const HOUR_MS: u64 = 3_600_000;

/// Submission times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArrivalStats {
    /// First submission, in s since the trace's own zero.
    pub first_s: f64,
    /// Last submission, in s since the trace's own zero.
    pub last_s: f64,
    /// Hours from the first to the last submission.
    pub span_hours: f64,
    /// Jobs an hour over that span; `None` when all come at once.
    pub jobs_per_hour: Option<f64>,
    /// Most jobs in one hour of the trace's clock.
    pub peak_jobs_per_hour: u64,
    /// Share of the jobs in each hour of the day, on the trace's clock.
    pub hour_of_day_share: Vec<f64>,
    /// Share of the jobs in each day of a seven-day week, on the trace's clock.
    pub day_of_week_share: Vec<f64>,
    /// Time between one job and the next, in s; `None` with one job.
    pub gap_s: Option<Quantiles>,
}

impl ArrivalStats {
    /// `None` without jobs.
    pub(super) fn of(jobs: &[TraceJob]) -> Option<Self> {
        let mut times: Vec<u64> = jobs.iter().map(|job| job.submit_ms).collect();
        times.sort_unstable();
        let (first, last) = (*times.first()?, *times.last()?);
        let span_hours = (last - first) as f64 / HOUR_MS as f64;
        let shares = |bucket: fn(u64) -> u64, buckets: usize| {
            let mut counts = vec![0_u64; buckets];
            for time in &times {
                counts[bucket(*time) as usize] += 1;
            }
            counts.into_iter().map(|count| count as f64 / times.len() as f64).collect()
        };
        let hours = times.chunk_by(|a, b| a / HOUR_MS == b / HOUR_MS);
        Some(Self {
            first_s: first as f64 / 1000.0,
            last_s: last as f64 / 1000.0,
            span_hours,
            jobs_per_hour: super::ratio(times.len() as f64, span_hours),
            peak_jobs_per_hour: hours.map(<[u64]>::len).max().unwrap_or(0) as u64,
            hour_of_day_share: shares(|time| time / HOUR_MS % 24, 24),
            day_of_week_share: shares(|time| time / (24 * HOUR_MS) % 7, 7),
            gap_s: Quantiles::of_ms(times.windows(2).map(|pair| pair[1] - pair[0]).collect()),
        })
    }
}

//! A bounded series: means over equal bins, whose width doubles whenever there are too many.
//!
//! Bins hold integer sums, so merging two loses nothing and the result does not depend on when it happened.

use std::collections::BTreeMap;

use dovetail_model::FreeCause;
use serde::{Deserialize, Serialize};

use crate::timeline::gpu_time::{ByCause, GpuTime, by_cause};

/// Most points of a series.
pub const MAX_POINTS: usize = 600;

/// Width of the first bins.
const FIRST_BIN_MS: u64 = 1_000;

/// Sums over one bin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bin {
    installed_milli_ms: i128,
    unavailable_milli_ms: i128,
    allocated_milli_ms: i128,
    #[serde(deserialize_with = "by_cause")]
    free_milli_ms: ByCause,
    waiting_job_ms: i128,
    waiting_gpu_milli_ms: i128,
}

impl Bin {
    pub(crate) fn add_time(&mut self, time: &GpuTime) {
        self.installed_milli_ms += time.installed;
        self.unavailable_milli_ms += time.unavailable;
        self.allocated_milli_ms += time.allocated();
        let pairs = self.free_milli_ms.iter_mut().zip(time.free_by_cause);
        pairs.for_each(|(sum, amount)| *sum += amount);
    }

    pub(crate) fn add_waiting(&mut self, jobs: i64, gpu_milli: i64, elapsed_ms: u64) {
        self.waiting_job_ms += i128::from(jobs) * i128::from(elapsed_ms);
        self.waiting_gpu_milli_ms += i128::from(gpu_milli) * i128::from(elapsed_ms);
    }

    fn add(&mut self, other: &Self) {
        self.installed_milli_ms += other.installed_milli_ms;
        self.unavailable_milli_ms += other.unavailable_milli_ms;
        self.allocated_milli_ms += other.allocated_milli_ms;
        let pairs = self.free_milli_ms.iter_mut().zip(other.free_milli_ms);
        pairs.for_each(|(sum, amount)| *sum += amount);
        self.waiting_job_ms += other.waiting_job_ms;
        self.waiting_gpu_milli_ms += other.waiting_gpu_milli_ms;
    }

    fn point(&self, at_ms: u64, length_ms: u64) -> SeriesPoint {
        let gpus = |milli_ms: i128| milli_ms as f64 / 1000.0 / length_ms as f64;
        let free = FreeCause::ALL.into_iter().zip(self.free_milli_ms);
        let free = free.filter(|(_, milli_ms)| *milli_ms != 0);
        SeriesPoint {
            at_ms,
            length_ms,
            installed_gpus: gpus(self.installed_milli_ms),
            unavailable_gpus: gpus(self.unavailable_milli_ms),
            allocated_gpus: gpus(self.allocated_milli_ms),
            free_gpus_by_cause: free.map(|(cause, milli_ms)| (cause, gpus(milli_ms))).collect(),
            waiting_jobs: self.waiting_job_ms as f64 / length_ms as f64,
            waiting_gpus: gpus(self.waiting_gpu_milli_ms),
        }
    }
}

/// Full bins and the one that is being filled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bins {
    from_ms: u64,
    bin_ms: u64,
    full: Vec<Bin>,
    pub(crate) current: Bin,
}

impl Bins {
    pub(crate) fn new(from_ms: u64) -> Self {
        Self { from_ms, bin_ms: FIRST_BIN_MS, full: Vec::new(), current: Bin::default() }
    }

    /// End of the bin that is being filled.
    pub(crate) fn boundary_ms(&self) -> u64 {
        self.from_ms + (self.full.len() as u64 + 1) * self.bin_ms
    }

    /// Begins the next bin; halves the resolution when there are too many.
    pub(crate) fn close(&mut self) {
        self.full.push(std::mem::take(&mut self.current));
        if self.full.len() < MAX_POINTS {
            return;
        }
        self.bin_ms *= 2;
        let merged = self.full.chunks(2).map(|pair| {
            let mut sum = pair[0].clone();
            pair[1..].iter().for_each(|bin| sum.add(bin));
            sum
        });
        self.full = merged.collect();
    }

    /// The series up to a time within the current bin.
    pub(crate) fn series(&self, to_ms: u64) -> Series {
        let begin = |place: usize| self.from_ms + place as u64 * self.bin_ms;
        let full = self.full.iter().enumerate();
        let mut points: Vec<SeriesPoint> =
            full.map(|(place, bin)| bin.point(begin(place), self.bin_ms)).collect();
        let last_ms = begin(self.full.len());
        if to_ms > last_ms {
            points.push(self.current.point(last_ms, to_ms - last_ms));
        }
        Series { from_ms: self.from_ms, to_ms, bin_ms: self.bin_ms, points }
    }
}

/// Capacity and queue over time. Every figure is the mean over its bin, not a sample at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Begin, on the trace's clock.
    pub from_ms: u64,
    pub to_ms: u64,
    /// Width of a bin; the last may be shorter.
    pub bin_ms: u64,
    /// Bins in order, at most [`MAX_POINTS`].
    pub points: Vec<SeriesPoint>,
}

/// Means over one bin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// Begin of the bin, on the trace's clock.
    pub at_ms: u64,
    pub length_ms: u64,
    /// GPUs there are: unavailable + allocated + free.
    pub installed_gpus: f64,
    /// Lost GPUs, and those not held on nodes that are not ready.
    pub unavailable_gpus: f64,
    pub allocated_gpus: f64,
    /// GPUs held by nobody, by cause; causes of nothing are left out.
    pub free_gpus_by_cause: BTreeMap<FreeCause, f64>,
    /// Jobs submitted and not started.
    pub waiting_jobs: f64,
    /// GPUs they need at their smallest size.
    pub waiting_gpus: f64,
}

impl SeriesPoint {
    /// GPUs held by nobody.
    pub fn free_gpus(&self) -> f64 {
        self.free_gpus_by_cause.values().sum()
    }
}

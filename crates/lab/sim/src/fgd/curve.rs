//! Figures per percent of arrived workload, discretised as published.

/// Points of a curve: 0 to 130 percent arrived.
pub const POINTS: usize = 131;

/// State after one arrival.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveSample {
    /// Milli-GPU requested by all pods so far, the dropped ones included.
    pub arrived_milli: i64,
    pub allocated_milli: i64,
    /// Expected fragmented milli-GPU of the cluster.
    pub fragmented_milli: f64,
}

/// Allocation and fragmentation in percent of the cluster's GPUs, by arrived percent.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// Allocated share; `None` where no arrival is within one percent.
    pub allocation_percent: Vec<Option<f64>>,
    /// Fragmented share; `None` as above.
    pub fragmentation_percent: Vec<Option<f64>>,
}

/// Discretises samples: each counts for its arrived percent, rounded half to even; a percent
/// without samples takes those within one percent of it; figures are means, rounded to two places.
pub fn curves(samples: &[CurveSample], cluster_milli: i64) -> Curves {
    let percent = |milli: i64| 100.0 * milli as f64 / cluster_milli as f64;
    let mut buckets: Vec<Bucket> = Vec::new();
    for sample in samples {
        let place = percent(sample.arrived_milli).round_ties_even() as usize;
        if buckets.len() <= place {
            buckets.resize(place + 1, Bucket::default());
        }
        buckets[place]
            .add(two_places(percent(sample.allocated_milli)), two_places(sample.fragmented_milli));
    }
    let at = |place: usize| {
        let own = buckets.get(place).copied().unwrap_or_default();
        if own.count > 0 {
            return own;
        }
        let near = place.saturating_sub(1)..(place + 2).min(buckets.len());
        buckets.get(near).unwrap_or(&[]).iter().fold(Bucket::default(), |a, b| a.plus(b))
    };
    let buckets: Vec<Bucket> = (0..POINTS).map(at).collect();
    let hundredth_of_gpus = cluster_milli as f64 / 100.0;
    Curves {
        allocation_percent: buckets.iter().map(|b| b.mean(b.allocation, 1.0)).collect(),
        fragmentation_percent: buckets
            .iter()
            .map(|b| b.mean(b.fragmentation, hundredth_of_gpus))
            .collect(),
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    count: u64,
    allocation: f64,
    fragmentation: f64,
}

impl Bucket {
    fn add(&mut self, allocation: f64, fragmentation: f64) {
        self.count += 1;
        self.allocation += allocation;
        self.fragmentation += fragmentation;
    }

    fn plus(self, other: &Self) -> Self {
        Self {
            count: self.count + other.count,
            allocation: self.allocation + other.allocation,
            fragmentation: self.fragmentation + other.fragmentation,
        }
    }

    fn mean(&self, sum: f64, unit: f64) -> Option<f64> {
        (self.count > 0).then(|| two_places(sum / self.count as f64 / unit))
    }
}

fn two_places(value: f64) -> f64 {
    (value * 100.0).round_ties_even() / 100.0
}

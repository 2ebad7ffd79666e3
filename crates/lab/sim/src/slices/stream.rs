//! The requests of a run.

use dovetail_model::MigTable;
use dovetail_trace::synth::{Purpose, Random};

use crate::slices::Mix;

/// Mean run time of a pod: one hour.
const MEAN_RUN_MS: f64 = 3_600_000.0;

/// What a run is made of.
#[derive(Clone, Debug)]
pub struct SlicesWorld {
    /// How the GPUs can be cut.
    pub table: MigTable,
    pub node_gpus: Vec<u32>,
    pub mix: Mix,
    /// Compute slices asked for at a time, over those that there are.
    pub load: f64,
    /// How many pods come.
    pub requests: usize,
    pub seed: u64,
}

/// A pod that asks for a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceRequest {
    pub at_ms: u64,
    /// Place of the profile in the table.
    pub profile: usize,
    pub run_ms: u64,
}

impl SlicesWorld {
    /// How many GPUs there are.
    pub fn gpus(&self) -> usize {
        self.node_gpus.iter().map(|gpus| *gpus as usize).sum()
    }

    /// The requests in the order of their arrival; empty if the GPU has no profile of the mix.
    pub fn stream(&self) -> Vec<SliceRequest> {
        let profiles = self.mix.profiles(&self.table);
        let weights: f64 = profiles.iter().map(|(_, weight)| weight).sum();
        let size = |place: usize| f64::from(self.table.profiles[place].compute_slices);
        let asked: f64 = profiles.iter().map(|(place, weight)| weight * size(*place)).sum();
        if profiles.is_empty() {
            return Vec::new();
        }
        let slices = self.gpus() as f64 * f64::from(self.table.compute_slices);
        let gap_ms = MEAN_RUN_MS * (asked / weights) / (self.load * slices);
        let draws = |purpose| Random::new(self.seed, purpose);
        let (mut arrivals, mut shapes, mut runs) =
            (draws(Purpose::Arrivals), draws(Purpose::Shapes), draws(Purpose::RunTimes));
        let mut now_ms = 0.0;
        let request = |_| {
            now_ms += gap_ms * arrivals.exponential();
            let mut left = shapes.uniform() * weights;
            let mut places = profiles.iter().map(|(place, weight)| {
                left -= weight;
                (*place, left)
            });
            let found = places.find(|(_, left)| *left <= 0.0).map(|(place, _)| place);
            // What rounding leaves over goes to the last.
            let profile = found.unwrap_or(profiles[profiles.len() - 1].0);
            let run_ms = (MEAN_RUN_MS * runs.exponential()).max(1.0) as u64;
            SliceRequest { at_ms: now_ms as u64, profile, run_ms }
        };
        (0..self.requests).map(request).collect()
    }
}

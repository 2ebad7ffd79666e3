//! Random failures of machines.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

/// Failures with exponential times between failure and between repair, each machine by itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultModel {
    /// Mean time from repair to failure of one machine.
    pub mean_time_between_failures_ms: u64,
    /// Mean time from failure to repair.
    pub mean_time_to_repair_ms: u64,
    pub seed: u64,
}

/// The draws of one run. How many were made is all that must be kept to go on later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FaultDraws {
    model: FaultModel,
    drawn: u64,
    #[serde(skip)]
    generator: Option<Pcg64Mcg>,
}

impl FaultDraws {
    pub(crate) fn new(model: FaultModel) -> Self {
        Self { model, drawn: 0, generator: None }
    }

    /// Time until a working machine fails.
    pub(crate) fn until_failure_ms(&mut self) -> u64 {
        self.exponential_ms(self.model.mean_time_between_failures_ms)
    }

    /// Time until a failed machine works again.
    pub(crate) fn until_repair_ms(&mut self) -> u64 {
        self.exponential_ms(self.model.mean_time_to_repair_ms)
    }

    fn exponential_ms(&mut self, mean_ms: u64) -> u64 {
        let (seed, drawn) = (self.model.seed, self.drawn);
        let generator = self.generator.get_or_insert_with(|| {
            let mut generator = Pcg64Mcg::seed_from_u64(seed);
            for _ in 0..drawn {
                generator.next_u64();
            }
            generator
        });
        self.drawn += 1;
        // 53 random bits, never 0: inverse of the exponential distribution.
        let uniform = ((generator.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        (-libm::log(uniform) * mean_ms as f64).ceil().max(1.0) as u64
    }
}

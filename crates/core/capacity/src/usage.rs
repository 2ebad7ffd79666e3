//! GPU-time over a period, as plain data.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::states::{Imbalance, States};

/// GPU-time by state, in milli-GPU × milliseconds: 3.6 × 10⁹ are one GPU-hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Begin of the period.
    pub from_ms: u64,
    /// End of the period.
    pub to_ms: u64,
    /// Causes that rest on demand were judged at least once in so much virtual time; 0: at every
    /// change. Everything else in here is exact whatever the period.
    pub cause_period_ms: u64,
    /// How often they were judged.
    pub cause_samples: u64,
    /// Of the whole cluster.
    pub total_gpu_milli_ms: States<i128>,
    /// By GPU model; the empty name is an unknown model.
    pub models_gpu_milli_ms: BTreeMap<String, States<i128>>,
}

impl Usage {
    /// Checks that installed = unavailable + allocated + free by cause for every model, and that
    /// the models are the total.
    pub fn check(&self) -> Result<(), Imbalance> {
        let models = self.models_gpu_milli_ms.values();
        models.clone().try_for_each(|states| states.check(|amount| amount))?;
        self.total_gpu_milli_ms.check(|amount| amount)?;
        let have = self.total_gpu_milli_ms.installed;
        let sum = models.map(|states| states.installed).sum();
        match have == sum {
            true => Ok(()),
            false => Err(Imbalance { part: "installed in all models", have, sum }),
        }
    }
}

/// GPU-hours of milli-GPU × milliseconds, for people.
pub fn gpu_hours(gpu_milli_ms: i128) -> f64 {
    gpu_milli_ms as f64 / 3.6e9
}

//! How much a GPU of a model counts in what queues have used.

use std::borrow::Cow;
use std::collections::BTreeMap;

use dovetail_model::Charge;
use serde::{Deserialize, Serialize};

/// A GPU of a model that has no weight of its own, in thousandths.
const PLAIN: i128 = 1_000;

/// Weights by GPU model, in thousandths, as Slurm weighs what it bills (`TRESBillingWeights`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModelWeights(pub BTreeMap<String, u32>);

impl ModelWeights {
    /// Whether every GPU counts the same.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same amounts, with each GPU counted for its weight.
    pub(super) fn weighed<'c>(&self, charge: &'c Charge) -> Cow<'c, Charge> {
        if self.is_empty() {
            return Cow::Borrowed(charge);
        }
        let mut all = charge.clone();
        all.gpu_milli = self.part(charge, charge.gpu_milli);
        Cow::Owned(all)
    }

    /// What so many of the GPUs of a charge count, if they are of its models in proportion.
    pub(super) fn part(&self, of: &Charge, gpu_milli: i64) -> i64 {
        if self.is_empty() || of.gpu_milli <= 0 {
            return gpu_milli;
        }
        let more = of.by_model.iter().map(|(model, amount)| {
            let weight = self.0.get(model).map_or(PLAIN, |weight| i128::from(*weight));
            i128::from(*amount) * (weight - PLAIN)
        });
        let whole = i128::from(of.gpu_milli) * PLAIN + more.sum::<i128>();
        let part = i128::from(gpu_milli) * whole.max(0) / PLAIN / i128::from(of.gpu_milli);
        i64::try_from(part).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_count_for_the_weight_of_their_model() {
        let by_model = [("H100", 4_000), ("T4", 8_000)].map(|(name, of)| (name.to_owned(), of));
        let held = Charge { gpu_milli: 14_000, by_model: by_model.into(), ..Charge::default() };
        let weights = ModelWeights([("H100".to_owned(), 4_000), ("T4".to_owned(), 500)].into());
        // Two GPUs are of no known model.
        assert_eq!(weights.weighed(&held).gpu_milli, 4 * 4_000 + 8_000 / 2 + 2_000);
        assert_eq!(weights.part(&held, 7_000), 11_000);
        assert_eq!(ModelWeights::default().weighed(&held).gpu_milli, 14_000);
        assert_eq!(weights.part(&Charge::default(), 0), 0);
    }
}

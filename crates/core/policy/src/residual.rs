//! What is left of a node: its free GPU.

use crate::learn::{Learnt, ONE, STEADY};

/// Weight where jobs come and go, in hundredths.
const WEIGHT_HUNDREDTHS: i64 = 15;
/// More on one node is not told apart, in milli-GPU.
const MOST_MILLI: i64 = 1 << 17;

/// The weight of what is left, under one version. Where nothing ends it counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Residual {
    /// Of a milli-GPU that is left.
    weight: i64,
}

impl Residual {
    pub(crate) fn of(learnt: &Learnt, percent: i64) -> Self {
        let weight = ONE * WEIGHT_HUNDREDTHS * learnt.turnover * percent / (10_000 * STEADY);
        Self { weight }
    }

    /// What is left of a node with so much free, weighed.
    #[inline]
    pub(crate) fn of_node(&self, gpu_milli: i64) -> i64 {
        self.weight * gpu_milli.clamp(0, MOST_MILLI)
    }
}

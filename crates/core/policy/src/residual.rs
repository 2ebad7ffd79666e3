//! What is left of a node: its free GPU, and its free memory in milli-GPU at what the cluster has
//! for each GPU.

use crate::learn::{Learnt, ONE, STEADY};

/// Weight where jobs come and go, in hundredths.
const WEIGHT_HUNDREDTHS: i64 = 15;
/// More of one resource on one node is not told apart, in milli-GPU.
const MOST_MILLI: i64 = 1 << 17;

/// Weights of what is left, under one version. Where nothing ends it counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Residual {
    memory_bytes_per_gpu: i64,
    /// Of a milli-GPU that is left.
    weight: i64,
}

impl Residual {
    pub(crate) fn of(learnt: &Learnt, percent: i64) -> Self {
        Self {
            memory_bytes_per_gpu: learnt.supply.memory_bytes_per_gpu,
            weight: ONE * WEIGHT_HUNDREDTHS * learnt.turnover * percent / (10_000 * STEADY),
        }
    }

    /// What is left of a node with so much free, weighed.
    #[inline]
    pub(crate) fn of_node(&self, gpu_milli: i64, memory_bytes: i64) -> i64 {
        if self.weight == 0 {
            return 0;
        }
        let memory = i128::from(memory_bytes) * 1000 / i128::from(self.memory_bytes_per_gpu.max(1));
        let memory = memory.clamp(0, i128::from(MOST_MILLI)) as i64;
        self.weight * (gpu_milli.clamp(0, MOST_MILLI) + memory)
    }
}

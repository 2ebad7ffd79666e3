//! What is left of a node: its free GPU, CPU and memory, each in milli-GPU at what the cluster has
//! for each GPU.

use crate::learn::{Learnt, ONE, STEADY};

/// Weight where jobs come and go, in hundredths.
const WEIGHT_HUNDREDTHS: i64 = 15;
/// More of one resource on one node is not told apart, in milli-GPU.
const MOST_MILLI: i64 = 1 << 17;

/// Weights of what is left, under one version. Where nothing ends it counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Residual {
    cpu_milli_per_gpu: i64,
    memory_bytes_per_gpu: i64,
    /// Of a milli-GPU that is left.
    weight: i64,
}

impl Residual {
    pub(crate) fn of(learnt: &Learnt, percent: i64) -> Self {
        Self {
            cpu_milli_per_gpu: learnt.supply.cpu_milli_per_gpu,
            memory_bytes_per_gpu: learnt.supply.memory_bytes_per_gpu,
            weight: ONE * WEIGHT_HUNDREDTHS * learnt.turnover * percent / (10_000 * STEADY),
        }
    }

    /// What is left of a node with so much free, weighed.
    #[inline]
    pub(crate) fn of_node(&self, gpu_milli: i64, cpu_milli: i64, memory_bytes: i64) -> i64 {
        if self.weight == 0 {
            return 0;
        }
        let milli = |amount: i64, per_gpu: i64| {
            let gpus = i128::from(amount) * 1000 / i128::from(per_gpu.max(1));
            gpus.clamp(0, i128::from(MOST_MILLI)) as i64
        };
        let cpu = milli(cpu_milli, self.cpu_milli_per_gpu);
        let memory = milli(memory_bytes, self.memory_bytes_per_gpu);
        self.weight * (gpu_milli.clamp(0, MOST_MILLI) + cpu + memory)
    }
}

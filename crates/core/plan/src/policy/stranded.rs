//! Stranded GPU: what the free CPU and memory of a node cannot carry at the learnt amounts per GPU.

use crate::learn::{Learnt, ONE, PodKind, STEADY};

/// Weight of a milli-GPU without CPU, and of one without memory.
const WEIGHT: i64 = 2;
/// More of one resource on one node is not told apart, so that amounts can be multiplied.
const MOST: i64 = 1 << 32;
/// More stranded GPU on one node is not told apart.
const MOST_MILLI: i64 = 1 << 17;

/// GPU without CPU or memory. Where jobs come and go it heals by itself and counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stranded {
    /// Milli-GPU for each thousandth of a core that the learnt mix asks for, 20 fractional bits; 0 is unknown.
    by_cpu: i64,
    /// The same for each MiB of memory.
    by_memory: i64,
    /// Of a stranded milli-GPU.
    weight: i64,
}

impl Stranded {
    pub(crate) fn of(learnt: &Learnt) -> Self {
        Self {
            by_cpu: carried(learnt, |kind| kind.cpu_milli),
            by_memory: carried(learnt, |kind| mib(kind.memory_bytes)),
            weight: ONE * WEIGHT * (STEADY - learnt.turnover) / STEADY,
        }
    }

    /// What is stranded on a node with so much free, weighed, in milli-GPU · 2^20.
    #[inline]
    pub(crate) fn of_node(&self, idle_milli: i64, cpu_milli: i64, memory_bytes: i64) -> i64 {
        if self.weight == 0 {
            return 0;
        }
        let without = |amount: i64, each: i64| match each {
            0 => 0,
            each => (idle_milli - ((amount.clamp(0, MOST) * each) >> 20)).clamp(0, MOST_MILLI),
        };
        let stranded = without(cpu_milli, self.by_cpu) + without(mib(memory_bytes), self.by_memory);
        stranded * self.weight
    }
}

fn carried(learnt: &Learnt, asked: impl Fn(&PodKind) -> i64) -> i64 {
    let (mut amount, mut gpu) = (0i128, 0i128);
    for (kind, share) in learnt.shares.iter().filter(|(kind, _)| kind.gpu_count > 0) {
        amount += i128::from(asked(kind)) * i128::from(*share);
        gpu += i128::from(kind.total_milli()) * i128::from(*share);
    }
    if gpu == 0 || amount == 0 {
        return 0;
    }
    // At least a thousandth of a unit per milli-GPU, so that amounts can be multiplied.
    (gpu * i128::from(ONE) / amount).min(i128::from(ONE) * 1000) as i64
}

fn mib(bytes: i64) -> i64 {
    bytes >> 20
}

//! Balance of CPU and GPU: GPU that the free CPU cannot carry, and CPU that the free GPU does not
//! need, at the learnt CPU per GPU.
//!
//! Where jobs come and go it heals by itself and counts nothing.

use crate::learn::{Learnt, ONE, STEADY};

/// Weight of a milli-GPU without CPU, in eighths.
const STRANDED_EIGHTHS: i64 = 16;
/// Weight of CPU without GPU, as the milli-GPU it could carry, in eighths.
const SURPLUS_EIGHTHS: i64 = 4;
/// CPU is surplus above this multiple, in eighths, of the learnt CPU per GPU.
const SURPLUS_FROM_EIGHTHS: i64 = 12;
/// More free CPU on one node is not told apart, so that amounts can be multiplied.
const MOST_CPU_MILLI: i64 = 1 << 32;
/// More stranded GPU or surplus CPU on one node is not told apart, in milli-GPU.
const MOST_MILLI: i64 = 1 << 17;

/// What the free CPU can carry and what it cannot fill, under one version.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Balance {
    /// Milli-GPU per milli-CPU that the learnt mix asks for, 20 fractional bits; 0 is unknown.
    carried: i64,
    /// The same where surplus begins.
    filled: i64,
    /// Of an eighth of a milli-GPU.
    weight: i64,
}

impl Balance {
    pub(crate) fn of(learnt: &Learnt, percent: i64) -> Self {
        let (mut cpu, mut gpu) = (0i128, 0i128);
        for (kind, share) in learnt.shares.iter().filter(|(kind, _)| kind.gpu_count > 0) {
            cpu += i128::from(kind.cpu_milli) * i128::from(*share);
            gpu += i128::from(kind.total_milli()) * i128::from(*share);
        }
        if gpu == 0 || cpu == 0 {
            return Self::default();
        }
        // At least a thousandth of a milli-CPU per milli-GPU, so that amounts can be multiplied.
        let carried = (gpu * i128::from(ONE) / cpu).min(i128::from(ONE) * 1000) as i64;
        let weight = ONE * (STEADY - learnt.turnover) * percent / (100 * STEADY) / 8;
        Self { carried, filled: carried * 8 / SURPLUS_FROM_EIGHTHS, weight }
    }

    /// Imbalance of a node with so much free, weighed, in milli-GPU · 2^20.
    #[inline]
    pub(crate) fn of_node(&self, idle_milli: i64, cpu_milli: i64) -> i64 {
        if self.weight == 0 {
            return 0;
        }
        let cpu_milli = cpu_milli.clamp(0, MOST_CPU_MILLI);
        let stranded = (idle_milli - ((cpu_milli * self.carried) >> 20)).clamp(0, MOST_MILLI);
        let surplus = (((cpu_milli * self.filled) >> 20) - idle_milli).clamp(0, MOST_MILLI);
        (stranded * STRANDED_EIGHTHS + surplus * SURPLUS_EIGHTHS) * self.weight
    }
}

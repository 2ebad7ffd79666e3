//! Charges added up by whatever people ask for.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use dovetail_model::Money;

use super::bill::{Charge, Paid};
use crate::device_time::DeviceState;

/// What charges come to. Times are milli-GPU × ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostSum {
    /// All device-time.
    pub gpu_milli_ms: i128,
    /// The part of it whose price is known.
    pub priced_gpu_milli_ms: i128,
    /// Held by somebody.
    pub allocated_gpu_milli_ms: i128,
    /// Computing.
    pub active_gpu_milli_ms: i128,
    /// Held and not computing.
    pub idle_gpu_milli_ms: i128,
    /// Wasted, for certain.
    pub waste_gpu_milli_ms: i128,
    /// Of which nobody knows whether it is waste.
    pub blind_gpu_milli_ms: i128,
    /// Cost of wasted GPU-time, whoever pays for it.
    pub waste: Money,
    /// Cost of idle GPU-time.
    pub idle: Money,
    /// Cost of CPU and memory that nobody had.
    pub unused_cpu_memory: Money,
    /// Cost of everything with a price.
    priced: Money,
    /// Charges with a price, and without.
    counts: [u64; 2],
}

impl CostSum {
    /// What the priced part costs; `None` if there are charges and none has a price.
    pub fn cost(&self) -> Option<Money> {
        let [priced, unpriced] = self.counts;
        (priced > 0 || unpriced == 0).then_some(self.priced)
    }

    /// An amount of this sum, `None` where its cost is.
    pub fn known(&self, amount: Money) -> Option<Money> {
        self.cost().map(|_| amount)
    }

    /// Whether something in it has no price.
    pub fn has_unpriced(&self) -> bool {
        self.counts[1] > 0
    }

    /// Adds one charge.
    pub fn add(&mut self, charge: &Charge) {
        self.add_rolled_up(charge.paid, charge.gpu_milli_ms, charge.cost, 1);
    }

    /// Adds as many charges for one cause as one; all of them have a price, or none has.
    pub fn add_rolled_up(
        &mut self,
        paid: Paid,
        gpu_milli_ms: i128,
        cost: Option<Money>,
        charges: u64,
    ) {
        self.gpu_milli_ms += gpu_milli_ms;
        let money = cost.unwrap_or_default();
        self.priced += money;
        self.counts[usize::from(cost.is_none())] += charges;
        if cost.is_some() {
            self.priced_gpu_milli_ms += gpu_milli_ms;
        }
        match paid {
            Paid::Gpus(state) => self.add_state(state, gpu_milli_ms, money),
            Paid::UnusedCpuMemory => self.unused_cpu_memory += money,
            Paid::UnusedShare { is_waste: true } => self.waste += money,
            Paid::HeldCpuMemory | Paid::UnusedShare { is_waste: false } => {}
        }
    }

    fn add_state(&mut self, state: DeviceState, gpu_milli_ms: i128, money: Money) {
        if state.is_allocated() {
            self.allocated_gpu_milli_ms += gpu_milli_ms;
        }
        if state.is_waste() {
            self.waste_gpu_milli_ms += gpu_milli_ms;
            self.waste += money;
        }
        match state {
            DeviceState::Active(_) => self.active_gpu_milli_ms += gpu_milli_ms,
            DeviceState::Idle => {
                self.idle_gpu_milli_ms += gpu_milli_ms;
                self.idle += money;
            }
            DeviceState::Unknown | DeviceState::Free(None) => {
                self.blind_gpu_milli_ms += gpu_milli_ms;
            }
            _ => {}
        }
    }
}

impl AddAssign<&Self> for CostSum {
    fn add_assign(&mut self, other: &Self) {
        self.gpu_milli_ms += other.gpu_milli_ms;
        self.priced_gpu_milli_ms += other.priced_gpu_milli_ms;
        self.allocated_gpu_milli_ms += other.allocated_gpu_milli_ms;
        self.active_gpu_milli_ms += other.active_gpu_milli_ms;
        self.idle_gpu_milli_ms += other.idle_gpu_milli_ms;
        self.waste_gpu_milli_ms += other.waste_gpu_milli_ms;
        self.blind_gpu_milli_ms += other.blind_gpu_milli_ms;
        self.waste += other.waste;
        self.idle += other.idle;
        self.unused_cpu_memory += other.unused_cpu_memory;
        self.priced += other.priced;
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
    }
}

/// Sums by key.
pub fn add_up<K: Ord>(charges: impl IntoIterator<Item = (K, Charge)>) -> BTreeMap<K, CostSum> {
    let mut sums: BTreeMap<K, CostSum> = BTreeMap::new();
    for (key, charge) in charges {
        sums.entry(key).or_default().add(&charge);
    }
    sums
}

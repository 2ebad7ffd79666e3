//! One node's price as charges.

use std::collections::BTreeMap;

use dovetail_model::Money;

use crate::device_time::DeviceState;
use crate::split::{
    ByResource, ListPrices, NodeCost, NodeParts, SplitError, SplitMethod, Unused, budgets,
    share_out, split_money,
};

/// What is known of a node over a period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeBill {
    /// Of all the time it was billed; `None` if nobody knows.
    pub price: Option<Money>,
    /// For how long it was billed.
    pub billed_ms: u64,
    /// What it offered to pods.
    pub offered: NodeParts,
    /// Where CPU and memory are sold alone; `None` if nobody knows.
    pub list_prices: Option<ListPrices>,
    /// Device-time in milli-GPU × ms by holder and state; together all GPUs for all the time.
    pub gpus: BTreeMap<(Option<u32>, DeviceState), i128>,
    /// What was kept of CPU and memory, by holder.
    pub cpu_memory: BTreeMap<u32, HeldTime>,
}

/// CPU and memory over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldTime {
    /// Thousandths of a vCPU × ms.
    pub cpu_milli_ms: i128,
    pub memory_byte_ms: i128,
}

/// A part of a node's price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Who pays; `None` is nobody.
    pub holder: Option<u32>,
    pub paid: Paid,
    /// Device-time in milli-GPU × ms; 0 for what is no GPU.
    pub gpu_milli_ms: i128,
    /// How much; `None` if the node's price is unknown.
    pub cost: Option<Money>,
}

/// What a charge is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Paid {
    Gpus(DeviceState),
    /// CPU and memory kept for a pod.
    HeldCpuMemory,
    /// CPU and memory kept for nobody.
    UnusedCpuMemory,
    /// A pod's share of what nobody had.
    UnusedShare {
        /// Whether it is of GPU-time that is wasted.
        is_waste: bool,
    },
}

impl Paid {
    /// The cause in every output.
    pub fn name(self) -> String {
        match self {
            Self::Gpus(state) => state.name(),
            Self::HeldCpuMemory => "cpu_memory_held".to_owned(),
            Self::UnusedCpuMemory => "cpu_memory_unused".to_owned(),
            Self::UnusedShare { .. } => "unused_distributed".to_owned(),
        }
    }
}

/// Splits what a node cost: GPUs by holder and state, CPU and memory by holder, what nobody had.
/// The charges are the price exactly; without a price they are the times alone.
///
/// Where what is unused is distributed, its time stays with nobody at no cost, and each known
/// holder pays in proportion to what it has of the same resource; a resource that nobody is known
/// to have stays nobody's. GPU-time of which nobody knows the holder ([`DeviceState::Unknown`]
/// without one) is not unused: it keeps its cost, and takes no part in what is.
///
/// # Errors
/// See [`SplitError`].
pub fn charges(
    method: SplitMethod,
    bill: &NodeBill,
    unused: Unused,
) -> Result<Vec<Charge>, SplitError> {
    let Some(price) = bill.price else { return Ok(without_price(bill)) };
    let NodeBill { billed_ms, offered, list_prices, .. } = *bill;
    let node = NodeCost { price, period_ms: billed_ms, offered, list_prices };
    let budgets = budgets(method, &node)?;
    let mut shares = Shares { unused, of_unused: BTreeMap::new() };
    let mut charges = shares.of_gpus(bill, budgets.gpu);
    charges.extend(shares.of_cpu_and_memory(bill, budgets));
    let of_unused = shares.of_unused.into_iter().filter(|(_, cost)| *cost != Money::ZERO);
    charges.extend(of_unused.map(|((holder, is_waste), cost)| Charge {
        holder: Some(holder),
        paid: Paid::UnusedShare { is_waste },
        gpu_milli_ms: 0,
        cost: Some(cost),
    }));
    Ok(charges)
}

struct Shares {
    unused: Unused,
    /// By holder, and whether it is of wasted GPU-time.
    of_unused: BTreeMap<(u32, bool), Money>,
}

impl Shares {
    fn of_gpus(&mut self, bill: &NodeBill, budget: Money) -> Vec<Charge> {
        if bill.gpus.is_empty() {
            // A price without a trace of what the GPUs were.
            let nobody = Charge {
                holder: None,
                paid: Paid::Gpus(DeviceState::Free(None)),
                gpu_milli_ms: 0,
                cost: Some(budget),
            };
            return if budget == Money::ZERO { Vec::new() } else { vec![nobody] };
        }
        let times: Vec<i128> = bill.gpus.values().map(|time| (*time).max(0)).collect();
        let parts = split_money(budget, &times);
        let mut held: BTreeMap<u32, i128> = BTreeMap::new();
        for ((holder, _), time) in bill.gpus.keys().zip(&times) {
            if let Some(holder) = holder {
                *held.entry(*holder).or_default() += time;
            }
        }
        let distributes = self.unused == Unused::Distributed && held.values().any(|time| *time > 0);
        // What is wasted stays told as waste, whoever pays for it.
        let (mut wasted, mut left) = (Money::ZERO, Money::ZERO);
        let mut charges = Vec::with_capacity(times.len());
        for (((holder, state), time), part) in bill.gpus.keys().zip(times).zip(parts) {
            let cost = match holder {
                None if distributes && *state != DeviceState::Unknown => {
                    *if state.is_waste() { &mut wasted } else { &mut left } += part;
                    Money::ZERO
                }
                _ => part,
            };
            let paid = Paid::Gpus(*state);
            charges.push(Charge { holder: *holder, paid, gpu_milli_ms: time, cost: Some(cost) });
        }
        self.distribute(wasted, true, &held);
        self.distribute(left, false, &held);
        charges
    }

    fn of_cpu_and_memory(&mut self, bill: &NodeBill, budgets: ByResource<Money>) -> Vec<Charge> {
        let holders: Vec<u32> = bill.cpu_memory.keys().copied().collect();
        let has = |of: fn(&HeldTime) -> i128| -> Vec<i128> {
            bill.cpu_memory.values().map(|held| of(held).max(0)).collect()
        };
        let offered = bill.offered.capped();
        let over = |amount: u64| i128::from(amount) * i128::from(bill.billed_ms);
        let resources = [
            (budgets.cpu, has(|held| held.cpu_milli_ms), over(offered.cpu_milli)),
            (budgets.memory, has(|held| held.memory_byte_ms), over(offered.memory_bytes)),
        ];
        let mut costs = vec![Money::ZERO; holders.len()];
        let mut unused = Money::ZERO;
        for (budget, has, offered) in resources {
            let (parts, left) = share_out(budget, &has, offered);
            costs.iter_mut().zip(parts).for_each(|(cost, part)| *cost += part);
            let held: BTreeMap<u32, i128> = holders.iter().copied().zip(has).collect();
            match self.unused {
                Unused::Distributed if held.values().any(|held| *held > 0) => {
                    self.distribute(left, false, &held);
                }
                _ => unused += left,
            }
        }
        let held = holders.into_iter().zip(costs).map(|(holder, cost)| Charge {
            holder: Some(holder),
            paid: Paid::HeldCpuMemory,
            gpu_milli_ms: 0,
            cost: Some(cost),
        });
        let mut charges: Vec<Charge> = held.collect();
        if unused != Money::ZERO {
            let paid = Paid::UnusedCpuMemory;
            charges.push(Charge { holder: None, paid, gpu_milli_ms: 0, cost: Some(unused) });
        }
        charges
    }

    fn distribute(&mut self, left: Money, is_waste: bool, held: &BTreeMap<u32, i128>) {
        if left == Money::ZERO {
            return;
        }
        let weights: Vec<i128> = held.values().copied().collect();
        for (holder, part) in held.keys().zip(split_money(left, &weights)) {
            *self.of_unused.entry((*holder, is_waste)).or_default() += part;
        }
    }
}

fn without_price(bill: &NodeBill) -> Vec<Charge> {
    let charge = |holder, paid, gpu_milli_ms| Charge { holder, paid, gpu_milli_ms, cost: None };
    let gpus = bill.gpus.iter();
    let gpus = gpus.map(|((holder, state), time)| charge(*holder, Paid::Gpus(*state), *time));
    let held = bill.cpu_memory.keys();
    gpus.chain(held.map(|holder| charge(Some(*holder), Paid::HeldCpuMemory, 0))).collect()
}

//! What the GPUs cost, node by node, in the amounts in which a bill splits them: an audit and a
//! bill of one moment say the same to the micro-dollar, since both round at one place, the charges
//! of a node.

use std::collections::BTreeMap;

use dovetail_account::cost::{Charge, NodeBill, Paid, charges};
use dovetail_account::device_time::DeviceState;
use dovetail_account::split::{Headline, NodeParts, SplitMethod, Unused, headline};
use dovetail_model::Money;
use dovetail_model::device::WHOLE_DEVICE_MILLI;

use super::NodePrice;
use crate::attribution::PricedTime;
use crate::facts::Facts;
use crate::moment::{DeviceStates, MONTH_MS, Moment};

/// All time of a month, with what it costs.
#[derive(Debug, Default)]
pub(super) struct Amounts {
    pub(super) installed: PricedTime,
    pub(super) by_state: BTreeMap<DeviceState, PricedTime>,
    pub(super) waste: PricedTime,
    pub(super) blind: PricedTime,
    /// As prices are told per GPU, the whole price of a node is on its GPUs; with the range over
    /// the methods that need no list prices of CPU and memory. `None` without prices.
    pub(super) headline: Option<Headline>,
}

/// Adds up the charges of every node.
pub(super) fn amounts(
    facts: &Facts,
    moment: &Moment,
    prices: &[NodePrice],
    states: &DeviceStates,
) -> Amounts {
    let bills = bills(facts, moment, prices, states);
    let mut amounts = Amounts::default();
    for (state, charge) in of_gpus(SplitMethod::AllIn, &bills) {
        let add = |to: &mut PricedTime| to.add_charge(charge.gpu_milli_ms, charge.cost);
        add(&mut amounts.installed);
        add(amounts.by_state.entry(state).or_default());
        if state.is_waste() {
            add(&mut amounts.waste);
        }
        if matches!(state, DeviceState::Unknown | DeviceState::Free(None)) {
            add(&mut amounts.blind);
        }
    }
    amounts.headline = amounts.waste.cost().and_then(|waste| headline_of(waste, &bills));
    amounts
}

fn headline_of(all_in: Money, bills: &[NodeBill]) -> Option<Headline> {
    let mut figures = vec![(SplitMethod::AllIn, all_in)];
    let others = [SplitMethod::AllIn, SplitMethod::Residual];
    for method in SplitMethod::ALL.into_iter().filter(|method| !others.contains(method)) {
        let wasted = of_gpus(method, bills).filter(|(state, _)| state.is_waste());
        figures.push((method, wasted.filter_map(|(_, charge)| charge.cost).sum()));
    }
    headline(SplitMethod::AllIn, &figures)
}

/// Charges for GPUs in each state.
fn of_gpus(method: SplitMethod, bills: &[NodeBill]) -> impl Iterator<Item = (DeviceState, Charge)> {
    let of_node = move |bill: &NodeBill| {
        charges(method, bill, Unused::Shown).unwrap_or_else(|_| {
            // What cannot be split has no price, and times without one can be.
            let unpriced = NodeBill { price: None, ..bill.clone() };
            charges(method, &unpriced, Unused::Shown).unwrap_or_default()
        })
    };
    bills.iter().flat_map(of_node).filter_map(|charge| match charge.paid {
        Paid::Gpus(state) => Some((state, charge)),
        Paid::HeldCpuMemory | Paid::UnusedCpuMemory | Paid::UnusedShare { .. } => None,
    })
}

/// A month of each node with GPUs.
fn bills(
    facts: &Facts,
    moment: &Moment,
    prices: &[NodePrice],
    states: &DeviceStates,
) -> Vec<NodeBill> {
    let amount = |amount: i64| u64::try_from(amount).unwrap_or(0);
    let offers = facts.nodes.iter().map(|node| (&*node.node.name, &node.node.allocatable));
    let offers: BTreeMap<&str, _> = offers.collect();
    let nodes = moment.nodes.iter().zip(&states.gpus).zip(prices);
    let bill = |((node, gpus), price): ((&_, &BTreeMap<_, _>), &NodePrice)| {
        let node: &crate::moment::NodeGpus = node;
        // A node that is not among the facts has no time.
        if gpus.is_empty() {
            return None;
        }
        let gpu_milli = node.gpus * WHOLE_DEVICE_MILLI;
        let time = i128::from(gpu_milli) * i128::from(MONTH_MS);
        let offers = offers.get(&*node.node);
        Some(NodeBill {
            price: price.usd_micros_per_gpu_hour.map(|price| Money::of_gpu_time(time, price)),
            billed_ms: MONTH_MS,
            offered: NodeParts {
                cpu_milli: offers.map_or(0, |offers| amount(offers.cpu_milli)),
                memory_bytes: offers.map_or(0, |offers| amount(offers.memory_bytes)),
                gpu_milli: amount(gpu_milli),
            },
            gpus: gpus.clone(),
            ..NodeBill::default()
        })
    };
    nodes.filter_map(bill).collect()
}

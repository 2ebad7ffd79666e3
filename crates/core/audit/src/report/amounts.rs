//! What the GPUs cost, node by node, in the amounts in which a bill splits them: an audit and a
//! bill of one moment say the same to the micro-dollar, since both round at one place, the charges
//! of a node.

use std::collections::BTreeMap;

use dovetail_account::cost::{Charge, NodeBill, Paid, charges};
use dovetail_account::device_time::DeviceState;
use dovetail_account::split::{Headline, NodeParts, SplitMethod, Unused, headline};
use dovetail_facts::{DeviceStates, Facts, MONTH_MS, Moment, PricedTime};
use dovetail_model::Money;
use dovetail_model::device::WHOLE_DEVICE_MILLI;

use super::NodePrice;

/// All time of a month, with what it costs.
#[derive(Debug, Default)]
pub(super) struct ReportAmounts {
    pub(super) installed: PricedTime,
    pub(super) by_state: BTreeMap<DeviceState, PricedTime>,
    pub(super) waste: PricedTime,
    pub(super) blind: PricedTime,
    /// As prices are told per GPU, the whole price of a node is on its GPUs; with the range over
    /// the methods that need no list prices of CPU and memory. `None` without prices.
    pub(super) headline: Option<Headline>,
    rates: Vec<(SplitMethod, Rates)>,
}

/// Adds up the charges of every node.
pub(super) fn amounts(
    facts: &Facts,
    moment: &Moment,
    prices: &[NodePrice],
    states: &DeviceStates,
) -> ReportAmounts {
    let bills = bills(facts, moment, prices, states);
    let mut amounts = ReportAmounts::default();
    for (_, state, charge) in of_gpus(SplitMethod::AllIn, &bills) {
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
    for method in other_methods() {
        amounts.rates.push((method, Rates::of(method, &bills)));
    }
    amounts.headline = amounts.waste.cost().and_then(|waste| {
        let others = amounts.rates.iter().map(|(method, rates)| (*method, rates.of_waste()));
        range(waste, others)
    });
    amounts
}

/// A figure of the method that is used, with the least and the most that other methods say.
fn range(all_in: Money, others: impl Iterator<Item = (SplitMethod, Money)>) -> Option<Headline> {
    let figures: Vec<_> = std::iter::once((SplitMethod::AllIn, all_in)).chain(others).collect();
    headline(SplitMethod::AllIn, &figures)
}

/// Methods that need no list prices of CPU and memory, but for the one that is used.
fn other_methods() -> impl Iterator<Item = SplitMethod> {
    let left_out = [SplitMethod::AllIn, SplitMethod::Residual];
    SplitMethod::ALL.into_iter().filter(move |method| !left_out.contains(method))
}

/// What GPU-time on each node and in each state costs by one method: time and micro-USD.
#[derive(Debug, Default)]
pub(super) struct Rates(BTreeMap<(usize, DeviceState), (i128, i128)>);

impl Rates {
    fn of(method: SplitMethod, bills: &[(usize, NodeBill)]) -> Self {
        let mut rates = Self::default();
        for (node, state, charge) in of_gpus(method, bills) {
            let (time, micros) = rates.0.entry((node, state)).or_default();
            if let Some(cost) = charge.cost {
                *time += charge.gpu_milli_ms;
                *micros += i128::from(cost.usd_micros);
            }
        }
        rates
    }

    fn of_waste(&self) -> Money {
        let wasted = self.0.iter().filter(|((_, state), _)| state.is_waste());
        Money::micros(wasted.map(|(_, (_, micros))| *micros).sum::<i128>() as i64)
    }

    /// What a part of that time costs, cut off.
    fn of_part(&self, part: &Times) -> Money {
        let micros = part.iter().map(|(key, part)| match self.0.get(key) {
            Some((time, micros)) if *time > 0 => micros * part / time,
            _ => 0,
        });
        Money::micros(micros.sum::<i128>() as i64)
    }
}

/// Time by place of the node and state.
pub(super) type Times = BTreeMap<(usize, DeviceState), i128>;

/// GPU-time of a month with what it costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonthFigure {
    /// By the method that is used.
    pub time: PricedTime,
    /// The same over the methods; `None` without prices.
    pub range: Option<Headline>,
}

impl ReportAmounts {
    /// A part of the waste with its range over the methods.
    pub(super) fn figure(&self, time: PricedTime, parts: &Times) -> MonthFigure {
        let others = self.rates.iter().map(|(method, rates)| (*method, rates.of_part(parts)));
        MonthFigure { time, range: time.cost().and_then(|cost| range(cost, others)) }
    }

    /// The waste without some parts of it.
    pub(super) fn rest(&self, time: PricedTime, parts: &Times) -> MonthFigure {
        let others = self.rates.iter().map(|(method, rates)| {
            let rest = rates.of_waste() - rates.of_part(parts);
            (*method, rest.max(Money::ZERO))
        });
        MonthFigure { time, range: time.cost().and_then(|cost| range(cost, others)) }
    }
}

fn of_gpus(
    method: SplitMethod,
    bills: &[(usize, NodeBill)],
) -> impl Iterator<Item = (usize, DeviceState, Charge)> {
    let of_node = move |(node, bill): &(usize, NodeBill)| {
        let charges = charges(method, bill, Unused::Shown).unwrap_or_else(|_| {
            // What cannot be split has no price, and times without one can be.
            let unpriced = NodeBill { price: None, ..bill.clone() };
            charges(method, &unpriced, Unused::Shown).unwrap_or_default()
        });
        let node = *node;
        charges.into_iter().map(move |charge| (node, charge))
    };
    bills.iter().flat_map(of_node).filter_map(|(node, charge)| match charge.paid {
        Paid::Gpus(state) => Some((node, state, charge)),
        Paid::HeldCpuMemory | Paid::UnusedCpuMemory | Paid::UnusedShare { .. } => None,
    })
}

/// A month of each node with GPUs.
fn bills(
    facts: &Facts,
    moment: &Moment,
    prices: &[NodePrice],
    states: &DeviceStates,
) -> Vec<(usize, NodeBill)> {
    let amount = |amount: i64| u64::try_from(amount).unwrap_or(0);
    let offers = facts.nodes.iter().map(|node| (&*node.node.name, &node.node.allocatable));
    let offers: BTreeMap<&str, _> = offers.collect();
    let nodes = moment.nodes.iter().zip(&states.gpus).zip(prices).enumerate();
    let bill = |(place, ((node, gpus), price)): (usize, ((&_, &BTreeMap<_, _>), &NodePrice))| {
        let node: &dovetail_facts::NodeGpus = node;
        // A node that is not among the facts has no time.
        if gpus.is_empty() {
            return None;
        }
        let gpu_milli = node.gpus * WHOLE_DEVICE_MILLI;
        let time = i128::from(gpu_milli) * i128::from(MONTH_MS);
        let offers = offers.get(&*node.node);
        let bill = NodeBill {
            price: price.usd_micros_per_gpu_hour.map(|price| Money::of_gpu_time(time, price)),
            billed_ms: MONTH_MS,
            offered: NodeParts {
                cpu_milli: offers.map_or(0, |offers| amount(offers.cpu_milli)),
                memory_bytes: offers.map_or(0, |offers| amount(offers.memory_bytes)),
                gpu_milli: amount(gpu_milli),
            },
            gpus: gpus.clone(),
            ..NodeBill::default()
        };
        Some((place, bill))
    };
    nodes.filter_map(bill).collect()
}

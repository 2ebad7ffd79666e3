//! The audit of a moment in money: what is wasted, what each finding explains of it, and what is left after
//! each layer of findings.

mod brought;
mod ladder;
mod room;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use dovetail_ledger::device_time::{DeviceState, Span};
use dovetail_ledger::split::split_node;
use dovetail_ledger::split::{Headline, NodeCost, NodeParts, SplitMethod, Unused, headline};
use dovetail_model::Money;
use dovetail_model::device::WHOLE_DEVICE_MILLI;

use crate::checks::audit;
use crate::claim::{PricedTime, Settled, all_waste, settle_and_tell};
use crate::facts::Facts;
use crate::finding::Finding;
use crate::moment::{DeviceStates, MONTH_MS, Moment, NodeGpus};
use crate::suppress::{SuppressionPolicy, suppress};
pub use brought::Brought;
use brought::brought;
pub use ladder::Rung;
use ladder::ladder;

/// What the GPUs of one node cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodePrice {
    /// Micro-USD per GPU and hour with the CPU and memory that come with it; `None` if nobody knows.
    pub usd_micros_per_gpu_hour: Option<i64>,
}

/// An audit of one moment. All time is that of a month.
#[derive(Clone, Debug)]
pub struct Report {
    /// All GPUs.
    pub installed: PricedTime,
    /// By state; a state of nothing is left out.
    pub by_state: BTreeMap<DeviceState, PricedTime>,
    /// What is wasted for certain.
    pub waste: PricedTime,
    /// What nobody knows: held GPUs of which nobody measured whether they compute, and GPUs free for an
    /// unknown cause. Some of it may be waste.
    pub blind: PricedTime,
    /// The priced waste under the method used, and its range over the methods; `None` without prices.
    pub headline: Option<Headline>,
    /// What is left after each layer of findings.
    pub ladder: Vec<Rung>,
    /// Findings, dearest first, then worst first.
    pub findings: Vec<Priced>,
}

/// A finding with what it explains.
#[derive(Clone, Debug)]
pub struct Priced {
    /// The finding.
    pub finding: Finding,
    /// What it claims, and what it explains too.
    pub settled: Settled,
    /// What mending it brings.
    pub brought: Brought,
}

impl Report {
    /// Wasted time that no finding explains.
    pub fn unexplained_gpu_milli_ms(&self) -> i128 {
        let claims = self.findings.iter().map(|priced| priced.settled.claimed.gpu_milli_ms);
        self.waste.gpu_milli_ms - claims.sum::<i128>()
    }
}

/// Runs all checks and prices what they found. `prices` stand in the order of [`Moment::nodes`].
pub fn report(
    facts: &Facts,
    moment: &Moment,
    mut states: DeviceStates,
    prices: &[NodePrice],
    policy: &SuppressionPolicy,
) -> Report {
    let price_of = |device: u32| prices.get(states.node_of[device as usize]).copied();
    for waste in &mut states.intervals {
        waste.usd_micros_per_gpu_hour =
            price_of(waste.device).and_then(|price| price.usd_micros_per_gpu_hour);
    }
    let intervals = &states.intervals;
    let mut findings = audit(facts);
    suppress(&mut findings, facts, policy);
    let (settled, taken) = settle_and_tell(intervals, &findings);
    let brought = brought(facts, moment, &states, &findings, &taken);
    let (mut installed, mut blind) = (PricedTime::default(), PricedTime::default());
    let mut by_state: BTreeMap<DeviceState, PricedTime> = BTreeMap::new();
    for waste in intervals {
        installed.add_interval(waste);
        by_state.entry(waste.interval.state).or_default().add_interval(waste);
        if matches!(waste.interval.state, DeviceState::Unknown | DeviceState::Free(None)) {
            blind.add_interval(waste);
        }
    }
    let mut priced: Vec<Priced> = findings
        .into_iter()
        .zip(settled.into_iter().zip(brought))
        .map(|(finding, (settled, brought))| Priced { finding, settled, brought })
        .collect();
    let waste = all_waste(intervals);
    let allocated = by_state.iter().filter(|(state, _)| state.is_allocated());
    let allocated_gpu_milli_ms = allocated.map(|(_, time)| time.gpu_milli_ms).sum();
    let ladder = ladder(installed, waste, allocated_gpu_milli_ms, &priced);
    // Stable: what costs the same stays worst first.
    priced.sort_by_key(|priced| std::cmp::Reverse(order_of(priced)));
    let headline = headline_of(facts, moment, prices, &states);
    Report { installed, by_state, waste, blind, headline, ladder, findings: priced }
}

/// Dollars first, then time.
fn order_of(priced: &Priced) -> (Money, i128) {
    let claimed = priced.settled.claimed;
    (claimed.cost().unwrap_or(Money::ZERO), claimed.gpu_milli_ms)
}

/// The priced waste with the whole price of a node on its GPUs, as prices are told per GPU, and under each
/// method that needs no list prices of CPU and memory.
fn headline_of(
    facts: &Facts,
    moment: &Moment,
    prices: &[NodePrice],
    states: &DeviceStates,
) -> Option<Headline> {
    let offered: BTreeMap<&str, NodeParts> = facts
        .nodes
        .iter()
        .map(|node| {
            let amount = |amount: i64| u64::try_from(amount).unwrap_or(0);
            let parts = NodeParts {
                cpu_milli: amount(node.node.allocatable.cpu_milli),
                memory_bytes: amount(node.node.allocatable.memory_bytes),
                gpu_milli: 0,
            };
            (&*node.node.name, parts)
        })
        .collect();
    let mut wasted_gpu_milli_ms = vec![0_i128; moment.nodes.len()];
    for waste in states.intervals.iter().filter(|waste| waste.interval.state.is_waste()) {
        let Span { from_ms, to_ms } = waste.interval.span;
        let time = i128::from(waste.interval.gpu_milli) * i128::from(to_ms - from_ms);
        wasted_gpu_milli_ms[states.node_of[waste.device as usize]] += time;
    }
    // As prices are told per GPU, the whole price of a node is on its GPUs: what is known to the micro-dollar.
    let mut figures = vec![(SplitMethod::AllIn, all_waste(&states.intervals).cost()?)];
    let others = [SplitMethod::AllIn, SplitMethod::Residual];
    for method in SplitMethod::ALL.into_iter().filter(|method| !others.contains(method)) {
        let mut waste = Money::ZERO;
        let nodes = moment.nodes.iter().zip(prices).zip(&wasted_gpu_milli_ms);
        for ((node, price), wasted) in nodes {
            let parts = offered.get(&*node.node).copied().unwrap_or_default();
            if let Some(cost) = of_gpus(method, node, *price, parts) {
                // Of the month's price, not of an hour's: what is cut off there counts 720 times.
                let all = i128::from(node.gpus * WHOLE_DEVICE_MILLI) * i128::from(MONTH_MS);
                waste += Money::micros((i128::from(cost.usd_micros) * wasted / all) as i64);
            }
        }
        figures.push((method, waste));
    }
    headline(SplitMethod::AllIn, &figures)
}

/// What the GPUs of a node carry of its price of a month; `None` if nobody knows the price.
fn of_gpus(
    method: SplitMethod,
    node: &NodeGpus,
    price: NodePrice,
    parts: NodeParts,
) -> Option<Money> {
    let hours = i64::try_from(MONTH_MS / 3_600_000).ok()?;
    let month = price.usd_micros_per_gpu_hour?.checked_mul(node.gpus)?.checked_mul(hours)?;
    let gpu_milli = u64::try_from(node.gpus * WHOLE_DEVICE_MILLI).ok().filter(|gpus| *gpus > 0)?;
    let cost = NodeCost {
        price: Money::micros(month),
        period_ms: MONTH_MS,
        offered: NodeParts { gpu_milli, ..parts },
        list_prices: None,
    };
    Some(split_node(method, &cost, &[], Unused::Shown).ok()?.unused.gpu)
}

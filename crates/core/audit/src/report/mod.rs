//! The audit of a moment in money: what is wasted, what each finding explains of it, and what is
//! left after each layer of findings.

mod amounts;
mod brought;
mod ladder;
mod room;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use dovetail_account::device_time::DeviceState;
use dovetail_account::split::Headline;
use dovetail_model::Money;

use crate::attribution::{PricedTime, Settled, settle_and_tell};
use crate::checks::audit;
use crate::facts::Facts;
use crate::finding::Finding;
use crate::moment::{DeviceStates, Moment};
use crate::suppress::{SuppressionPolicy, suppress};
use amounts::{Amounts, amounts};
pub use brought::Brought;
use brought::brought;
pub use ladder::Rung;
use ladder::ladder;

/// What the GPUs of one node cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodePrice {
    /// Micro-USD per GPU and hour with the CPU and memory that come with it; `None` if nobody
    /// knows.
    pub usd_micros_per_gpu_hour: Option<i64>,
}

/// An audit of one moment. All time is that of a month.
#[derive(Clone, Debug)]
pub struct AuditReport {
    /// All GPUs.
    pub installed: PricedTime,
    /// By state; a state of nothing is left out.
    pub by_state: BTreeMap<DeviceState, PricedTime>,
    /// What is wasted for certain.
    pub waste: PricedTime,
    /// What nobody knows: held GPUs of which nobody measured whether they compute, and GPUs free
    /// for an unknown cause. Some of it may be waste.
    pub blind: PricedTime,
    /// The priced waste under the method used, and its range over the methods; `None` without
    /// prices.
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

impl AuditReport {
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
) -> AuditReport {
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
    let amounts = amounts(facts, moment, prices, &states);
    let mut priced: Vec<Priced> = findings
        .into_iter()
        .zip(settled.into_iter().zip(brought))
        .map(|(finding, (settled, brought))| Priced { finding, settled, brought })
        .collect();
    let Amounts { installed, by_state, waste, blind, headline } = amounts;
    no_more_than(waste, &mut priced);
    let allocated = by_state.iter().filter(|(state, _)| state.is_allocated());
    let allocated_gpu_milli_ms = allocated.map(|(_, time)| time.gpu_milli_ms).sum();
    let ladder = ladder(installed, waste, allocated_gpu_milli_ms, &priced);
    // Stable: what costs the same stays worst first.
    priced.sort_by_key(|priced| std::cmp::Reverse(order_of(priced)));
    AuditReport { installed, by_state, waste, blind, headline, ladder, findings: priced }
}

/// Findings in whole micro-dollars that together are no more than the waste: what each claims is
/// cut off, the waste is the sum of what its parts were rounded to.
fn no_more_than(waste: PricedTime, findings: &mut [Priced]) {
    let mut left = waste.cost().unwrap_or(Money::ZERO);
    for Priced { settled, brought, .. } in findings {
        settled.claimed = settled.claimed.at_most(left);
        let claimed = settled.claimed.cost().unwrap_or(Money::ZERO);
        brought.returned = brought.returned.at_most(claimed);
        left = left - claimed;
    }
}

/// Dollars first, then time.
fn order_of(priced: &Priced) -> (Money, i128) {
    let claimed = priced.settled.claimed;
    (claimed.cost().unwrap_or(Money::ZERO), claimed.gpu_milli_ms)
}

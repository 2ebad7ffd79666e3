//! The audit of a moment in money: what is wasted, what each finding explains of it, and what is
//! left after each layer of findings.

mod amounts;
mod begins;
mod brought;
mod ladder;
mod moved;
mod room;
mod starting;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use dovetail_account::device_time::DeviceState;
use dovetail_account::split::Headline;
use dovetail_facts::{DeviceStates, Facts, Moment, PricedTime};
use dovetail_model::Money;

use crate::attribution::{Settled, Taken, settle_and_tell};
use crate::checks::audit_at;
use crate::finding::Finding;
use crate::suppress::{SuppressionPolicy, suppress};
pub use amounts::MonthFigure;
use amounts::{ReportAmounts, Times, amounts};
use begins::Begins;
pub use brought::Brought;
use brought::{AllBrought, brought};
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
    /// What nobody measured: allocated GPUs without a measurement of whether they compute, and
    /// GPUs free for an unknown cause. Some of it may be waste.
    pub blind: PricedTime,
    /// What is known of now and of no month: states that are too recent, or that end by itself.
    pub open: PricedTime,
    /// The part of it that is not free.
    pub open_held: PricedTime,
    /// As in [`DeviceStates`].
    pub perhaps_held: i128,
    /// The priced waste under the method used, and its range over the methods; `None` without
    /// prices.
    pub headline: Option<Headline>,
    /// The part of the waste that a fix returns at once: a node can go, or waiting work fits.
    pub returned: MonthFigure,
    /// What of it leaves the bill: pending pods take the rest, and the bill stays.
    pub removed: PricedTime,
    /// The part that findings explain and that is money once somebody uses it.
    pub freed: MonthFigure,
    /// The part that no finding explains.
    pub unexplained: MonthFigure,
    /// Waste until now in states that cannot be taken for a month, by state; no part of the above.
    pub so_far: BTreeMap<DeviceState, PricedTime>,
    /// GPUs in each state now, as milli-GPU × ms of a month.
    pub now: BTreeMap<DeviceState, i128>,
    /// What is left after each layer of findings.
    pub ladder: Vec<Rung>,
    /// Findings, dearest first, then worst first.
    pub findings: Vec<PricedFinding>,
}

/// A finding with what it explains.
#[derive(Clone, Debug)]
pub struct PricedFinding {
    pub finding: Finding,
    /// What it claims of the month, and what it explains too.
    pub settled: Settled,
    /// What it claims of the time so far, in states that cannot be taken for a month.
    pub so_far: PricedTime,
    /// What it claims, by price of a GPU-hour: of the month, and of the time so far.
    pub by_price: [TimeByPrice; 2],
    /// Since when what it is about is so, as far as anybody knows.
    pub since_ms: Option<u64>,
    /// What mending it brings.
    pub brought: Brought,
}

impl PricedFinding {
    /// Whether any wasted time is what the finding says, its own or one that another finding has.
    fn explains_waste(&self) -> bool {
        let Settled { claimed, contested } = self.settled;
        let times = [claimed, contested, self.so_far];
        times.iter().any(|time| time.gpu_milli_ms > 0)
    }
}

/// Milli-GPU × ms by micro-USD per GPU-hour; `None` is time without a price.
pub type TimeByPrice = BTreeMap<Option<i64>, i128>;

impl AuditReport {
    /// Wasted time that no finding explains.
    pub fn unexplained_gpu_milli_ms(&self) -> i128 {
        let claims = self.findings.iter().map(|priced| priced.settled.claimed.gpu_milli_ms);
        self.waste.gpu_milli_ms - claims.sum::<i128>()
    }

    /// What a state costs in the month, without what is known of now and of no month: that is in no
    /// state.
    pub fn month_of(&self, state: &DeviceState) -> PricedTime {
        let all = self.by_state.get(state).copied().unwrap_or_default();
        let open = match state {
            DeviceState::Unknown => self.open_held,
            DeviceState::Free(None) => self.open - self.open_held,
            _ => return all,
        };
        all - open.at_most(all.cost().unwrap_or(Money::ZERO))
    }

    /// All waste until now in states that cannot be taken for a month.
    pub fn waste_so_far(&self) -> PricedTime {
        self.so_far.values().fold(PricedTime::default(), |sum, time| sum + *time)
    }
}

/// Runs all checks and prices what they found. `prices` stand in the order of [`Moment::nodes`].
pub fn report(
    facts: &Facts,
    moment: &Moment,
    states: DeviceStates,
    prices: &[NodePrice],
    policy: &SuppressionPolicy,
) -> AuditReport {
    report_of(audit_at(facts, moment), (facts, moment), states, prices, policy)
}

/// Prices what all checks found of these facts at this moment, as [`report`] does.
pub fn report_of(
    mut findings: Vec<Finding>,
    (facts, moment): (&Facts, &Moment),
    mut states: DeviceStates,
    prices: &[NodePrice],
    policy: &SuppressionPolicy,
) -> AuditReport {
    let price_of = |device: u32| prices.get(states.node_of[device as usize]).copied();
    for waste in states.intervals.iter_mut().chain(&mut states.so_far) {
        waste.usd_micros_per_gpu_hour =
            price_of(waste.device).and_then(|price| price.usd_micros_per_gpu_hour);
    }
    let intervals = &states.intervals;
    suppress(&mut findings, facts, policy);
    let (settled, taken) = settle_and_tell(intervals, &findings);
    let (settled_so_far, taken_so_far) = settle_and_tell(&states.so_far, &findings);
    let AllBrought { of_findings, returned } = brought(facts, moment, &states, &findings, &taken);
    let amounts = amounts(facts, moment, prices, &states);
    let (since, by_price) = since_and_price(facts, &findings, [&taken, &taken_so_far]);
    let parts = settled.into_iter().zip(settled_so_far).zip(of_findings).zip(since).zip(by_price);
    let mut priced: Vec<PricedFinding> = findings
        .into_iter()
        .zip(parts)
        .map(|(finding, ((((settled, so_far), brought), since_ms), by_price))| PricedFinding {
            finding,
            settled,
            so_far: so_far.claimed,
            by_price,
            since_ms,
            brought,
        })
        .filter(|priced| !priced.finding.needs_waste || priced.explains_waste())
        .collect();
    no_more_than(amounts.waste, &mut priced);
    let explained = explained(&states, &taken);
    let figures = Figures::of(&amounts, &priced, &returned, explained);
    let ReportAmounts { installed, by_state, waste, blind, headline, .. } = amounts;
    let (open, open_held) = (open(&states.open, prices), open(&states.open_held, prices));
    let blind = blind - open.at_most(blind.cost().unwrap_or(Money::ZERO));
    let allocated = by_state.iter().filter(|(state, _)| state.is_allocated());
    let allocated_gpu_milli_ms = allocated.map(|(_, time)| time.gpu_milli_ms).sum();
    let ladder = ladder(installed, waste, allocated_gpu_milli_ms, &priced);
    // Stable: what costs the same stays worst first.
    priced.sort_by_key(|priced| std::cmp::Reverse(order_of(priced)));
    let mut so_far: BTreeMap<DeviceState, PricedTime> = BTreeMap::new();
    for waste in states.so_far.iter().filter(|waste| waste.interval.state.is_waste()) {
        so_far.entry(waste.interval.state).or_default().add_interval(waste);
    }
    let Figures { returned, freed, unexplained } = figures;
    let of_removed = priced.iter().map(|priced| priced.brought.removed);
    let removed = of_removed.fold(PricedTime::default(), |sum, time| sum + time);
    AuditReport {
        installed,
        by_state,
        waste,
        blind,
        open,
        open_held,
        perhaps_held: states.perhaps_held,
        headline,
        returned,
        removed,
        freed,
        unexplained,
        so_far,
        now: states.now,
        ladder,
        findings: priced,
    }
}

/// Since when what each finding is about is so, and what it claims of the month and of the time so
/// far, by price.
fn since_and_price(
    facts: &Facts,
    findings: &[Finding],
    taken: [&Vec<Taken>; 2],
) -> (Vec<Option<u64>>, Vec<[TimeByPrice; 2]>) {
    let mut by_price = vec![[TimeByPrice::new(), TimeByPrice::new()]; findings.len()];
    let mut since: Vec<Option<u64>> = vec![None; findings.len()];
    for (when, taken) in taken.into_iter().enumerate() {
        for Taken { finding, waste } in taken {
            let of_price = by_price[*finding][when].entry(waste.usd_micros_per_gpu_hour);
            *of_price.or_default() += waste.time();
            let first = since[*finding].into_iter().chain(waste.since_ms).min();
            since[*finding] = first;
        }
    }
    let begins = Begins::of(facts);
    for (since, finding) in since.iter_mut().zip(findings) {
        *since = match finding.since_ms {
            None if finding.is_undated => None,
            own => own.or(*since).or_else(|| begins.of_affected(finding)),
        };
    }
    (since, by_price)
}

/// Time of the month of which nothing is known only because states do not last, with its price.
fn open(times: &[i128], prices: &[NodePrice]) -> PricedTime {
    let mut open = PricedTime::default();
    for (time, price) in times.iter().zip(prices) {
        open.add_time(*time, price.usd_micros_per_gpu_hour);
    }
    open
}

/// All that findings claim of the month, by place of the node and state.
fn explained(states: &DeviceStates, taken: &[Taken]) -> Times {
    let mut times = Times::new();
    for Taken { waste, .. } in taken {
        let node = states.node_of[waste.device as usize];
        *times.entry((node, waste.interval.state)).or_default() += waste.time();
    }
    times
}

/// The waste in three parts.
struct Figures {
    returned: MonthFigure,
    freed: MonthFigure,
    unexplained: MonthFigure,
}

impl Figures {
    fn of(
        amounts: &ReportAmounts,
        findings: &[PricedFinding],
        returned: &Times,
        mut explained: Times,
    ) -> Self {
        let sum = |part: fn(&PricedFinding) -> PricedTime| {
            findings.iter().fold(PricedTime::default(), |sum, priced| sum + part(priced))
        };
        let claimed = sum(|priced| priced.settled.claimed);
        let at_once = sum(|priced| priced.brought.returned);
        let unexplained = amounts.rest(amounts.waste - claimed, &explained);
        for (key, time) in returned {
            *explained.entry(*key).or_default() -= time;
        }
        Self {
            returned: amounts.figure(at_once, returned),
            freed: amounts.figure(claimed - at_once, &explained),
            unexplained,
        }
    }
}

/// Findings in whole micro-dollars that together are no more than the waste: what each claims is
/// cut off, the waste is the sum of what its parts were rounded to.
fn no_more_than(waste: PricedTime, findings: &mut [PricedFinding]) {
    let mut left = waste.cost().unwrap_or(Money::ZERO);
    for PricedFinding { settled, brought, .. } in findings {
        settled.claimed = settled.claimed.at_most(left);
        let claimed = settled.claimed.cost().unwrap_or(Money::ZERO);
        brought.returned = brought.returned.at_most(claimed);
        brought.removed = brought.removed.at_most(claimed);
        left = left - claimed;
    }
}

/// Dollars of a month first, then those so far, then time.
fn order_of(priced: &PricedFinding) -> (Money, Money, i128) {
    let PricedFinding { settled: Settled { claimed, .. }, so_far, .. } = priced;
    let money = |time: &PricedTime| time.cost().unwrap_or(Money::ZERO);
    (money(claimed), money(so_far), claimed.gpu_milli_ms + so_far.gpu_milli_ms)
}

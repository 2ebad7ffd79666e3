//! List prices out, what was billed in.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::Span;
use dovetail_bill::focus::Pricing;
use dovetail_bill::import::{Bill, Cost};
use dovetail_model::Money;
use dovetail_price::Purchase;

use super::super::account::{Account, Basis, Billed};

/// What became of the prices of nodes.
#[derive(Default)]
pub struct Replaced {
    /// Of nodes that have both: what was billed, and the list price of the same time.
    pub billed: Money,
    pub list: Money,
    /// Nodes that cost what was billed.
    pub nodes: BTreeSet<usize>,
    /// Credits and discounts that are in what nodes cost here, by node and place, and what they
    /// come to in the time that was billed.
    pub(crate) discounts: BTreeSet<(usize, usize)>,
    pub(crate) taken_off: Money,
    /// Nodes with more credits than costs: that is no price of anything.
    pub refused: BTreeSet<usize>,
    /// Nodes of which the file leaves out what some of their time cost.
    pub(crate) unsaid: BTreeSet<usize>,
    /// Nodes that cost nothing.
    pub free: BTreeSet<usize>,
    /// Nodes that were there for longer than the bill has them: for how long, and how much of that
    /// is not in it.
    pub(crate) in_part: BTreeMap<usize, [u64; 2]>,
    /// Nodes that the bill has for time of the period in which nobody saw them: for how long, and
    /// what it has for that.
    pub beyond: BTreeMap<usize, (u64, Money)>,
    /// Nodes that the bill has for another time than the moment that is looked at.
    pub(crate) elsewhen: BTreeSet<usize>,
    /// Nodes with several commitments in one charge period.
    pub several: BTreeSet<usize>,
    /// How many of those that cost what was billed are bought at a committed rate.
    pub committed: usize,
}

/// Puts what was billed in place of list prices.
pub fn replace(account: &mut Account, bill: &Bill) -> Replaced {
    let mut replaced = Replaced::default();
    let mut inside: BTreeMap<usize, (u64, Money)> = BTreeMap::new();
    for stretch in &mut account.stretches {
        for (node, of_node) in &mut stretch.bills {
            let of_time = OfTime::of(bill, account.basis, stretch.span, stretch.seen.get(node));
            let gap_ms = of_time.gap_ms(*node, of_node.billed_ms);
            let times = replaced.in_part.entry(*node).or_default();
            *times = [times[0] + of_node.billed_ms, times[1] + gap_ms];
            let Some(cost) = of_time.amount(Cost::Effective, *node) else {
                if bill.lacks_costs_of(*node) {
                    replaced.unsaid.insert(*node);
                }
                continue;
            };
            if cost == Money::ZERO {
                replaced.free.insert(*node);
            }
            if cost < Money::ZERO {
                replaced.refused.insert(*node);
                continue;
            }
            replaced.nodes.insert(*node);
            let (discounts, taken_off) = of_time.discounts(*node);
            replaced.discounts.extend(discounts.into_iter().map(|place| (*node, place)));
            replaced.taken_off += taken_off;
            if of_time.is_elsewhen(*node) {
                replaced.elsewhen.insert(*node);
            }
            // Time that the bill does not have costs what it costs where there is no bill.
            let list = of_node.price;
            let rest = list.map_or(Money::ZERO, |list| part_of(list, gap_ms, of_node.billed_ms));
            of_node.price = Some(cost + rest);
            if let Some(list) = list {
                replaced.billed += cost;
                replaced.list += list - rest;
            }
            let (counted_ms, counted) = inside.entry(*node).or_default();
            *counted_ms += of_time.billed_ms(*node);
            *counted += cost;
            let (billed, several) = of_time.said(*node, cost, rest, list);
            if several {
                replaced.several.insert(*node);
            }
            stretch.billed.insert(*node, billed);
        }
    }
    replaced.in_part.retain(|node, [_, gap_ms]| *gap_ms > 0 && bill.bounds(*node).is_some());
    if account.basis != Basis::RunRate {
        replaced.beyond = beyond(bill, account.span, &inside);
    }
    bought(account, bill, &mut replaced);
    replaced
}

/// What the bill has of nodes in a period beside what counts.
fn beyond(
    bill: &Bill,
    period: Span,
    inside: &BTreeMap<usize, (u64, Money)>,
) -> BTreeMap<usize, (u64, Money)> {
    let of_node = |(node, (counted_ms, counted)): (&usize, &(u64, Money))| {
        let all_ms = bill.billed_ms(*node, period.from_ms, period.to_ms);
        let all = bill.cost(*node, period.from_ms, period.to_ms)?;
        let more_ms = all_ms.saturating_sub(*counted_ms);
        (more_ms > 0).then_some((*node, (more_ms, all - *counted)))
    };
    inside.iter().filter_map(of_node).collect()
}

/// A bill for one stretch of time, as far as a node was seen in it.
struct OfTime<'b> {
    bill: &'b Bill,
    span: Span,
    basis: Basis,
}

impl OfTime<'_> {
    /// A node counts from when it was seen first to when it was seen last: what was billed before
    /// and after is nobody's who is known, and would be paid by whoever was seen.
    fn of<'b>(bill: &'b Bill, basis: Basis, stretch: Span, seen: Option<&Span>) -> OfTime<'b> {
        let seen = seen.filter(|_| basis != Basis::RunRate).copied().unwrap_or(stretch);
        let from_ms = seen.from_ms.max(stretch.from_ms);
        let span = Span { from_ms, to_ms: seen.to_ms.min(stretch.to_ms).max(from_ms) };
        OfTime { bill, span, basis }
    }

    /// For how much of its time a node is in the bill.
    fn billed_ms(&self, node: usize) -> u64 {
        self.bill.billed_ms(node, self.span.from_ms, self.span.to_ms)
    }

    /// A cost of a node in the stretch; of one moment on average of what it was billed for.
    fn amount(&self, cost: Cost, node: usize) -> Option<Money> {
        let Span { from_ms, to_ms } = self.span;
        match self.basis {
            Basis::RunRate => self.bill.rate(cost, node, to_ms - from_ms),
            Basis::Sampled { .. } | Basis::Ledger => self.bill.amount(cost, node, from_ms, to_ms),
        }
    }

    /// What is taken off the cost of a node in the stretch; of one moment all that is in its mean.
    fn discounts(&self, node: usize) -> (Vec<usize>, Money) {
        let Span { from_ms, to_ms } = self.in_bill();
        self.bill.discounts(node, from_ms, to_ms)
    }

    /// The time of the bill that the stretch is reckoned from: of one moment all of it.
    fn in_bill(&self) -> Span {
        match self.basis {
            Basis::RunRate => Span { from_ms: 0, to_ms: u64::MAX },
            Basis::Sampled { .. } | Basis::Ledger => self.span,
        }
    }

    /// For how much of the time for which a node was there the bill does not have it; of one moment
    /// it is a rate.
    fn gap_ms(&self, node: usize, present_ms: u64) -> u64 {
        match self.basis {
            Basis::RunRate => 0,
            Basis::Sampled { .. } | Basis::Ledger => {
                present_ms.saturating_sub(self.billed_ms(node))
            }
        }
    }

    /// Whether the bill has a node only before or only after the moment that is looked at.
    fn is_elsewhen(&self, node: usize) -> bool {
        let moment = self.span.from_ms;
        let misses = |(from_ms, to_ms)| to_ms < moment || from_ms > moment;
        self.basis == Basis::RunRate && self.bill.bounds(node).is_some_and(misses)
    }

    /// What the bill says beside the cost, with the price of the rest of the time, and whether
    /// there are several commitments.
    fn said(
        &self,
        node: usize,
        cost: Money,
        rest: Money,
        replaced: Option<Money>,
    ) -> (Billed, bool) {
        let Span { from_ms, to_ms } = self.in_bill();
        let amount = |cost| self.amount(cost, node).map(|amount| amount + rest);
        let named = self.bill.commitment_in(node, from_ms, to_ms);
        let billed = Billed {
            invoiced: amount(Cost::Billed).unwrap_or(cost + rest),
            list: amount(Cost::List),
            contracted: amount(Cost::Contracted),
            replaced,
            bought: self.bill.bought_in(node, from_ms, to_ms),
            commitment: named.map(|(commitment, _)| commitment.clone()),
        };
        (billed, named.is_some_and(|(_, many)| many > 1))
    }
}

/// A part of an amount, half up.
fn part_of(amount: Money, part_ms: u64, all_ms: u64) -> Money {
    let all = i128::from(all_ms.max(1));
    let micros = (i128::from(amount.usd_micros) * i128::from(part_ms) + all / 2).div_euclid(all);
    // A part of it, so it has no more digits.
    Money::micros(i64::try_from(micros).unwrap_or(amount.usd_micros))
}

/// The bill knows how a machine is paid; labels know which capacity it is.
fn bought(account: &mut Account, bill: &Bill, replaced: &mut Replaced) {
    for (place, node) in account.nodes.iter_mut().enumerate() {
        let Some(bought) = bill.bought(place) else { continue };
        node.place.purchase = match bought {
            Pricing::Standard => Purchase::OnDemand,
            Pricing::Dynamic => Purchase::Spot,
            Pricing::Committed => Purchase::Committed,
        };
        let is_committed = bought == Pricing::Committed && replaced.nodes.contains(&place);
        replaced.committed += usize::from(is_committed);
    }
}

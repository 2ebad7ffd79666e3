//! What a provider billed, in place of list prices.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};
use dovetail_bill::focus::Pricing;
use dovetail_bill::import::{Bill, Cost, Machines, Unmatched, Unsaid, read};
use dovetail_ledger::device_time::Span;
use dovetail_model::Money;
use dovetail_price::{Exchange, ExchangeRate, Purchase};
use serde::Serialize;

use super::account::{Account, Basis, Billed};
use crate::exit::BadInput;
use crate::input::node_prices::converted_in_words;
use crate::output::plain::plain;
use crate::output::table::counted;

/// Resources that are listed by name.
const MOST_UNMATCHED: usize = 20;

/// What a bill came to.
#[derive(Clone, Debug, Serialize)]
pub(super) struct BillOut {
    pub(super) file: String,
    pub(super) lines: u64,
    /// Lines that split others over pods.
    pub(super) split_lines: u64,
    /// Taxes, credits, purchases, fees.
    pub(super) other_lines: u64,
    /// Machine time of nodes of which the file does not say what it cost.
    pub(super) lines_without_cost: u64,
    /// What it was converted from; null where it is in USD.
    pub(super) currency: Option<String>,
    /// The rate at which that was done, as text.
    pub(super) usd_per_unit: Option<String>,
    pub(super) nodes: usize,
    pub(super) billed_nodes: usize,
    /// Those of them that are bought at a committed rate, as the bill says.
    pub(super) committed_nodes: usize,
    /// Of billed nodes with a list price.
    pub(super) billed_usd_micros: i64,
    pub(super) list_usd_micros: i64,
    /// Part of the list price that was not billed; null without list prices.
    pub(super) discount_share: Option<f64>,
    pub(super) unmatched_resources: usize,
    pub(super) unmatched_usd_micros: i64,
    pub(super) unmatched: Vec<UnmatchedOut>,
    /// Nodes that were there for longer than the bill has them, and how long that is of all of them.
    pub(super) nodes_in_part: usize,
    pub(super) hours_not_billed: f64,
    pub(super) in_part: Vec<InPartOut>,
}

/// A node that was there for longer than the bill has it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct InPartOut {
    pub(super) node: String,
    /// For how long it was there.
    pub(super) hours: f64,
    /// How much of that is not in the bill, and counts at list prices.
    pub(super) hours_not_billed: f64,
}

/// Machine time of a machine that is no node of the cluster.
#[derive(Clone, Debug, Serialize)]
pub(super) struct UnmatchedOut {
    pub(super) resource: String,
    pub(super) lines: u64,
    /// For how long it was billed.
    pub(super) hours: f64,
    pub(super) usd_micros: i64,
}

/// Reads a bill and puts it in place of the list prices of the nodes that are in it.
///
/// # Errors
/// A bill that cannot be read, or in a currency without a rate.
pub(super) fn apply(account: &mut Account, path: &Path, exchange: &Exchange) -> Result<BillOut> {
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("{name}: cannot open it"))?;
    let ids = account.nodes.iter().enumerate();
    let machines = Machines::new(ids.map(|(place, node)| (node.provider_id.as_str(), place)));
    let bill = read(file, &name, &machines).map_err(|error| BadInput(plain(&error.to_string())))?;
    let (bill, rate) = in_usd(bill, &name, exchange)?;
    let replaced = replace(account, &bill);
    account.notes.extend(rate.map(|rate| format!("{name}: {}", converted_in_words(rate))));
    account.notes.extend(told(account, &bill, &name, &replaced));
    let Replaced { billed, list, nodes, committed, in_part, .. } = replaced;
    let billed_nodes = nodes.len();
    let unmatched = bill.unmatched();
    Ok(BillOut {
        file: name,
        lines: bill.lines,
        split_lines: bill.split_lines,
        other_lines: bill.other_lines,
        lines_without_cost: bill.unsaid.count,
        currency: rate.map(|rate| rate.currency.clone()),
        usd_per_unit: rate.map(ExchangeRate::usd),
        committed_nodes: committed,
        nodes: account.nodes.len(),
        billed_nodes,
        billed_usd_micros: billed.usd_micros,
        list_usd_micros: list.usd_micros,
        discount_share: (list > Money::ZERO)
            .then(|| 1.0 - billed.usd_micros as f64 / list.usd_micros as f64),
        unmatched_resources: unmatched.len(),
        unmatched_usd_micros: unmatched.iter().map(|unmatched| unmatched.cost.usd_micros).sum(),
        nodes_in_part: in_part.len(),
        hours_not_billed: hours(in_part.values().map(|[_, gap_ms]| gap_ms).sum()),
        in_part: in_part_out(account, &in_part),
        unmatched: unmatched
            .iter()
            .take(MOST_UNMATCHED)
            .map(|unmatched| UnmatchedOut {
                resource: plain(unmatched.resource),
                lines: unmatched.lines,
                hours: hours(unmatched.billed_ms),
                usd_micros: unmatched.cost.usd_micros,
            })
            .collect(),
    })
}

fn hours(ms: u64) -> f64 {
    ms as f64 / 3.6e6
}

/// Those with most hours that are not billed first.
fn in_part_out(account: &Account, in_part: &BTreeMap<usize, [u64; 2]>) -> Vec<InPartOut> {
    let mut nodes: Vec<(&usize, &[u64; 2])> = in_part.iter().collect();
    nodes.sort_by_key(|(_, [_, gap_ms])| std::cmp::Reverse(*gap_ms));
    let out = nodes.into_iter().take(MOST_UNMATCHED).map(|(node, [all_ms, gap_ms])| InPartOut {
        node: plain(&account.nodes[*node].name),
        hours: hours(*all_ms),
        hours_not_billed: hours(*gap_ms),
    });
    out.collect()
}

/// The bill in USD, and the rate at which it became that.
fn in_usd<'e>(
    bill: Bill,
    name: &str,
    exchange: &'e Exchange,
) -> Result<(Bill, Option<&'e ExchangeRate>)> {
    let Some(currency) = bill.currency.clone().filter(|currency| currency != "USD") else {
        return Ok((bill, None));
    };
    let refused =
        |problem: String| BadInput(plain(&format!("{name}: it is in {currency}: {problem}")));
    let rate = exchange.rate(&currency).map_err(|problem| {
        refused(format!("{problem}; dovetail.toml keeps rates under [prices.exchange]"))
    })?;
    Ok((bill.in_usd(rate.usd_pico).map_err(refused)?, Some(rate)))
}

/// What became of the prices of nodes.
#[derive(Default)]
struct Replaced {
    /// Of nodes that have both: what was billed, and the list price of the same time.
    billed: Money,
    list: Money,
    /// Nodes that cost what was billed.
    nodes: BTreeSet<usize>,
    /// Nodes with more credits than costs: that is no price of anything.
    refused: BTreeSet<usize>,
    /// Nodes of which the file leaves out what some of their time cost.
    unsaid: BTreeSet<usize>,
    /// Nodes that cost nothing.
    free: BTreeSet<usize>,
    /// Nodes that were there for longer than the bill has them: for how long, and how much of that is not in it.
    in_part: BTreeMap<usize, [u64; 2]>,
    /// Nodes that the bill has for another time than the moment that is looked at.
    elsewhen: BTreeSet<usize>,
    /// Nodes with several commitments in one charge period.
    several: BTreeSet<usize>,
    /// How many of those that cost what was billed are bought at a committed rate.
    committed: usize,
}

fn replace(account: &mut Account, bill: &Bill) -> Replaced {
    let mut replaced = Replaced::default();
    for stretch in &mut account.stretches {
        let of_time = OfTime { bill, span: stretch.span, basis: account.basis };
        for (node, of_node) in &mut stretch.bills {
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
            let (billed, several) = of_time.said(*node, cost, rest, list);
            if several {
                replaced.several.insert(*node);
            }
            stretch.billed.insert(*node, billed);
        }
    }
    replaced.in_part.retain(|node, [_, gap_ms]| *gap_ms > 0 && bill.bounds(*node).is_some());
    bought(account, bill, &mut replaced);
    replaced
}

/// A bill for one stretch of time.
struct OfTime<'b> {
    bill: &'b Bill,
    span: Span,
    basis: Basis,
}

impl OfTime<'_> {
    /// A cost of a node in the stretch; of one moment on average of what it was billed for.
    fn amount(&self, cost: Cost, node: usize) -> Option<Money> {
        let Span { from_ms, to_ms } = self.span;
        match self.basis {
            Basis::RunRate => self.bill.rate(cost, node, to_ms - from_ms),
            Basis::Sampled { .. } | Basis::Ledger => self.bill.amount(cost, node, from_ms, to_ms),
        }
    }

    /// For how much of the time for which a node was there the bill does not have it; of one moment it is a rate.
    fn gap_ms(&self, node: usize, present_ms: u64) -> u64 {
        let Span { from_ms, to_ms } = self.span;
        match self.basis {
            Basis::RunRate => 0,
            Basis::Sampled { .. } | Basis::Ledger => {
                present_ms.saturating_sub(self.bill.billed_ms(node, from_ms, to_ms))
            }
        }
    }

    /// Whether the bill has a node only before or only after the moment that is looked at.
    fn is_elsewhen(&self, node: usize) -> bool {
        let moment = self.span.from_ms;
        let misses = |(from_ms, to_ms)| to_ms < moment || from_ms > moment;
        self.basis == Basis::RunRate && self.bill.bounds(node).is_some_and(misses)
    }

    /// What the bill says beside the cost, with the price of the rest of the time, and whether there are several
    /// commitments.
    fn said(
        &self,
        node: usize,
        cost: Money,
        rest: Money,
        replaced: Option<Money>,
    ) -> (Billed, bool) {
        let Span { from_ms, to_ms } = match self.basis {
            Basis::RunRate => Span { from_ms: 0, to_ms: u64::MAX },
            Basis::Sampled { .. } | Basis::Ledger => self.span,
        };
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

fn told(account: &Account, bill: &Bill, name: &str, replaced: &Replaced) -> Vec<String> {
    let Replaced { refused, unsaid, free, .. } = replaced;
    let mut notes = Vec::new();
    if bill.currency.is_none() && bill.lines > 0 {
        notes.push(format!("{name} does not say its currency: taken as USD"));
    }
    notes.extend(unsaid_in_words(account, bill, name, unsaid));
    if let Some(first) = free.first() {
        notes.push(format!(
            "{name}: {} at $0.00 by it, {} first: check that it has amortised costs",
            counted(free.len(), "node"),
            plain(&account.nodes[*first].name)
        ));
    }
    let priced = account.nodes.iter().enumerate().filter(|(_, node)| node.gpus > 0);
    let missing = priced.filter(|(place, _)| !bill.of_machines.contains_key(place)).count();
    if missing > 0 {
        notes.push(format!(
            "{missing} nodes with GPUs are not in {name}: they count at list prices"
        ));
    }
    if let Some(first) = refused.first() {
        notes.push(format!(
            "{name}: credits of {} are more than what was billed, which is no price of it, {} first: there it \
             counts at list prices",
            counted(refused.len(), "node"),
            plain(&account.nodes[*first].name)
        ));
    }
    notes.extend(times_in_words(account, bill, name, replaced));
    notes.extend(unmatched_in_words(bill, name));
    notes
}

/// Machine time of machines that are no nodes here.
fn unmatched_in_words(bill: &Bill, name: &str) -> Option<String> {
    let unmatched = bill.unmatched();
    let Unmatched { resource, .. } = unmatched.first()?;
    let cost: Money = unmatched.iter().map(|unmatched| unmatched.cost).sum();
    let billed_ms: u64 = unmatched.iter().map(|unmatched| unmatched.billed_ms).sum();
    let unsaid = match bill.unsaid.elsewhere {
        0 => String::new(),
        lines => format!(" beside {} without a cost", counted(lines as usize, "line")),
    };
    Some(format!(
        "{name}: {} outside this cluster, {cost} in all{unsaid}, {:.1} hours, {} first; --output json lists them",
        counted(unmatched.len(), "machine"),
        hours(billed_ms),
        plain(resource)
    ))
}

/// Nodes of which the bill has another time, or not all of it, or several commitments.
fn times_in_words(account: &Account, bill: &Bill, name: &str, replaced: &Replaced) -> Vec<String> {
    let Replaced { elsewhen, in_part, several, .. } = replaced;
    let named = |node: usize| plain(&account.nodes[node].name);
    let mut notes = Vec::new();
    if let Some((first, (from_ms, to_ms))) =
        elsewhen.first().and_then(|node| Some((*node, bill.bounds(*node)?)))
    {
        notes.push(format!(
            "{name}: {} billed for another time than this moment, {} first, from {} to {}: their mean rate of that \
             time stands in for what is not billed yet",
            counted(elsewhen.len(), "node"),
            named(first),
            time(from_ms),
            time(to_ms)
        ));
    }
    if let Some(first) = in_part_out(account, in_part).first() {
        let [all_ms, gap_ms] = in_part.values().fold([0, 0], |sum: [u64; 2], of| {
            [sum[0].saturating_add(of[0]), sum[1].saturating_add(of[1])]
        });
        notes.push(format!(
            "{name}: {} billed for a part of their time: {:.1} of {:.1} node-hours are not in it and count at list \
             prices, as far as there are any, {} first ({:.1} of {:.1}); --output json lists them",
            counted(in_part.len(), "node"),
            hours(gap_ms),
            hours(all_ms),
            first.node,
            first.hours_not_billed,
            first.hours
        ));
    }
    if let Some(first) = several.first() {
        notes.push(format!(
            "{name}: {} with several commitments in one charge period, {} first: in FOCUS the one of most of its time \
             is named",
            counted(several.len(), "node"),
            named(*first)
        ));
    }
    notes
}

fn time(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| "an unknown time".to_owned(), |time| format!("{time:.0}"))
}

/// Lines that say no cost, what would, and which nodes are not billed for it.
fn unsaid_in_words(
    account: &Account,
    bill: &Bill,
    name: &str,
    nodes: &BTreeSet<usize>,
) -> Option<String> {
    let Unsaid { count, lines, kind, .. } = &bill.unsaid;
    let first = plain(&account.nodes[*nodes.first()?].name);
    let more = if *count > lines.len() as u64 { ", …" } else { "" };
    let places: Vec<String> = lines.iter().map(u64::to_string).collect();
    let kind = if kind.is_empty() { String::new() } else { format!(", {} first", plain(kind)) };
    Some(format!(
        "{name}: {} ({}{more}{kind}) without a cost: a commitment pays for them, and the file does not say what of it; \
         export it with amortised costs (reservation/EffectiveCost and savingsPlan/SavingsPlanEffectiveCost, in FOCUS \
         EffectiveCost). {}, {first} first, at list prices instead",
        counted(usize::try_from(*count).unwrap_or(usize::MAX), "line"),
        places.join(", "),
        counted(nodes.len(), "node")
    ))
}

//! What a provider billed, in place of list prices.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};
use dovetail_bill::focus::Pricing;
use dovetail_bill::import::{Bill, Machines, Unsaid, read};
use dovetail_model::Money;
use dovetail_price::{Exchange, ExchangeRate, Purchase};
use serde::Serialize;

use super::account::{Account, Basis};
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
}

/// Machine time of a machine that is no node of the cluster.
#[derive(Clone, Debug, Serialize)]
pub(super) struct UnmatchedOut {
    pub(super) resource: String,
    pub(super) lines: u64,
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
    let Replaced { billed, list, nodes, committed, .. } = replaced;
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
        unmatched_usd_micros: unmatched.iter().map(|(_, _, cost)| cost.usd_micros).sum(),
        unmatched: unmatched
            .iter()
            .take(MOST_UNMATCHED)
            .map(|(resource, lines, cost)| UnmatchedOut {
                resource: plain(resource),
                lines: *lines,
                usd_micros: cost.usd_micros,
            })
            .collect(),
    })
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
    /// Of nodes that have both: what was billed, and the list price.
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
    /// How many of those that cost what was billed are bought at a committed rate.
    committed: usize,
}

fn replace(account: &mut Account, bill: &Bill) -> Replaced {
    let mut replaced = Replaced::default();
    for stretch in &mut account.stretches {
        let span = stretch.span;
        for (node, of_node) in &mut stretch.bills {
            let cost = match account.basis {
                Basis::RunRate => bill.run_rate(*node, span.to_ms - span.from_ms),
                Basis::Sampled { .. } | Basis::Ledger => bill.cost(*node, span.from_ms, span.to_ms),
            };
            let Some(cost) = cost else {
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
            if let Some(price) = of_node.price.replace(cost) {
                replaced.billed += cost;
                replaced.list += price;
                stretch.lists.insert(*node, price);
            }
        }
    }
    for (place, node) in account.nodes.iter_mut().enumerate() {
        // The bill knows how a machine is paid; labels know which capacity it is.
        let Some(bought) = bill.bought(place) else { continue };
        node.place.purchase = match bought {
            Pricing::Standard => Purchase::OnDemand,
            Pricing::Dynamic => Purchase::Spot,
            Pricing::Committed => Purchase::Committed,
        };
        let is_committed = bought == Pricing::Committed && replaced.nodes.contains(&place);
        replaced.committed += usize::from(is_committed);
    }
    replaced
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
    let unmatched = bill.unmatched();
    if let Some((first, _, _)) = unmatched.first() {
        let cost: Money = unmatched.iter().map(|(_, _, cost)| *cost).sum();
        let unsaid = match bill.unsaid.elsewhere {
            0 => String::new(),
            lines => format!(" beside {} without a cost", counted(lines as usize, "line")),
        };
        notes.push(format!(
            "{name}: {} outside this cluster, {cost} in all{unsaid}, {} first; --output json lists them",
            counted(unmatched.len(), "machine"),
            plain(first)
        ));
    }
    notes
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

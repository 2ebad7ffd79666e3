//! What a provider billed, in place of list prices.

pub mod notes;
pub mod replaced;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use dovetail_bill::import::{Bill, BilledMachines, read};
use dovetail_console::plain::plain;
use dovetail_model::Money;
use dovetail_price::{Exchange, ExchangeRate};
use dovetail_settings::errors::BadInput;
use dovetail_sources::node_prices::converted_in_words;
use serde::Serialize;

use super::account::Account;
use notes::told;
use replaced::{Replaced, replace};

/// Resources that are listed by name.
const MOST_UNMATCHED: usize = 20;

/// What a bill came to.
#[derive(Clone, Debug, Serialize)]
pub struct BillOut {
    pub file: String,
    pub lines: u64,
    /// Lines that split others over pods.
    pub(crate) split_lines: u64,
    /// Taxes, credits, purchases, fees.
    pub(crate) other_lines: u64,
    /// Machine time of nodes of which the file does not say what it cost.
    pub(crate) lines_without_cost: u64,
    /// What it was converted from; null where it is in USD.
    pub currency: Option<String>,
    /// The rate at which that was done, as text.
    pub(crate) usd_per_unit: Option<String>,
    pub nodes: usize,
    pub(crate) billed_nodes: usize,
    /// Those of them that are bought at a committed rate, as the bill says.
    pub committed_nodes: usize,
    /// Of billed nodes with a list price.
    pub(crate) billed_usd_micros: i64,
    pub(crate) list_usd_micros: i64,
    /// Part of the list price that was not billed; null without list prices.
    pub(crate) discount_share: Option<f64>,
    pub(crate) unmatched_resources: usize,
    pub(crate) unmatched_usd_micros: i64,
    pub(crate) unmatched: Vec<UnmatchedOut>,
    /// Nodes that were there for longer than the bill has them, and how long that is of all of
    /// them.
    pub(crate) nodes_in_part: usize,
    pub(crate) hours_not_billed: f64,
    pub(crate) in_part: Vec<InPartOut>,
    /// What the bill has of nodes for time of the period in which nobody saw them, which is in no
    /// amount.
    pub(crate) hours_not_seen: f64,
    pub(crate) not_seen_usd_micros: i64,
}

/// A node that was there for longer than the bill has it.
#[derive(Clone, Debug, Serialize)]
pub struct InPartOut {
    pub node: String,
    /// For how long it was there.
    pub hours: f64,
    /// How much of that is not in the bill, and counts at list prices.
    pub(crate) hours_not_billed: f64,
}

/// Machine time of a machine that is no node of the cluster.
#[derive(Clone, Debug, Serialize)]
pub struct UnmatchedOut {
    pub resource: String,
    pub lines: u64,
    /// For how long it was billed.
    pub hours: f64,
    pub usd_micros: i64,
}

/// Reads a bill and puts it in place of the list prices of the nodes that are in it.
///
/// # Errors
/// A bill that cannot be read, or in a currency without a rate.
pub fn apply(account: &mut Account, path: &Path, exchange: &Exchange) -> Result<BillOut> {
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("{name}: cannot open the file"))?;
    apply_lines(account, file, &name, exchange)
}

/// The same of lines; `name` is the file in messages.
fn apply_lines(
    account: &mut Account,
    input: impl Read,
    name: &str,
    exchange: &Exchange,
) -> Result<BillOut> {
    let ids = account.nodes.iter().enumerate();
    let machines = BilledMachines::new(ids.map(|(place, node)| (node.id_of_provider(), place)));
    let bill = read(input, name, &machines).map_err(|error| BadInput(plain(&error.to_string())))?;
    let (bill, rate) = in_usd(bill, name, exchange)?;
    if let Some(problem) = bill.is_too_much() {
        return Err(BadInput(plain(&format!("{name}: {problem}"))).into());
    }
    let replaced = replace(account, &bill);
    account.notes.extend(rate.map(|rate| format!("{name}: {}", converted_in_words(rate))));
    account.notes.extend(told(account, &bill, name, &replaced));
    let Replaced { billed, list, nodes, committed, in_part, beyond, .. } = replaced;
    let billed_nodes = nodes.len();
    let unmatched = bill.unmatched();
    Ok(BillOut {
        file: name.to_owned(),
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
        hours_not_seen: hours(beyond.values().map(|(ms, _)| ms).sum()),
        not_seen_usd_micros: beyond.values().map(|(_, cost)| cost.usd_micros).sum(),
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
        |problem: String| BadInput(plain(&format!("{name}: the bill is in {currency}: {problem}")));
    let rate = exchange.rate(&currency).map_err(|problem| {
        refused(format!("{problem}; or set the rate under [prices.exchange] in dovetail.toml"))
    })?;
    Ok((bill.in_usd(rate.usd_pico).map_err(refused)?, Some(rate)))
}

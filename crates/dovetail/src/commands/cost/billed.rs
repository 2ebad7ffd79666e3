//! What a provider billed, in place of list prices.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};
use dovetail_bill::import::{Bill, Machines, read};
use dovetail_model::Money;
use serde::Serialize;

use super::account::{Account, Basis};
use crate::exit::BadInput;
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
    pub(super) nodes: usize,
    pub(super) billed_nodes: usize,
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
/// A bill that cannot be read, or in another currency than prices.
pub(super) fn apply(account: &mut Account, path: &Path) -> Result<BillOut> {
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("{name}: cannot open it"))?;
    let ids = account.nodes.iter().enumerate();
    let machines = Machines::new(ids.map(|(place, node)| (node.provider_id.as_str(), place)));
    let bill = read(file, &name, &machines).map_err(|error| BadInput(plain(&error.to_string())))?;
    if let Some(currency) = bill.currency.as_deref().filter(|currency| *currency != "USD") {
        let text =
            format!("{name}: it is in {}, prices are in USD: export it in USD", plain(currency));
        return Err(BadInput(text).into());
    }
    let Replaced { billed, list, nodes, refused } = replace(account, &bill);
    let billed_nodes = nodes.len();
    account.notes.extend(told(account, &bill, &name, &refused));
    let unmatched = bill.unmatched();
    Ok(BillOut {
        file: name,
        lines: bill.lines,
        split_lines: bill.split_lines,
        other_lines: bill.other_lines,
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
            let Some(cost) = cost else { continue };
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
    replaced
}

fn told(account: &Account, bill: &Bill, name: &str, refused: &BTreeSet<usize>) -> Vec<String> {
    let mut notes = Vec::new();
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
        notes.push(format!(
            "{name}: {} outside this cluster, {cost} in all, {} first; --output json lists them",
            counted(unmatched.len(), "machine"),
            plain(first)
        ));
    }
    notes
}

//! What is to be said of a bill beside its amounts: nothing of it is left out in silence.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use dovetail_bill::import::{Bill, Unmatched, Unsaid};
use dovetail_console::plain::plain;
use dovetail_console::table::counted;
use dovetail_model::Money;
use dovetail_units::amount::tenths;
use dovetail_units::time::time;

use super::super::account::Account;
use super::replaced::Replaced;
use super::{hours, in_part_out};

/// All of it.
pub fn told(account: &Account, bill: &Bill, name: &str, replaced: &Replaced) -> Vec<String> {
    let Replaced { refused, unsaid, free, discounts, taken_off, .. } = replaced;
    let mut notes = Vec::new();
    if bill.currency.is_none() && bill.lines > 0 {
        notes.push(format!("{name} does not state its currency; dovetail assumes USD"));
    }
    if !discounts.is_empty() {
        notes.push(match discounts.len() {
            1 => {
                format!("{name}: the cost of a node includes a credit or discount of {taken_off}")
            }
            several => format!(
                "{name}: the costs of nodes include {several} credits or discounts, {taken_off} in \
                 total"
            ),
        });
    }
    if let (nodes @ 1.., off) = bill.discounts_of_no_time() {
        notes.push(format!(
            "{name}: credits or discounts of {}, {off} in total, are not included: the bill has no usage time for \
             them",
            counted(nodes, "node")
        ));
    }
    notes.extend(unsaid_in_words(account, bill, name, unsaid));
    if let Some(first) = free.first() {
        notes.push(format!(
            "{name}: {} billed at $0.00 (first: {}): check that the bill has amortized costs",
            counted(free.len(), "node"),
            plain(&account.nodes[*first].name)
        ));
    }
    let priced = account.nodes.iter().enumerate().filter(|(_, node)| node.gpus > 0);
    let missing: BTreeSet<usize> =
        priced.map(|(place, _)| place).filter(|at| !bill.of_machines.contains_key(at)).collect();
    if !missing.is_empty() {
        let at = at_list_prices(account, &missing);
        notes.push(format!(
            "{} with GPUs missing from {name}: {at}",
            counted(missing.len(), "node")
        ));
    }
    if let Some(first) = refused.first() {
        notes.push(format!(
            "{name}: credits of {} (first: {}) exceed the billed amount, so the bill has no price; \
             these nodes count {} instead",
            counted(refused.len(), "node"),
            plain(&account.nodes[*first].name),
            at_list_prices(account, refused)
        ));
    }
    notes.extend(times_in_words(account, bill, name, replaced));
    notes.extend(beyond_in_words(account, name, replaced));
    notes.extend(unmatched_in_words(bill, name));
    notes
}

/// What the bill has of nodes in time in which nobody saw them.
fn beyond_in_words(account: &Account, name: &str, replaced: &Replaced) -> Option<String> {
    let (first, _) = replaced.beyond.iter().max_by_key(|(node, (ms, _))| (*ms, Reverse(**node)))?;
    let beyond = hours(replaced.beyond.values().map(|(ms, _)| ms).sum());
    let cost: Money = replaced.beyond.values().map(|(_, cost)| *cost).sum();
    // Clouds bill from the order of a machine on, and whole hours: less than a sixth of an hour of
    // each is no gap.
    let is_told = beyond * 6.0 >= replaced.beyond.len() as f64;
    is_told.then(|| {
        format!(
            "{name}: {} node-hours of {}, {cost}, are in parts of the period without data for \
             these nodes (first: {}) and are not included in any amount",
            tenths(beyond),
            counted(replaced.beyond.len(), "node"),
            plain(&account.nodes[*first].name)
        )
    })
}

/// Machine time of machines that are no nodes here.
fn unmatched_in_words(bill: &Bill, name: &str) -> Option<String> {
    let unmatched = bill.unmatched();
    let Unmatched { resource, .. } = unmatched.first()?;
    let cost: Money = unmatched.iter().map(|unmatched| unmatched.cost).sum();
    let billed_ms: u64 = unmatched.iter().map(|unmatched| unmatched.billed_ms).sum();
    let unsaid = match bill.unsaid.elsewhere {
        0 => String::new(),
        lines => format!(" and {} without a cost", counted(lines as usize, "line")),
    };
    Some(format!(
        "{name}: {} outside this cluster, {cost} in total{unsaid}, {} hours (first: {}); --output json lists them",
        counted(unmatched.len(), "machine"),
        tenths(hours(billed_ms)),
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
            "{name}: {} billed for {} time than the snapshot (first: {}, from {} to {}): dovetail uses \
             the mean rate of the billed time",
            counted(elsewhen.len(), "node"),
            if from_ms > account.span.from_ms { "a later" } else { "a different" },
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
            "{name}: {} billed for a part of the period: {} of {} node-hours are not in the bill \
             and count at list prices, if known (first: {}, {} of {}); --output json lists them",
            counted(in_part.len(), "node"),
            tenths(hours(gap_ms)),
            tenths(hours(all_ms)),
            first.node,
            tenths(first.hours_not_billed),
            tenths(first.hours)
        ));
    }
    if let Some(first) = several.first() {
        notes.push(format!(
            "{name}: {} with several commitments in one charge period (first: {}): FOCUS rows name the commitment \
             that covers the most time",
            counted(several.len(), "node"),
            named(*first)
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
    let kind =
        if kind.is_empty() { String::new() } else { format!("; first kind: {}", plain(kind)) };
    Some(format!(
        "{name}: {} ({}{more}{kind}) without a cost: a commitment pays for them, and the file does not contain their \
         amortized cost; export it with amortized costs (reservation/EffectiveCost and \
         savingsPlan/SavingsPlanEffectiveCost, in FOCUS EffectiveCost). {} (first: {first}): {} instead",
        counted(usize::try_from(*count).unwrap_or(usize::MAX), "line"),
        places.join(", "),
        counted(nodes.len(), "node"),
        at_list_prices(account, nodes)
    ))
}

/// What nodes count at that a bill does not price.
fn at_list_prices<'n>(account: &Account, nodes: impl IntoIterator<Item = &'n usize>) -> String {
    let bills = || account.stretches.iter().flat_map(|stretch| &stretch.bills);
    let known: BTreeSet<usize> =
        bills().filter(|(_, bill)| bill.price.is_some()).map(|(place, _)| *place).collect();
    let (mut priced, mut without) = (0, 0);
    for place in nodes {
        let count = if known.contains(place) { &mut priced } else { &mut without };
        *count += 1;
    }
    match (priced, without) {
        (_, 0) => "at list prices".to_owned(),
        (0, _) => "without a price because no list price is known".to_owned(),
        (_, without) => format!("at list prices, except {without} without a list price"),
    }
}

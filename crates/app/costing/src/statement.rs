//! Charges split by a method: rows, their range over the methods, and the headline.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::{Context, Result};
use dovetail_account::cost::{Charge, CostSum, Paid, charges};
use dovetail_account::split::{Headline, SplitMethod, Unused, headline};
use dovetail_model::Money;

use super::account::Account;
use super::dimension::Dimension;
use super::top::Top;

/// Rows by key.
pub type Sums = BTreeMap<Vec<String>, CostSum>;

/// What an account comes to.
#[derive(Debug)]
pub struct Statement {
    pub method: SplitMethod,
    pub unused: Unused,
    pub by: Vec<Dimension>,
    /// Everything, whoever pays for what is unused.
    pub total: CostSum,
    /// Dearest first; all that are not shown are the last one.
    pub rows: Vec<StatementRow>,
    /// The waste under the method and its range over all that can be used here.
    pub waste: Option<Headline>,
}

/// Charges with one key.
#[derive(Debug)]
pub struct StatementRow {
    /// In the order of the dimensions.
    pub key: Vec<String>,
    pub sum: CostSum,
    /// The least and the most that a method makes of it.
    pub range: Option<(Money, Money)>,
}

/// Charges of one key and cause, as a ledger in memory and one on disk add them up.
#[derive(Debug)]
pub(crate) struct StatementLine {
    pub(crate) key: Vec<String>,
    pub(crate) paid: Paid,
    /// In the order of [`SplitMethod::ALL`]; `None` where a method makes no such charge.
    pub(crate) by_method: [Option<ChargedAmount>; SplitMethod::ALL.len()],
}

/// What they come to under a method.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChargedAmount {
    pub(crate) charges: u64,
    pub(crate) gpu_milli_ms: i128,
    /// All of them have a price, or none has.
    pub(crate) cost: Option<Money>,
}

/// Lines with the methods that can be used for all of them.
#[derive(Debug)]
pub(crate) struct StatementLines {
    pub(crate) lines: Vec<StatementLine>,
    pub(crate) methods: Vec<SplitMethod>,
}

impl Statement {
    /// Splits an account, of which only the dearest rows may be shown.
    ///
    /// # Errors
    /// A method that cannot split a node's price.
    pub fn of_account(
        account: &Account,
        (method, unused): (SplitMethod, Unused),
        by: &[Dimension],
        top: Option<Top>,
    ) -> Result<Self> {
        let lines = StatementLines::of(account, (method, unused), by)?;
        // Waste is what it is, whoever is made to pay for it.
        let shown = match unused {
            Unused::Shown => None,
            Unused::Distributed => Some(StatementLines::of(account, (method, Unused::Shown), &[])?),
        };
        let all = shown.as_ref().unwrap_or(&lines);
        Ok(Self::of((&lines, all), (method, unused), by, top))
    }

    /// Rows under one method with their range over several; `all` has what is in them altogether.
    pub(crate) fn of(
        (lines, all): (&StatementLines, &StatementLines),
        (method, unused): (SplitMethod, Unused),
        by: &[Dimension],
        top: Option<Top>,
    ) -> Self {
        // The method that is asked for says which rows are dearest.
        let shown = top.map(|top| top.of(&lines.sums(method)));
        let mut rows = Sums::new();
        let mut ranges: BTreeMap<Vec<String>, (Money, Money)> = BTreeMap::new();
        let (mut total, mut wastes) = (CostSum::default(), Vec::new());
        for other in &lines.methods {
            let (mut found, all) = (lines.sums(*other), all.total(*other));
            if let Some(shown) = &shown {
                found = shown.with_others_as_one(found);
            }
            for (key, sum) in &found {
                let cost = sum.cost().unwrap_or_default();
                let range = ranges.entry(key.clone()).or_insert((cost, cost));
                *range = (range.0.min(cost), range.1.max(cost));
            }
            wastes.extend(all.cost().map(|_| (*other, all.waste)));
            if *other == method {
                (rows, total) = (found, all);
            }
        }
        let row = |(key, sum): (Vec<String>, CostSum)| {
            let range = ranges.get(&key).copied().filter(|_| sum.cost().is_some());
            StatementRow { range, key, sum }
        };
        let mut rows: Vec<StatementRow> = rows.into_iter().map(row).collect();
        rows.sort_by_key(|row| {
            (row.key.is_empty(), Reverse((row.sum.cost(), row.sum.gpu_milli_ms)))
        });
        if let (Some(shown), Some(row)) = (&shown, rows.last_mut().filter(|row| row.key.is_empty()))
        {
            row.key = shown.others(by.len());
        }
        let waste = headline(method, &wastes);
        Self { method, unused, by: by.to_vec(), total, rows, waste }
    }
}

impl StatementLines {
    /// What an account comes to by key, under every method that can be used for it.
    fn of(
        account: &Account,
        (chosen, unused): (SplitMethod, Unused),
        by: &[Dimension],
    ) -> Result<Self> {
        let methods = methods(account, chosen);
        let mut lines: BTreeMap<(Vec<String>, Paid, bool), StatementLine> = BTreeMap::new();
        for method in &methods {
            for (node, charge) in all_charges(account, *method, unused)? {
                let names = account.names(node, &charge);
                let key: Vec<String> = by.iter().map(|dimension| dimension.key(&names)).collect();
                let line = lines.entry((key, charge.paid, charge.cost.is_some()));
                let line = line.or_insert_with_key(|(key, paid, _)| StatementLine {
                    key: key.clone(),
                    paid: *paid,
                    by_method: Default::default(),
                });
                let amount = line.by_method[place(*method)].get_or_insert_default();
                amount.charges += 1;
                amount.gpu_milli_ms += charge.gpu_milli_ms;
                if let Some(cost) = charge.cost {
                    *amount.cost.get_or_insert_default() += cost;
                }
            }
        }
        Ok(Self { lines: lines.into_values().collect(), methods })
    }

    fn sums(&self, method: SplitMethod) -> Sums {
        let mut sums = Sums::new();
        for (line, amount) in self.under(method) {
            let ChargedAmount { charges, gpu_milli_ms, cost } = *amount;
            let sum = sums.entry(line.key.clone()).or_default();
            sum.add_rolled_up(line.paid, gpu_milli_ms, cost, charges);
        }
        sums
    }

    fn total(&self, method: SplitMethod) -> CostSum {
        let mut total = CostSum::default();
        for (line, amount) in self.under(method) {
            total.add_rolled_up(line.paid, amount.gpu_milli_ms, amount.cost, amount.charges);
        }
        total
    }

    fn under(&self, method: SplitMethod) -> impl Iterator<Item = (&StatementLine, &ChargedAmount)> {
        let place = place(method);
        self.lines.iter().filter_map(move |line| Some((line, line.by_method[place].as_ref()?)))
    }
}

/// Place of a method in lists of all.
fn place(method: SplitMethod) -> usize {
    SplitMethod::ALL.iter().position(|known| *known == method).unwrap_or(0)
}

/// The methods that can be used for every node.
pub(crate) fn methods(account: &Account, chosen: SplitMethod) -> Vec<SplitMethod> {
    let mut bills = account.stretches.iter().flat_map(|stretch| &stretch.bills);
    let has_list_prices = bills.all(|(_, bill)| bill.price.is_none() || bill.list_prices.is_some());
    let usable = |method: &SplitMethod| {
        *method == chosen || *method != SplitMethod::Residual || has_list_prices
    };
    SplitMethod::ALL.into_iter().filter(usable).collect()
}

/// Charges with the places of their nodes.
pub type NodeCharges = Vec<(usize, Charge)>;

/// Every charge with the place of its node.
///
/// # Errors
/// A method that cannot split a node's price.
pub(crate) fn all_charges(
    account: &Account,
    method: SplitMethod,
    unused: Unused,
) -> Result<NodeCharges> {
    let mut all = Vec::new();
    for stretch in &account.stretches {
        for (node, bill) in &stretch.bills {
            let found = charges(method, bill, unused)
                .with_context(|| format!("node {}", account.nodes[*node].name))?;
            let is_asked = |charge: &Charge| {
                let pod = charge.holder.and_then(|pod| account.pods.get(pod as usize));
                account.charges(pod.map(|pod| pod.namespace.as_str()))
            };
            let found = found.into_iter().filter(is_asked);
            all.extend(found.map(|charge| (*node, charge)));
        }
    }
    Ok(all)
}

//! An account split by a method: rows, their range over the methods, and the headline.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::{Context, Result};
use dovetail_account::cost::Paid;
use dovetail_account::cost::{Charge, CostSum, charges};
use dovetail_account::rollup::ByMethod;
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

/// Charges of one key and cause, as a ledger keeps them.
#[derive(Debug)]
pub struct KeptCharges {
    pub key: Vec<String>,
    pub paid: Paid,
    pub gpu_milli_ms: i128,
    pub charges: u64,
    pub costs: ByMethod,
}

impl Statement {
    /// Splits an account.
    pub fn of(
        account: &Account,
        method: SplitMethod,
        unused: Unused,
        by: &[Dimension],
    ) -> Result<Self> {
        Self::of_top(account, (method, unused), by, None)
    }

    /// Splits an account, of which only the dearest rows may be shown.
    pub fn of_top(
        account: &Account,
        (method, unused): (SplitMethod, Unused),
        by: &[Dimension],
        top: Option<Top>,
    ) -> Result<Self> {
        Self::over(&methods(account, method), (method, unused), by, top, |other| {
            let found = sums(account, other, unused, by)?;
            // Waste is what it is, whoever is made to pay for it.
            let shown = match unused {
                Unused::Shown => None,
                Unused::Distributed => Some(sums(account, other, Unused::Shown, &[])?),
            };
            let mut all = CostSum::default();
            shown.as_ref().unwrap_or(&found).values().for_each(|sum| all += sum);
            Ok((found, all))
        })
    }

    /// Of what a ledger has split before. Methods without a price for something that has one are
    /// left out, but for the one that is asked for.
    pub(crate) fn of_kept(
        kept: &[KeptCharges],
        method: SplitMethod,
        by: &[Dimension],
        top: Option<Top>,
    ) -> Result<Self> {
        let is_whole = |place: usize| {
            let mut priced = kept.iter().filter(|row| row.costs.iter().any(Option::is_some));
            priced.all(|row| row.costs[place].is_some())
        };
        let methods: Vec<SplitMethod> = SplitMethod::ALL
            .into_iter()
            .enumerate()
            .filter(|(place, other)| *other == method || is_whole(*place))
            .map(|(_, other)| other)
            .collect();
        Self::over(&methods, (method, Unused::Shown), by, top, |other| {
            let place = SplitMethod::ALL.iter().position(|known| *known == other).unwrap_or(0);
            let (mut found, mut all) = (Sums::new(), CostSum::default());
            for row in kept {
                let KeptCharges { key, paid, gpu_milli_ms, charges, costs } = row;
                for sum in [found.entry(key.clone()).or_default(), &mut all] {
                    sum.add_rolled_up(*paid, *gpu_milli_ms, costs[place], *charges);
                }
            }
            Ok((found, all))
        })
    }

    /// Rows under one method with their range over several; `sums` has the rows of a method, and
    /// what is in them altogether.
    fn over(
        methods: &[SplitMethod],
        (method, unused): (SplitMethod, Unused),
        by: &[Dimension],
        top: Option<Top>,
        sums: impl Fn(SplitMethod) -> Result<(Sums, CostSum)>,
    ) -> Result<Self> {
        // The method that is asked for says which rows are dearest.
        let shown = top.map(|top| Ok::<_, anyhow::Error>(top.of(&sums(method)?.0))).transpose()?;
        let mut rows = Sums::new();
        let mut ranges: BTreeMap<Vec<String>, (Money, Money)> = BTreeMap::new();
        let (mut total, mut wastes) = (CostSum::default(), Vec::new());
        for other in methods {
            let (mut found, all) = sums(*other)?;
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
        Ok(Self { method, unused, by: by.to_vec(), total, rows, waste })
    }
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

fn sums(account: &Account, method: SplitMethod, unused: Unused, by: &[Dimension]) -> Result<Sums> {
    let mut sums = Sums::new();
    for (node, _, charge) in &all_charges(account, method, unused)? {
        let key = by.iter().map(|dimension| dimension.key(account, *node, charge)).collect();
        sums.entry(key).or_default().add(charge);
    }
    Ok(sums)
}

/// Charges with the places of their nodes.
pub type NodeCharges = Vec<(usize, Charge)>;

/// Every charge with the places of its node and of its stretch of time.
pub(crate) fn all_charges(
    account: &Account,
    method: SplitMethod,
    unused: Unused,
) -> Result<Vec<(usize, usize, Charge)>> {
    let mut all = Vec::new();
    for (number, stretch) in account.stretches.iter().enumerate() {
        for (node, bill) in &stretch.bills {
            let found = charges(method, bill, unused)
                .with_context(|| format!("node {}", account.nodes[*node].name))?;
            let is_asked = |charge: &Charge| {
                let pod = charge.holder.and_then(|pod| account.pods.get(pod as usize));
                account.charges(pod.map(|pod| pod.namespace.as_str()))
            };
            let found = found.into_iter().filter(is_asked);
            all.extend(found.map(|charge| (*node, number, charge)));
        }
    }
    Ok(all)
}

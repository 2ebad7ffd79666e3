//! The dollars of an answer under every method that can split these nodes.

use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_account::cost::CostSum;
use dovetail_account::split::{Headline, SplitMethod, headline};
use dovetail_model::Money;
use dovetail_units::amount::usd;
use serde::Serialize;

use super::asked::QuestionInput;
use super::name::QuestionName;
use super::{by_charge, by_request, by_run};
use crate::document::by_method;
use crate::flags::BillTerms;
use crate::known;
use crate::statement::{NodeCharges, all_charges, methods};

/// What an answer comes to, with its range over the methods.
#[derive(Debug, Serialize)]
pub struct RangeOut {
    /// What costs so much.
    what: &'static str,
    usd_micros: i64,
    lowest: MethodOut,
    highest: MethodOut,
}

/// The same under one method.
#[derive(Debug, Serialize)]
struct MethodOut {
    method: String,
    usd_micros: i64,
}

impl MethodOut {
    fn of((method, cost): (SplitMethod, Money)) -> Self {
        Self { method: method.id(), usd_micros: cost.usd_micros }
    }
}

impl RangeOut {
    /// For people.
    pub fn words(&self) -> String {
        let amount = |of: &MethodOut| by_method(of.usd_micros, &of.method);
        format!(
            "{}: {} ({} to {})",
            self.what,
            usd(Some(self.usd_micros)),
            amount(&self.lowest),
            amount(&self.highest)
        )
    }
}

/// Ranges of the answers that are wanted; none of those without dollars, or on which all methods
/// agree.
///
/// # Errors
/// A method that cannot split a node's price.
pub(crate) fn ranges(
    asked: &QuestionInput,
    terms: &BillTerms,
    wanted: &[QuestionName],
) -> Result<BTreeMap<QuestionName, RangeOut>> {
    let mut figures: BTreeMap<QuestionName, Vec<(SplitMethod, Money)>> = BTreeMap::new();
    let of_money: Vec<QuestionName> =
        wanted.iter().copied().filter(|name| of_dollars(*name).is_some()).collect();
    let methods = match of_money.is_empty() {
        true => Vec::new(),
        false => methods(&asked.account, terms.method),
    };
    for method in methods {
        let other;
        let charges = match method == terms.method {
            true => &asked.charges,
            false => {
                other = all_charges(&asked.account, method, terms.unused)?;
                &other
            }
        };
        for name in &of_money {
            let cost = figure(*name, asked, charges);
            figures.entry(*name).or_default().extend(cost.map(|cost| (method, cost)));
        }
    }
    let range = |(name, figures): (QuestionName, Vec<(SplitMethod, Money)>)| {
        let found = headline(terms.method, &figures).filter(Headline::differs)?;
        let range = RangeOut {
            what: of_dollars(name)?,
            usd_micros: found.cost.usd_micros,
            lowest: MethodOut::of(found.lowest),
            highest: MethodOut::of(found.highest),
        };
        Some((name, range))
    };
    Ok(figures.into_iter().filter_map(range).collect())
}

/// What the dollars of an answer are of; `None` of one without any.
fn of_dollars(name: QuestionName) -> Option<&'static str> {
    Some(match name {
        QuestionName::Top => "what workloads waste",
        QuestionName::Idle => "idle GPU time",
        QuestionName::Beside => "CPU and memory of such pods",
        QuestionName::Spot => "GPU time of training",
        QuestionName::Runs => "all runs",
        QuestionName::Requests => "serving workloads",
        QuestionName::Teams | QuestionName::Low | QuestionName::Wait => return None,
    })
}

/// What an answer comes to by charges under one method.
fn figure(name: QuestionName, asked: &QuestionInput, charges: &NodeCharges) -> Option<Money> {
    let held = || {
        let mut sum = CostSum::default();
        let held = charges.iter().filter(|(_, charge)| charge.holder.is_some());
        held.for_each(|(_, charge)| sum.add(charge));
        sum
    };
    let all = |sums: Vec<CostSum>| {
        let mut sum = CostSum::default();
        sums.iter().for_each(|more| sum += more);
        sum.cost()
    };
    match name {
        QuestionName::Top => {
            let sum = held();
            known::waste(&sum)
        }
        QuestionName::Idle => {
            let sum = held();
            known::idle(&sum)
        }
        QuestionName::Beside => by_charge::cost_beside(asked, charges),
        QuestionName::Spot => all(by_charge::of_training(asked, charges).into_values().collect()),
        QuestionName::Runs => by_run::cost(asked, charges),
        QuestionName::Requests => all(by_request::serving(asked, charges).into_values().collect()),
        QuestionName::Teams | QuestionName::Low | QuestionName::Wait => None,
    }
}

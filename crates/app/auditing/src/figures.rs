//! Amounts of an audit: parts of the waste with their range over split methods, and formulas that
//! give an amount again.

use dovetail_account::split::{Headline, SplitMethod};
use dovetail_audit::{MonthFigure, TimeByPrice};
use dovetail_costing::document::LEAST_HOURS;
use dovetail_facts::PricedTime;
use dovetail_model::{Money, grouped};
use dovetail_units::amount::rounded_usd;
use serde::Serialize;

/// A part of the waste, as it would be in a month.
#[derive(Debug, Serialize)]
pub struct FigureOut {
    pub usd_micros_per_month: Option<i64>,
    pub gpu_hours_per_month: f64,
    /// The part of the GPU-hours that has no price, which the dollars leave out.
    pub unpriced_gpu_hours_per_month: f64,
    pub lowest: Option<MethodAmountOut>,
    pub highest: Option<MethodAmountOut>,
}

/// The same by another method.
#[derive(Debug, Serialize)]
pub struct MethodAmountOut {
    pub method: String,
    pub usd_micros_per_month: i64,
}

impl FigureOut {
    /// A figure in the units of documents.
    pub fn of(figure: &MonthFigure) -> Self {
        let amount = |(method, cost): (SplitMethod, Money)| MethodAmountOut {
            method: method.id(),
            usd_micros_per_month: cost.usd_micros,
        };
        let range = figure.range.filter(Headline::differs);
        Self {
            usd_micros_per_month: figure.time.cost().map(|cost| cost.usd_micros),
            gpu_hours_per_month: hours(figure.time.gpu_milli_ms),
            unpriced_gpu_hours_per_month: unpriced_hours(figure.time),
            lowest: range.map(|range| amount(range.lowest)),
            highest: range.map(|range| amount(range.highest)),
        }
    }
}

/// GPU-hours.
pub fn hours(gpu_milli_ms: i128) -> f64 {
    gpu_milli_ms as f64 / 3.6e9
}

/// Dollars for people, with a sign that there is more where GPU-hours without a price are left out;
/// a dash where nothing has a price.
pub fn at_least(usd_micros: Option<i64>, unpriced_gpu_hours: f64) -> String {
    let sign = sign_of_more(unpriced_gpu_hours);
    usd_micros.map_or_else(|| "-".to_owned(), |micros| format!("{sign}{}", rounded_usd(micros)))
}

/// What stands before dollars that leave out so many GPU-hours without a price.
pub(crate) fn sign_of_more(unpriced_gpu_hours: f64) -> &'static str {
    if unpriced_gpu_hours >= LEAST_HOURS { "≥ " } else { "" }
}

pub(crate) fn micros(time: PricedTime) -> Option<i64> {
    time.cost().map(|cost| cost.usd_micros)
}

/// GPU-hours that have no price.
pub fn unpriced_hours(time: PricedTime) -> f64 {
    hours(time.gpu_milli_ms - time.priced_gpu_milli_ms)
}

/// How an amount comes about: GPU-hours times their price, for each price. Who multiplies and adds
/// gets the amount to the cent.
pub fn formula(by_price: &TimeByPrice, period: &str) -> String {
    let term = |(price, time): (&Option<i64>, &i128)| {
        let hours = grouped_decimal(hours(*time), 1);
        match price {
            Some(micros) => {
                let each = decimal(*micros as f64 / 1e6, 2);
                format!("{hours} GPU-hours {period} × ${each} per GPU-hour")
            }
            None => format!("{hours} GPU-hours {period}, of unknown price"),
        }
    };
    let terms = by_price.iter().rev().filter(|(_, time)| **time > 0).map(term);
    terms.collect::<Vec<_>>().join(" + ")
}

/// The same with its thousands separated.
fn grouped_decimal(number: f64, least: usize) -> String {
    let text = decimal(number, least);
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), grouped);
    format!("{whole}.{rest}")
}

/// A number with as many decimals as it needs, at least so many and at most six.
fn decimal(number: f64, least: usize) -> String {
    let mut text = format!("{number:.6}");
    let zeros = text.len() - text.trim_end_matches('0').len();
    text.truncate(text.len() - zeros.min(6 - least));
    text
}

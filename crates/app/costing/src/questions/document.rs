//! Answers in the words of their JSON.

use anyhow::Result;
use dovetail_sources::node_prices::PriceLine;
use dovetail_sources::old_prices::old_prices;
use dovetail_units::time::time;
use serde::Serialize;

use super::answer::CostAnswer;
use super::asked::QuestionInput;
use super::name::QuestionName;
use super::range::{RangeOut, ranges};
use super::{by_charge, by_level, by_request, by_run, by_wait};
use crate::flags::BillTerms;
use crate::too_recent::TooRecent;
use crate::without_price::unpriced;

/// Name and version of the form.
const SCHEMA: &str = "dovetail-cost-questions/1";

/// All that was asked.
#[derive(Debug, Serialize)]
pub struct Document {
    pub schema: &'static str,
    /// `run-rate` of one moment, or `sampled` over a period.
    pub basis: &'static str,
    pub from: String,
    pub to: String,
    pub days: f64,
    /// What the samples are of; null where there are none.
    pub sampled_hours: Option<f64>,
    pub sample_step_s: Option<f64>,
    pub cluster: String,
    pub sources: Vec<String>,
    pub method: String,
    pub answers: Vec<Answered>,
    pub prices: Vec<PriceLine>,
    pub notes: Vec<String>,
}

/// An answer with its range over the methods.
#[derive(Debug, Serialize)]
pub struct Answered {
    #[serde(flatten)]
    pub answer: CostAnswer,
    /// Null where an answer has no dollars, or all methods agree on them.
    pub range: Option<RangeOut>,
}

impl Document {
    /// Everything that is said.
    ///
    /// # Errors
    /// A method that cannot split a node's price.
    pub fn of(
        asked: &QuestionInput,
        terms: &BillTerms,
        wanted: &[QuestionName],
        now_ms: u64,
    ) -> Result<Self> {
        let account = &asked.account;
        let mut notes = account.notes.clone();
        notes.extend(old_prices(&account.prices, account.priced_at_ms(now_ms)));
        notes.splice(0..0, TooRecent::of(account).in_words());
        notes.extend(unpriced(account));
        let answer = |name: &QuestionName| match name {
            QuestionName::Top => by_charge::top(asked),
            QuestionName::Teams => by_level::teams(asked),
            QuestionName::Idle => by_charge::idle(asked),
            QuestionName::Low => by_level::low(asked),
            QuestionName::Beside => by_charge::beside(asked, terms.method),
            QuestionName::Spot => by_charge::spot(asked),
            QuestionName::Runs => by_run::answer(asked),
            QuestionName::Wait => by_wait::answer(asked),
            QuestionName::Requests => by_request::answer(asked),
        };
        let mut ranges = ranges(asked, terms, wanted)?;
        let answered =
            |name: &QuestionName| Answered { answer: answer(name), range: ranges.remove(name) };
        let answers = wanted.iter().map(answered).collect();
        Ok(Self {
            schema: SCHEMA,
            basis: account.basis.name(),
            from: time(account.span.from_ms),
            to: time(account.span.to_ms),
            days: account.days(),
            sampled_hours: asked
                .sampled
                .map(|sampled| (sampled.span.to_ms - sampled.span.from_ms) as f64 / 3.6e6),
            sample_step_s: asked.sampled.map(|sampled| sampled.step_ms as f64 / 1e3),
            cluster: account.cluster_in_words(),
            sources: account.sources_in_words(),
            method: terms.method.id(),
            answers,
            prices: account.prices.clone(),
            notes,
        })
    }
}

//! The section `[prices]` of the settings file: rates of one's own, what is bought at a committed
//! rate, and what other currencies are worth.

use std::collections::BTreeMap;

use dovetail_price::{Exchange, LabelPairs, PRICE_COLUMNS, PriceBook};
use serde::Deserialize;

use crate::errors::UsageError;

/// What the section can say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceSection {
    /// Labels of nodes that are bought at a committed rate: any of these texts, each `KEY=VALUE` or
    /// several joined by commas that must all be there; `*` stands for any value.
    pub committed_nodes: Option<Vec<String>>,
    /// USD for one unit of other currencies, by their code.
    pub exchange: Option<BTreeMap<String, RateText>>,
    /// Prices of GPUs, as in a price file. `--prices` is stronger.
    pub rates: Option<Vec<BTreeMap<String, String>>>,
}

/// An exchange rate as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum RateText {
    /// The rate alone.
    Usd(String),
    /// The rate with its day.
    Dated {
        /// USD for one unit.
        usd: String,
        as_of: String,
    },
}

impl PriceSection {
    /// Refuses what no price could be read by.
    pub fn check(&self) -> Result<(), String> {
        self.selectors()?;
        // What other currencies are worth can come from the command line: the rates are looked at
        // there.
        self.exchange()?;
        for (number, rate) in self.rates.iter().flatten().enumerate() {
            if let Some(unknown) = rate.keys().find(|key| !PRICE_COLUMNS.contains(&key.as_str())) {
                let known = PRICE_COLUMNS.join(", ");
                return Err(format!(
                    "{}: unknown field `{unknown}`: the fields are {known}",
                    place(number)
                ));
            }
        }
        Ok(())
    }

    /// What other currencies are worth.
    pub fn exchange(&self) -> Result<Exchange, String> {
        let mut exchange = Exchange::default();
        for (currency, rate) in self.exchange.iter().flatten() {
            let (usd, as_of) = match rate {
                RateText::Usd(usd) => (usd, None),
                RateText::Dated { usd, as_of } => (usd, Some(as_of.as_str())),
            };
            let added = exchange.with(currency, usd, as_of, "dovetail.toml");
            exchange = added.map_err(|problem| format!("prices.exchange.{currency}: {problem}"))?;
        }
        Ok(exchange)
    }

    /// A price book with the rates of the file.
    ///
    /// # Errors
    /// A rate that cannot be read, by its number and field.
    pub fn rates(&self, mut book: PriceBook) -> Result<PriceBook, UsageError> {
        for (number, rate) in self.rates.iter().flatten().enumerate() {
            let cell = |column: &'static str| {
                rate.get(column).map(String::as_str).filter(|text| !text.is_empty())
            };
            let added = book.with_row(&cell, &place(number));
            book = added.map_err(|error| UsageError(error.to_string()))?;
        }
        Ok(book)
    }

    /// Whether the labels of a node say that it is bought at a committed rate.
    pub fn is_committed(&self, labels: &BTreeMap<String, String>) -> bool {
        self.committed_by(labels).next().is_some()
    }

    /// The texts by which they say so.
    pub fn committed_by(&self, labels: &BTreeMap<String, String>) -> impl Iterator<Item = &str> {
        // What the file says was looked at when it was read.
        let selectors = self.selectors().unwrap_or_default();
        let texts = self.committed_nodes.iter().flatten().zip(selectors);
        texts.filter(|(_, pairs)| pairs.hold(labels)).map(|(text, _)| text.as_str())
    }

    /// Labels that are looked at, for readers that must ask for them by name.
    pub fn labels(&self) -> Vec<String> {
        let selectors = self.selectors().unwrap_or_default();
        selectors.iter().flat_map(LabelPairs::keys).map(str::to_owned).collect()
    }

    /// Alternatives of pairs that must all hold.
    fn selectors(&self) -> Result<Vec<LabelPairs>, String> {
        let texts = self.committed_nodes.iter().flatten();
        let read = texts.map(|text| label_pairs(text));
        read.collect::<Result<_, _>>()
            .map_err(|problem| format!("prices.committed_nodes: {problem}"))
    }

    /// Every setting with its value and whether the file gives it, in the order of the
    /// documentation.
    pub fn lines(&self) -> Vec<(&'static str, String, bool)> {
        let count = |count: usize| if count == 0 { "none".to_owned() } else { count.to_string() };
        let selectors = self.committed_nodes.as_ref();
        let exchange = self.exchange.as_ref();
        let rates = self.rates.as_ref();
        vec![
            (
                "prices.committed_nodes",
                selectors.map_or("none".to_owned(), |texts| texts.join(" or ")),
                selectors.is_some(),
            ),
            (
                "prices.exchange",
                exchange.map_or("none".to_owned(), |rates| {
                    rates.keys().cloned().collect::<Vec<_>>().join(",")
                }),
                exchange.is_some(),
            ),
            ("prices.rates", count(rates.map_or(0, Vec::len)), rates.is_some()),
        ]
    }
}

/// Where a rate stands.
fn place(number: usize) -> String {
    format!("prices.rates, number {}", number + 1)
}

/// The labels that a text of the settings names, all of which must be there.
pub(crate) fn label_pairs(text: &str) -> Result<LabelPairs, String> {
    LabelPairs::read(text).ok_or_else(|| {
        format!("`{text}`: write KEY=VALUE pairs joined by commas; * matches any value")
    })
}

//! The form of an answer: rows of named cells, with what they mean.

use dovetail_console::table::whole;
use dovetail_units::amount::{percent, tenths, unit_usd, usd};
use dovetail_units::duration::duration_of_seconds;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// An answer.
#[derive(Debug, Serialize)]
pub struct CostAnswer {
    pub name: String,
    pub question: String,
    pub how: String,
    /// What it may be wrong by, or leaves out.
    pub uncertainty: String,
    /// Why it is not answered; null where it is.
    pub unknown_because: Option<String>,
    /// What was looked for, and that there is none; null where there is some, or where nobody
    /// knows.
    pub none_because: Option<String>,
    pub rows: Vec<AnswerRow>,
}

/// Cells by name, in their order.
#[derive(Clone, Debug, Default)]
pub struct AnswerRow(pub Vec<(&'static str, AnswerCell)>);

/// One value with its unit; what nobody knows is `None`.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum AnswerCell {
    Text(String),
    Hours(Option<f64>),
    UsdMicros(Option<i64>),
    /// 0 to 1.
    Share(Option<f64>),
    Count(u64),
    Counted(Option<u64>),
    Seconds(Option<f64>),
    /// A price of something small, in millionths of a dollar.
    UnitUsdMicros(Option<i64>),
    /// What the row is made of, as far as it is named.
    List(Vec<AnswerRow>),
}

impl AnswerCell {
    /// For people.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Hours(None) => "-".to_owned(),
            Self::Hours(Some(hours)) => tenths(*hours),
            Self::UsdMicros(micros) => usd(*micros),
            Self::Share(share) => share.map_or_else(|| "-".to_owned(), percent),
            Self::Count(count) => whole(*count),
            Self::Counted(count) => count.map_or_else(|| "-".to_owned(), whole),
            Self::Seconds(seconds) => seconds.map_or_else(|| "-".to_owned(), duration_of_seconds),
            Self::UnitUsdMicros(micros) => micros.map_or_else(|| usd(None), unit_usd),
            Self::List(rows) => whole(rows.len() as u64),
        }
    }
}

impl Serialize for AnswerRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, cell) in &self.0 {
            map.serialize_entry(name, cell)?;
        }
        map.end()
    }
}

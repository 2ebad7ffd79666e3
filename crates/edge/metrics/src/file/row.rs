//! One row: which column stands where, and what its cells say.

use dovetail_account::ActivitySample;
use dovetail_units::number::{NotANumber, Number, Rest};
use jiff::Timestamp;

use super::error::shown;

/// Columns of a usage file, in the order in which messages list them.
const COLUMNS: [&str; 8] = [
    "timestamp_s",
    "pod",
    "gpu",
    "activity_percent",
    "memory_bytes",
    "namespace",
    "node",
    "gpu_share",
];

// Places in [`COLUMNS`].
const TIME: usize = 0;
pub(crate) const POD: usize = 1;
const GPU: usize = 2;
const ACTIVITY: usize = 3;
const MEMORY: usize = 4;
const NAMESPACE: usize = 5;
pub(crate) const NODE: usize = 6;
pub(crate) const SHARE: usize = 7;

/// How many of [`COLUMNS`], from the front, a file cannot leave out.
const REQUIRED: usize = 4;

/// Longest name of a Kubernetes object.
const MAX_NAME_BYTES: usize = 253;

/// What a GPU driver writes where it has no value: the blank of a 64-bit number and its neighbours.
const BLANKS: std::ops::RangeInclusive<i128> =
    9_223_372_036_854_775_792..=9_223_372_036_854_775_807;

/// Where each known column stands in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    places: [Option<usize>; COLUMNS.len()],
    count: usize,
}

/// A row without its place in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampleRow<'a> {
    pub(crate) pod: &'a str,
    pub(crate) gpu: &'a str,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) node: Option<&'a str>,
    pub(crate) sample: ActivitySample,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) gpu_milli: u32,
}

/// What is wrong with a row, before its place is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowProblem {
    pub(crate) column: Option<&'static str>,
    pub(crate) text: String,
    pub(crate) problem: String,
}

impl RowProblem {
    pub(crate) fn whole_row(text: &[u8], problem: impl Into<String>) -> Self {
        Self { column: None, text: shown(text), problem: problem.into() }
    }

    pub(crate) fn of(column: usize, text: &str, problem: impl Into<String>) -> Self {
        let column = Some(COLUMNS[column]);
        Self { column, text: shown(text.as_bytes()), problem: problem.into() }
    }
}

impl Columns {
    /// Finds the columns in a header.
    ///
    /// # Errors
    /// A sentence that says what is wrong and which columns exist.
    pub(crate) fn of(header: &[&str]) -> Result<Self, String> {
        let mut places = [None; COLUMNS.len()];
        for (place, name) in header.iter().enumerate() {
            let Some(column) = COLUMNS.iter().position(|column| *column == name.trim()) else {
                let (name, known) = (shown(name.as_bytes()), COLUMNS.join(", "));
                return Err(format!("unknown column `{name}`: the columns are {known}"));
            };
            if places[column].replace(place).is_some() {
                return Err(format!("column `{}`: duplicate; keep one", COLUMNS[column]));
            }
        }
        match (0..REQUIRED).find(|column| places[*column].is_none()) {
            Some(column) => Err(format!("column `{}` is missing: add it", COLUMNS[column])),
            None => Ok(Self { places, count: header.len() }),
        }
    }

    /// Reads the cells of a row. `latest_ms` is the last moment that can have happened.
    pub(crate) fn row<'a>(
        &self,
        cells: &[&'a str],
        latest_ms: u64,
    ) -> Result<SampleRow<'a>, RowProblem> {
        if cells.len() != self.count {
            let text = cells.join(",");
            let problem = format!("has {} cells: the header has {}", cells.len(), self.count);
            return Err(RowProblem::whole_row(text.as_bytes(), problem));
        }
        let cell = |column: usize| self.places[column].map_or("", |place| cells[place].trim());
        let optional = |column: usize| Some(cell(column)).filter(|text| !text.is_empty());
        let sample = ActivitySample {
            at_ms: time_ms(cell(TIME), latest_ms)?,
            activity_micro_percent: micro_percent(cell(ACTIVITY))?,
        };
        Ok(SampleRow {
            pod: name(POD, cell(POD))?,
            gpu: name(GPU, cell(GPU))?,
            namespace: optional(NAMESPACE).map(|text| name(NAMESPACE, text)).transpose()?,
            node: optional(NODE).map(|text| name(NODE, text)).transpose()?,
            sample,
            memory_bytes: optional(MEMORY).map(bytes).transpose()?,
            gpu_milli: optional(SHARE).map_or(Ok(WHOLE_MILLI), share_milli)?,
        })
    }
}

fn number(text: &str) -> Result<Number<'_>, &'static str> {
    Number::read(text).map_err(NotANumber::in_words)
}

/// A multiple of 10^−`decimals`, cut off behind the last decimal: 4.999… stays below 5.
fn cut_off(number: &Number<'_>, decimals: u32) -> Result<i128, &'static str> {
    number.units(decimals, Rest::CutOff).ok_or("is too large")
}

const WHOLE_MILLI: u32 = 1000;

/// A part of a GPU, cut off to thousandths.
fn share_milli(text: &str) -> Result<u32, RowProblem> {
    let bad = |problem: &str| {
        let fix = "write a part of a GPU such as 0.5, or leave the cell empty for a whole one";
        RowProblem::of(SHARE, text, format!("{problem}: {fix}"))
    };
    match number(text).and_then(|number| cut_off(&number, 3)).map_err(bad)? {
        milli @ 1..=1000 => Ok(milli as u32),
        _ => Err(bad("is not between 0.001 and 1")),
    }
}

fn name(column: usize, text: &str) -> Result<&str, RowProblem> {
    let problem = match text {
        "" => "is empty: write a name",
        text if text.len() > MAX_NAME_BYTES => "is longer than any name in Kubernetes",
        text if text.chars().any(char::is_control) => "has a control character: remove it",
        _ => return Ok(text),
    };
    Err(RowProblem::of(column, text, problem))
}

fn time_ms(text: &str, latest_ms: u64) -> Result<u64, RowProblem> {
    let bad = |problem: &str| {
        let fix = "write seconds since 1970, such as 1700000000.5, or 2023-11-14T22:13:20.5Z";
        RowProblem::of(TIME, text, format!("{problem}: {fix}"))
    };
    let written = || text.parse::<Timestamp>().map(|at| i128::from(at.as_millisecond()));
    let at_ms = number(text).and_then(|number| cut_off(&number, 3));
    let at_ms = at_ms.or_else(|problem| written().map_err(|_| bad(problem)))?;
    match u64::try_from(at_ms) {
        Ok(at_ms) if at_ms <= latest_ms => Ok(at_ms),
        Ok(_) => Err(bad("is in the future")),
        Err(_) => Err(bad("is negative or too large")),
    }
}

fn micro_percent(text: &str) -> Result<u32, RowProblem> {
    const FULL: i128 = 100_000_000;
    let bad = |problem: &str| {
        let mend = "write 0 to 100, and omit rows without a measurement";
        RowProblem::of(ACTIVITY, text, format!("{problem}: {mend}"))
    };
    let number = number(text).map_err(bad)?;
    if cut_off(&number, 0).is_ok_and(|value| BLANKS.contains(&value)) {
        return Err(bad("is a placeholder that drivers write for a missing value"));
    }
    match cut_off(&number, 6).map_err(bad)? {
        _ if number.is_negative() => Err(bad("is negative")),
        value if value > FULL => Err(bad("exceeds 100")),
        value => Ok(value as u32),
    }
}

fn bytes(text: &str) -> Result<u64, RowProblem> {
    let bad = |problem: &str| {
        let mend = "write whole bytes, or leave the cell empty";
        RowProblem::of(MEMORY, text, format!("{problem}: {mend}"))
    };
    let number = number(text).map_err(bad)?;
    let value = cut_off(&number, 0).map_err(bad)?;
    // A pebibyte: no GPU has so much, and the blank of a 64-bit number is beyond it.
    const LARGEST: u64 = 1 << 50;
    match u64::try_from(value) {
        _ if number.is_negative() => Err(bad("is negative")),
        Ok(value) if value <= LARGEST => Ok(value),
        _ => Err(bad("is more than any GPU has")),
    }
}

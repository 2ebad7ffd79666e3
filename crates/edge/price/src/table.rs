//! Rows of price files: the built-in table and the user's overrides have the same columns.

use std::collections::BTreeMap;
use std::io::Read;

use csv::StringRecord;

use crate::error::PriceError;
use crate::gpu_model::canonical_gpu_model;
use crate::price::Purchase;
use crate::usd::parse_usd_micros;

/// Columns of a price file, in the order in which messages list them.
const COLUMNS: [&str; 8] = [
    "gpu_model",
    "usd_per_gpu_hour",
    "provider",
    "region",
    "purchase",
    "instance_type",
    "source",
    "as_of",
];

/// How many of [`COLUMNS`], from the front, a file cannot leave out.
const REQUIRED: usize = 2;

/// One price with the places it holds for; an open field holds for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) usd_micros_per_gpu_hour: i64,
    pub(crate) provider: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) purchase: Option<Purchase>,
    pub(crate) source: String,
    pub(crate) as_of: Option<String>,
}

/// Rows by canonical model name.
pub(crate) type Rows = BTreeMap<String, Vec<Row>>;

/// Reads a whole price file. Nothing is taken from a file with a bad row.
pub(crate) fn read(input: impl Read, file: &str) -> Result<Rows, PriceError> {
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(input);
    let header = reader.headers().map_err(|error| csv_error(file, error))?.clone();
    let columns = Columns::of(&header, file)?;
    let mut rows = Rows::new();
    let mut first_lines: BTreeMap<_, u64> = BTreeMap::new();
    for record in reader.records() {
        let record = record.map_err(|error| csv_error(file, error))?;
        let cells = Cells { file, columns: &columns, record: &record };
        let model = cells.model()?;
        let row = cells.row()?;
        let key = (model.clone(), row.provider.clone(), row.region.clone(), row.purchase);
        if let Some(first) = first_lines.insert(key, cells.line()) {
            let problem =
                format!("{model} has this place and purchase on line {first} too: keep one row");
            return Err(cells.error("gpu_model", problem));
        }
        rows.entry(model).or_default().push(row);
    }
    Ok(rows)
}

fn csv_error(file: &str, source: csv::Error) -> PriceError {
    let line = source.position().map_or(0, csv::Position::line);
    PriceError::Csv { file: file.to_owned(), line, source }
}

/// Where each known column stands in the file.
struct Columns([Option<usize>; COLUMNS.len()]);

impl Columns {
    fn of(header: &StringRecord, file: &str) -> Result<Self, PriceError> {
        let bad = |problem| PriceError::Header { file: file.to_owned(), problem };
        let mut places = [None; COLUMNS.len()];
        for (place, name) in header.iter().enumerate() {
            let Some(column) = COLUMNS.iter().position(|column| *column == name) else {
                let known = COLUMNS.join(", ");
                return Err(bad(format!("unknown column `{name}`: the columns are {known}")));
            };
            if places[column].replace(place).is_some() {
                return Err(bad(format!("column `{name}` stands twice: keep one")));
            }
        }
        match (0..REQUIRED).find(|column| places[*column].is_none()) {
            Some(column) => Err(bad(format!("column `{}` is missing: add it", COLUMNS[column]))),
            None => Ok(Self(places)),
        }
    }
}

/// One record, read by column name.
struct Cells<'a> {
    file: &'a str,
    columns: &'a Columns,
    record: &'a StringRecord,
}

impl Cells<'_> {
    fn model(&self) -> Result<String, PriceError> {
        match self.text("gpu_model") {
            Some(label) => Ok(canonical_gpu_model(label)),
            None => {
                let problem = "empty: name the GPU model, or * for nodes without one".to_owned();
                Err(self.error("gpu_model", problem))
            }
        }
    }

    fn row(&self) -> Result<Row, PriceError> {
        let owned = |column| self.text(column).map(str::to_owned);
        let (provider, region) = (owned("provider"), owned("region"));
        if region.is_some() && provider.is_none() {
            let problem = "a region needs its provider: fill the column `provider`".to_owned();
            return Err(self.error("region", problem));
        }
        let stated = [self.text("instance_type"), self.text("source")];
        let stated: Vec<&str> = stated.into_iter().flatten().collect();
        let source = if stated.is_empty() {
            format!("{}:{}", self.file, self.line())
        } else {
            stated.join(", ")
        };
        Ok(Row {
            usd_micros_per_gpu_hour: self.usd_micros()?,
            provider,
            region,
            purchase: self.purchase()?,
            source,
            as_of: self.as_of()?,
        })
    }

    fn usd_micros(&self) -> Result<i64, PriceError> {
        const COLUMN: &str = "usd_per_gpu_hour";
        let text = self.text(COLUMN).unwrap_or_default();
        parse_usd_micros(text).map_err(|problem| self.error(COLUMN, problem))
    }

    fn purchase(&self) -> Result<Option<Purchase>, PriceError> {
        let Some(name) = self.text("purchase") else { return Ok(None) };
        match Purchase::from_name(name) {
            Some(purchase) => Ok(Some(purchase)),
            None => {
                let known = Purchase::ALL.map(Purchase::name).join(", ");
                let problem = format!("`{name}` is not a purchase kind: write one of {known}");
                Err(self.error("purchase", problem))
            }
        }
    }

    fn as_of(&self) -> Result<Option<String>, PriceError> {
        let Some(day) = self.text("as_of") else { return Ok(None) };
        if is_calendar_day(day) {
            return Ok(Some(day.to_owned()));
        }
        Err(self.error("as_of", format!("`{day}` is not a day: write it as YYYY-MM-DD")))
    }

    /// The cell, or nothing where the column is absent or the cell is empty.
    fn text(&self, column: &str) -> Option<&str> {
        let column = COLUMNS.iter().position(|name| *name == column)?;
        self.record.get(self.columns.0[column]?).filter(|text| !text.is_empty())
    }

    fn line(&self) -> u64 {
        self.record.position().map_or(0, csv::Position::line)
    }

    fn error(&self, column: &'static str, problem: String) -> PriceError {
        PriceError::Cell { file: self.file.to_owned(), line: self.line(), column, problem }
    }
}

fn is_calendar_day(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shaped = bytes.len() == 10
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !shaped {
        return false;
    }
    let number = |range: std::ops::Range<usize>| text[range].parse::<u32>().unwrap_or(0);
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

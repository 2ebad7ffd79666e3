//! Rows of price files: the built-in table and the user's overrides have the same columns.

use std::collections::BTreeMap;
use std::io::Read;

use dovetail_table::{Record, Style, Table, TableError};

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
pub(crate) fn read(input: impl Read, file: &str) -> Result<Rows, TableError> {
    let mut table = Table::open(input, file, Style::Handwritten)?;
    let columns = Columns::of(table.header()).map_err(|problem| table.bad_header(problem))?;
    let mut rows = Rows::new();
    let mut first_lines: BTreeMap<_, u64> = BTreeMap::new();
    while let Some(record) = table.next_record()? {
        let cells = Cells { columns: &columns, record };
        let model = cells.model()?;
        let row = cells.row()?;
        let key = (model.clone(), row.provider.clone(), row.region.clone(), row.purchase);
        if let Some(first) = first_lines.insert(key, record.line()) {
            let problem =
                format!("{model} has this place and purchase on line {first} too: keep one row");
            return Err(cells.error("gpu_model", problem));
        }
        rows.entry(model).or_default().push(row);
    }
    Ok(rows)
}

/// Where each known column stands in the file.
struct Columns([Option<usize>; COLUMNS.len()]);

impl Columns {
    fn of<'h>(header: impl Iterator<Item = &'h str>) -> Result<Self, String> {
        let mut places = [None; COLUMNS.len()];
        for (place, name) in header.enumerate() {
            let Some(column) = COLUMNS.iter().position(|column| *column == name) else {
                let known = COLUMNS.join(", ");
                return Err(format!("unknown column `{name}`: the columns are {known}"));
            };
            if places[column].replace(place).is_some() {
                return Err(format!("column `{name}` stands twice: keep one"));
            }
        }
        match (0..REQUIRED).find(|column| places[*column].is_none()) {
            Some(column) => Err(format!("column `{}` is missing: add it", COLUMNS[column])),
            None => Ok(Self(places)),
        }
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.0[COLUMNS.iter().position(|column| *column == name)?]
    }
}

/// One record, read by column name.
struct Cells<'t> {
    columns: &'t Columns,
    record: Record<'t>,
}

impl Cells<'_> {
    fn model(&self) -> Result<String, TableError> {
        match self.text("gpu_model") {
            Some(label) => Ok(canonical_gpu_model(label)),
            None => {
                let problem = "empty: name the GPU model, or * for nodes without one".to_owned();
                Err(self.error("gpu_model", problem))
            }
        }
    }

    fn row(&self) -> Result<Row, TableError> {
        let owned = |column| self.text(column).map(str::to_owned);
        let (provider, region) = (owned("provider"), owned("region"));
        if region.is_some() && provider.is_none() {
            let problem = "a region needs its provider: fill the column `provider`".to_owned();
            return Err(self.error("region", problem));
        }
        let stated = [self.text("instance_type"), self.text("source")];
        let stated: Vec<&str> = stated.into_iter().flatten().collect();
        let source = if stated.is_empty() {
            format!("{}:{}", self.record.file(), self.record.line())
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

    fn usd_micros(&self) -> Result<i64, TableError> {
        const COLUMN: &str = "usd_per_gpu_hour";
        let text = self.text(COLUMN).unwrap_or_default();
        parse_usd_micros(text).map_err(|problem| self.error(COLUMN, problem))
    }

    fn purchase(&self) -> Result<Option<Purchase>, TableError> {
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

    fn as_of(&self) -> Result<Option<String>, TableError> {
        let Some(day) = self.text("as_of") else { return Ok(None) };
        if is_calendar_day(day) {
            return Ok(Some(day.to_owned()));
        }
        Err(self.error("as_of", format!("`{day}` is not a day: write it as YYYY-MM-DD")))
    }

    /// The cell, or nothing where the column is absent or the cell is empty.
    fn text(&self, column: &str) -> Option<&str> {
        Some(self.record.text(self.columns.place(column)?)).filter(|text| !text.is_empty())
    }

    fn error(&self, column: &str, problem: String) -> TableError {
        self.record.bad_cell(self.columns.place(column).unwrap_or(usize::MAX), problem)
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

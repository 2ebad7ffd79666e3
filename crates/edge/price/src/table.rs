//! Rows of price files: the built-in table and the user's overrides have the same columns.

use std::collections::BTreeMap;
use std::io::Read;

use dovetail_model::canonical_gpu_model;
use dovetail_table::{CsvRecord, Style, Table, TableError};

use crate::day::is_calendar_day;
use crate::exchange::Exchange;
use crate::price::Purchase;
use crate::usd::{MAX_USD_MICROS_PER_GPU_HOUR, parse_micros, parse_usd_micros};

/// Columns of a price file, and fields of a rate in settings, in the order in which messages list
/// them.
pub const COLUMNS: [&str; 10] = [
    "gpu_model",
    "usd_per_gpu_hour",
    "provider",
    "region",
    "purchase",
    "instance_type",
    "source",
    "as_of",
    "price_per_gpu_hour",
    "currency",
];

/// One price with the places it holds for; an open field holds for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PriceRow {
    pub(crate) usd_micros_per_gpu_hour: i64,
    pub(crate) provider: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) purchase: Option<Purchase>,
    pub(crate) instance_type: Option<String>,
    /// Where it is written: file and line, or the setting.
    pub(crate) place: String,
    pub(crate) source: String,
    pub(crate) as_of: Option<String>,
    /// The currency in which it was written, if that is not USD.
    pub(crate) currency: Option<String>,
}

/// Rows by canonical model name.
pub(crate) type Rows = BTreeMap<String, Vec<PriceRow>>;

/// What a cell, or a setting of the same name, is wrong about.
type Problem = (&'static str, String);

/// Reads a whole price file. Nothing is taken from a file with a bad row.
pub(crate) fn read(input: impl Read, file: &str, exchange: &Exchange) -> Result<Rows, TableError> {
    let mut table = Table::open(input, file, Style::Handwritten)?;
    let columns = Columns::of(table.header()).map_err(|problem| table.bad_header(problem))?;
    let mut rows = Rows::new();
    while let Some(record) = table.next_record()? {
        let cells = Cells { columns: &columns, record };
        let place = format!("{}:{}", record.file(), record.line());
        let read = row(&|column| cells.text(column), &place, exchange);
        let (model, row) = read.map_err(|(column, problem)| cells.error(column, problem))?;
        add(&mut rows, model, row).map_err(|problem| cells.error("gpu_model", problem))?;
    }
    Ok(rows)
}

/// Adds a row of a model.
///
/// # Errors
/// If one before it holds for the same instance type, place and purchase: none of the two is the
/// nearer one.
pub(crate) fn add(rows: &mut Rows, model: String, row: PriceRow) -> Result<(), String> {
    let of_type = |row: &PriceRow| row.instance_type.as_deref().map(str::to_ascii_lowercase);
    let in_region = |row: &PriceRow| row.region.as_deref().map(str::to_ascii_lowercase);
    let key = |row: &PriceRow| (of_type(row), row.provider.clone(), in_region(row), row.purchase);
    let of_model = rows.entry(model.clone()).or_default();
    let added = key(&row);
    if let Some(first) = of_model.iter().find(|first| key(first) == added) {
        let which = row.instance_type.map(|name| format!(" as {name}")).unwrap_or_default();
        return Err(format!(
            "{model}{which} has the same place and purchase option at {}: keep one row",
            first.place
        ));
    }
    of_model.push(row);
    Ok(())
}

/// A model and its row, out of what each column says; `place` is where it stands, for rows that
/// name no source.
pub(crate) fn row<'t>(
    text: &dyn Fn(&'static str) -> Option<&'t str>,
    place: &str,
    exchange: &Exchange,
) -> Result<(String, PriceRow), Problem> {
    let model = text("gpu_model").map(canonical_gpu_model).ok_or_else(|| {
        ("gpu_model", "empty: name the GPU model, or * for nodes without one".to_owned())
    })?;
    let owned = |column| text(column).map(str::to_owned);
    // Nobody's names of places differ by case alone.
    let provider = text("provider").map(str::to_ascii_lowercase);
    let region = owned("region");
    if region.is_some() && provider.is_none() {
        let problem = "a region needs its provider: fill the column `provider`".to_owned();
        return Err(("region", problem));
    }
    let (usd_micros_per_gpu_hour, converted) = usd_micros(text, exchange)?;
    let stated = [text("instance_type"), text("source")];
    let mut source: Vec<String> = stated.into_iter().flatten().map(str::to_owned).collect();
    if source.is_empty() {
        source.push(place.to_owned());
    }
    source.extend(converted);
    let row = PriceRow {
        usd_micros_per_gpu_hour,
        provider,
        region,
        purchase: purchase(text("purchase"))?,
        instance_type: owned("instance_type"),
        place: place.to_owned(),
        source: source.join(", "),
        currency: owned("currency").filter(|currency| currency != "USD"),
        as_of: as_of(text("as_of"))?,
    };
    Ok((model, row))
}

/// The price in micro-USD; where it was written in another currency, how it became that.
fn usd_micros<'t>(
    text: &dyn Fn(&'static str) -> Option<&'t str>,
    exchange: &Exchange,
) -> Result<(i64, Option<String>), Problem> {
    const IN_USD: &str = "usd_per_gpu_hour";
    const IN_ANY: &str = "price_per_gpu_hour";
    let currency = text("currency").unwrap_or("USD");
    let amount = match text(IN_ANY) {
        Some(amount) => amount,
        None if currency != "USD" => {
            let problem = format!(
                "`{currency}`: `{IN_USD}` is in USD: write amounts of {currency} into a column `{IN_ANY}`"
            );
            return Err(("currency", problem));
        }
        None => {
            let amount = text(IN_USD).unwrap_or_default();
            return Ok((parse_usd_micros(amount).map_err(|problem| (IN_USD, problem))?, None));
        }
    };
    if text(IN_USD).is_some() {
        return Err((IN_ANY, format!("`{IN_USD}` also sets the price: keep one of them")));
    }
    if text("currency").is_none() {
        return Err(("currency", format!("empty: name the currency of `{IN_ANY}`, such as EUR")));
    }
    let micros = parse_micros(amount, currency).map_err(|problem| (IN_ANY, problem))?;
    if currency == "USD" {
        return Ok((micros, None));
    }
    let rate = exchange.rate(currency).map_err(|problem| ("currency", problem))?;
    let usd_micros = rate.usd_micros(micros).filter(|usd| *usd <= MAX_USD_MICROS_PER_GPU_HOUR);
    let usd_micros = usd_micros.ok_or_else(|| {
        (IN_ANY, format!("`{amount}` is above 1000000 USD per GPU-hour: check the unit"))
    })?;
    Ok((usd_micros, Some(format!("{amount} {currency} at {}", rate.in_words()))))
}

fn purchase(name: Option<&str>) -> Result<Option<Purchase>, Problem> {
    let Some(name) = name else { return Ok(None) };
    match Purchase::from_name(name) {
        Some(purchase) => Ok(Some(purchase)),
        None => {
            let known = Purchase::ALL.map(Purchase::name).join(", ");
            Err(("purchase", format!("`{name}` is not a purchase option: write one of {known}")))
        }
    }
}

fn as_of(day: Option<&str>) -> Result<Option<String>, Problem> {
    match day {
        Some(day) if !is_calendar_day(day) => {
            Err(("as_of", format!("`{day}` is not a day: write it as YYYY-MM-DD")))
        }
        day => Ok(day.map(str::to_owned)),
    }
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
                return Err(format!("column `{name}`: duplicate; keep one"));
            }
        }
        let is_there = |name: &str| {
            COLUMNS.iter().position(|column| *column == name).is_some_and(|at| places[at].is_some())
        };
        let missing = |name: &str| Err(format!("column `{name}` is missing: add it"));
        match () {
            () if !is_there("gpu_model") => missing("gpu_model"),
            () if !is_there("usd_per_gpu_hour") && !is_there("price_per_gpu_hour") => {
                missing("usd_per_gpu_hour")
            }
            () if is_there("price_per_gpu_hour") && !is_there("currency") => missing("currency"),
            () => Ok(Self(places)),
        }
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.0[COLUMNS.iter().position(|column| *column == name)?]
    }
}

/// One record, read by column name.
#[derive(Clone, Copy)]
struct Cells<'t> {
    columns: &'t Columns,
    record: CsvRecord<'t>,
}

impl<'t> Cells<'t> {
    /// The cell, or nothing where the column is absent or the cell is empty.
    fn text(&self, column: &str) -> Option<&'t str> {
        Some(self.record.text(self.columns.place(column)?)).filter(|text| !text.is_empty())
    }

    fn error(&self, column: &str, problem: String) -> TableError {
        self.record.bad_cell(self.columns.place(column).unwrap_or(usize::MAX), problem)
    }
}

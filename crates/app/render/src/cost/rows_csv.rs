//! A bill as CSV: one row for each key, amounts in dollars to the millionth.

use anyhow::{Context, Result};
use dovetail_console::plain::cell;
use dovetail_costing::document::{Document, RowOut};

const COLUMNS: [&str; 16] = [
    "gpu_hours",
    "allocated_gpu_hours",
    "active_gpu_hours",
    "idle_gpu_hours",
    "waste_gpu_hours",
    "blind_gpu_hours",
    "cost_usd",
    "waste_usd",
    "idle_usd",
    "lowest_usd",
    "highest_usd",
    "method",
    "unused",
    "basis",
    "from",
    "to",
];

/// The rows with a header.
pub fn rows_csv(document: &Document) -> Result<String> {
    let mut bytes = Vec::new();
    let mut writer = csv::Writer::from_writer(&mut bytes);
    let header = document.by.iter().map(String::as_str).chain(COLUMNS);
    writer.write_record(header)?;
    for row in &document.rows {
        writer.write_record(record(document, row))?;
    }
    writer.flush()?;
    drop(writer);
    String::from_utf8(bytes).context("the CSV rows are not valid UTF-8")
}

fn record(document: &Document, row: &RowOut) -> Vec<String> {
    let mut cells: Vec<String> =
        document.by.iter().map(|part| cell(row.key.get(part).map_or("", String::as_str))).collect();
    let hours = [
        row.gpu_hours,
        row.allocated_gpu_hours,
        row.active_gpu_hours,
        row.idle_gpu_hours,
        row.waste_gpu_hours,
        row.blind_gpu_hours,
    ];
    cells.extend(hours.map(|hours| format!("{hours:.4}")));
    let amounts = [
        row.cost_usd_micros,
        row.waste_usd_micros,
        row.idle_usd_micros,
        row.lowest_usd_micros,
        row.highest_usd_micros,
    ];
    cells.extend(amounts.map(dollars));
    let told = [&*document.method, document.unused, document.basis, &document.from, &document.to];
    cells.extend(told.map(str::to_owned));
    cells
}

/// All six decimals; empty where nobody knows.
fn dollars(usd_micros: Option<i64>) -> String {
    usd_micros.map_or_else(String::new, |micros| {
        let sign = if micros < 0 { "-" } else { "" };
        let micros = micros.unsigned_abs();
        format!("{sign}{}.{:06}", micros / 1_000_000, micros % 1_000_000)
    })
}

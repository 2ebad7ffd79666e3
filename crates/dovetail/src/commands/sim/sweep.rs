//! `dovetail sim sweep`: one row for every policy, trace and seed.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use clap::Args;
use dovetail_console::app::App;
use dovetail_console::table::{number, table};
use dovetail_settings::form::Output;
use serde_json::Value;

use crate::commands::sim::grid::{Grid, GridFlags};
use dovetail_replays::figures::{Metric, ReplayResult, metrics_of, money_note, shown};

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct SweepFlags {
    #[command(flatten)]
    grid: GridFlags,
}

/// Metrics that fit into the table beside the names.
const SHOWN: usize = 4;

/// Replays every combination.
pub(crate) fn run(app: &App, flags: &SweepFlags) -> Result<()> {
    let output = app.output("sim sweep")?;
    let rows = Grid::new(app, &flags.grid)?.run(false)?;
    match output {
        Output::Json => app.print_json(&serde_json::json!({
            "protocol": flags.grid.protocol.name(),
            "runs": rows,
        })),
        Output::Csv => app.print(&csv_of(&rows)?),
        _ => app.print(&table_of(&rows)),
    }
}

fn table_of(rows: &[ReplayResult]) -> String {
    // Without limits there is no distance to them.
    let known = |metric: &&Metric| rows.iter().any(|row| metric.of(row).is_some());
    let metrics = rows.first().map_or(&[][..], metrics_of).iter().filter(known);
    let metrics = shown(metrics, SHOWN);
    let mut header = vec!["trace", "policy", "seed"];
    header.extend(metrics.iter().map(|metric| metric.title));
    let cells = |row: &ReplayResult| {
        let mut cells = vec![row.trace.clone(), row.variant.clone(), row.seed.to_string()];
        cells.extend(
            metrics.iter().map(|metric| number(metric.of(row).map(|figure| metric.shown(figure)))),
        );
        cells
    };
    table(&header, rows.iter().map(cells).collect()) + money_note(&metrics)
}

/// The keys of the JSON rows as columns; a row without a key has an empty cell.
fn csv_of(rows: &[ReplayResult]) -> Result<String> {
    const FIRST: [&str; 3] = ["trace", "policy", "seed"];
    let mut objects = Vec::new();
    let mut others = BTreeSet::new();
    for row in rows {
        let Value::Object(cells) = serde_json::to_value(row)? else { continue };
        others.extend(cells.keys().filter(|key| !FIRST.contains(&key.as_str())).cloned());
        objects.push(cells);
    }
    let columns: Vec<String> = FIRST.map(str::to_owned).into_iter().chain(others).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&columns)?;
    for cells in &objects {
        writer.write_record(columns.iter().map(|column| text_of(cells.get(column))))?;
    }
    let bytes = writer.into_inner().context("cannot write the rows")?;
    Ok(String::from_utf8(bytes)?)
}

/// An empty cell for what is not known.
fn text_of(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

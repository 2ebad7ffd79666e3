//! A bill for people, at most 100 columns wide.

use dovetail_console::shortened::shortened;
use dovetail_console::table::{fits, table, whole, wrapped};
use dovetail_costing::document::{Document, RowOut};
use dovetail_costing::resolution::sentences;
use dovetail_sources::node_prices::PriceLine;
use dovetail_units::amount::{brief, percent, usd};

/// The whole bill.
pub fn terminal(document: &Document) -> String {
    let mut text = wrapped(&document.first_line(), 0);
    text += &wrapped(&document.second_line(), 0);
    sentences(&document.resolution_by_day).iter().for_each(|told| {
        text += &wrapped(&format!("{told}."), 0);
    });
    text.push('\n');
    text += &rows(document);
    if !document.notes.is_empty() {
        text.push('\n');
    }
    for note in &document.notes {
        text += &wrapped(&format!("{}.", shortened(note)), 0);
    }
    text + &price_lines(&document.prices)
}

fn rows(document: &Document) -> String {
    let all = document.headline.cost_usd_micros.unwrap_or(0);
    let is_partly_unpriced = document.total.leaves_out();
    let range = |row: &RowOut| match (row.lowest_usd_micros, row.highest_usd_micros) {
        (Some(lowest), Some(highest)) if lowest != highest => {
            format!("${} to ${}", whole(dollars(lowest)), whole(dollars(highest)))
        }
        _ => String::new(),
    };
    let cells = |row: &RowOut| {
        let mut cells: Vec<String> =
            document.by.iter().map(|part| row.key.get(part).cloned().unwrap_or_default()).collect();
        let share = row.cost_usd_micros.filter(|_| all > 0);
        // Of what has no price the row's amounts are without.
        let sign = if row.leaves_out() { "≥ " } else { "" };
        let amount = |micros: Option<i64>| match micros {
            Some(_) => format!("{sign}{}", usd(micros)),
            None => usd(None),
        };
        cells.push(brief(row.gpu_hours));
        if is_partly_unpriced {
            cells.push(brief(row.unpriced_gpu_hours));
        }
        cells.push(amount(row.cost_usd_micros));
        cells.push(share.map_or_else(|| "-".to_owned(), |cost| percent(cost as f64 / all as f64)));
        cells.push(amount(row.waste_usd_micros));
        cells.push(range(row));
        cells
    };
    // What costs nothing under this method says nothing here; the other forms have every row.
    let told =
        document.rows.iter().filter(|row| row.gpu_hours > 0.0 || row.cost_usd_micros != Some(0));
    let mut lines: Vec<Vec<String>> = told.map(cells).collect();
    let mut total = cells(&document.total);
    if let Some(first) = total.first_mut() {
        *first = "total".to_owned();
    }
    lines.push(total);
    let mut header: Vec<&str> = document.by.iter().map(String::as_str).collect();
    header.push("GPU-hours");
    if is_partly_unpriced {
        header.push("unpriced");
    }
    header.extend(["cost", "share", "waste", "cost by method"]);
    if fits(&header, &lines) {
        return table(&header, lines);
    }
    // Names before the range, which the other forms have.
    header.pop();
    lines.iter_mut().for_each(|line| line.truncate(header.len()));
    table(&header, lines)
}

fn dollars(usd_micros: i64) -> u64 {
    (usd_micros.max(0).unsigned_abs() + 500_000) / 1_000_000
}

/// What the amounts rest on.
pub(crate) fn price_lines(prices: &[PriceLine]) -> String {
    let mut text = String::new();
    for line in prices {
        let model = line.model.as_deref().unwrap_or("unknown model");
        let place = match (&line.provider, &line.region) {
            (Some(provider), Some(region)) => format!(" in {provider} {region}"),
            (Some(provider), None) => format!(" at {provider}"),
            _ => String::new(),
        };
        let day = line.as_of.as_deref().map(|day| format!(", {day}")).unwrap_or_default();
        let source = line.source.as_deref().unwrap_or_default();
        if line.usd_micros_per_gpu_hour.is_some() {
            let price = usd(line.usd_micros_per_gpu_hour);
            let words = |purchase: &str| purchase.replace('_', "-");
            let bought = words(line.purchase);
            let instead = line.priced_as.map(words).map(|of| format!(" {of}")).unwrap_or_default();
            let told =
                format!("{model}{place}, {bought}: {price} per GPU-hour{instead} ({source}{day}).");
            text += &wrapped(&told, 0);
        }
    }
    if text.is_empty() { text } else { "\n".to_owned() + &text }
}

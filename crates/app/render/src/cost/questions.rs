//! Answers for people, at most 100 columns wide.

use dovetail_console::shortened::shortened;
use dovetail_console::table::{fits, table, wrapped};
use dovetail_costing::questions::answer::{AnswerCell, AnswerRow, CostAnswer};
use dovetail_costing::questions::document::{Answered, Document};
use dovetail_units::amount::{tenths, whole};
use dovetail_units::duration::duration_of_seconds;

use crate::cost::terminal::price_lines;

/// All answers.
pub fn terminal(document: &Document) -> String {
    let period = match document.basis {
        "run-rate" => format!(
            "Unless an answer says otherwise, hours and amounts are a run rate: the snapshot taken \
             at {}, extrapolated to {} days",
            document.from,
            whole(document.days)
        ),
        _ => {
            let (from, to) = (&document.from, &document.to);
            format!("From {from} to {to} ({} days)", tenths(document.days))
        }
    };
    let sampled = match (document.sampled_hours, document.sample_step_s) {
        (Some(hours), Some(step_s)) => {
            let (every, over) = (duration_of_seconds(step_s), duration_of_seconds(3_600.0 * hours));
            format!("GPU use was sampled every {every} over {over}")
        }
        _ => "GPU use was not measured".to_owned(),
    };
    let mut text = wrapped(&format!("{period}; {sampled}. Method {}.", document.method), 0);
    document.answers.iter().for_each(|answer| text += &one(answer));
    text.push('\n');
    for note in &document.notes {
        text += &wrapped(&format!("{}.", shortened(note)), 0);
    }
    text + &price_lines(&document.prices)
}

/// What a table is too wide for, by its first column; JSON has it. A pod's name has most of its
/// owner's in it.
const SPARE: [(&str, &str); 3] = [("pod", "job"), ("run", "failed_gpu_hours"), ("run", "team")];

fn one(Answered { answer, range }: &Answered) -> String {
    let mut text = format!("\n{}", wrapped(&format!("{} ({})", answer.question, answer.name), 0));
    if let Some(because) = &answer.unknown_because {
        return text + &wrapped(&format!("Unknown: {because}."), 0);
    }
    if let Some(because) = &answer.none_because {
        text += &wrapped(&format!("None: {because}."), 0);
        return text + &wrapped(&format!("How: {}.", answer.how), 0);
    }
    match answer.rows.first() {
        None => text += "None.\n",
        Some(first) => {
            let drawn = first.0.iter().filter(|(_, cell)| !matches!(cell, AnswerCell::List(_)));
            let mut wanted: Vec<&str> = drawn.map(|(name, _)| *name).collect();
            let (mut header, mut rows) = columns(answer, &wanted);
            let about = wanted.first().copied().unwrap_or_default();
            for (_, spare) in SPARE.iter().filter(|(of, _)| *of == about) {
                if fits(&names(&header), &rows) {
                    break;
                }
                wanted.retain(|name| name != spare);
                (header, rows) = columns(answer, &wanted);
            }
            text += &table(&names(&header), rows);
            answer.rows.iter().for_each(|row| text += &listed(row));
            if let Some(range) = range {
                text += &wrapped(&format!("By method: {}.", range.words()), 0);
            }
        }
    }
    text + &wrapped(&format!("How: {}. Limits: {}.", answer.how, answer.uncertainty), 0)
}

/// What a row is made of, each with its name.
fn listed(row: &AnswerRow) -> String {
    let name = row.0.first().map(|(_, cell)| cell.text()).unwrap_or_default();
    let mut lines = String::new();
    for (key, cell) in &row.0 {
        let AnswerCell::List(parts) = cell else { continue };
        let part = |part: &AnswerRow| {
            let cells = part.0.iter().map(|(key, cell)| match cell {
                AnswerCell::Hours(_) => format!("{} {}", cell.text(), heading(key)),
                _ => shown(key, cell),
            });
            cells.collect::<Vec<_>>().join(", ")
        };
        let parts: Vec<String> = parts.iter().map(part).collect();
        if !parts.is_empty() {
            lines += &wrapped(&format!("{name}, {}: {}.", heading(key), parts.join("; ")), 0);
        }
    }
    lines
}

/// A cell; names of states and causes as people write them.
fn shown(key: &str, cell: &AnswerCell) -> String {
    match key {
        "cause" | "mostly" => cell.text().replace('_', " "),
        "bought" => cell.text().replace("on demand", "on-demand"),
        _ => cell.text(),
    }
}

/// Headings and cells of some columns.
fn columns(answer: &CostAnswer, wanted: &[&str]) -> (Vec<String>, Vec<Vec<String>>) {
    let of_row = |row: &AnswerRow| {
        let cells = row.0.iter().filter(|(name, _)| wanted.contains(name));
        cells.map(|(name, cell)| shown(name, cell)).collect()
    };
    let header = wanted.iter().map(|name| heading(name)).collect();
    (header, answer.rows.iter().map(of_row).collect())
}

fn names(header: &[String]) -> Vec<&str> {
    header.iter().map(String::as_str).collect()
}

/// What a share is of, and other headings, where the key alone does not say it.
const HEADINGS: [(&str, &str); 8] = [
    ("waste_share", "waste of allocated"),
    ("idle_share", "idle of allocated"),
    ("active_share", "active of allocated"),
    ("share", "of training"),
    ("utilisation", "mean utilization"),
    ("bought", "purchase option"),
    ("utilisation_at_least", "at least"),
    ("utilisation_at_most", "at most"),
];

/// A key as people read it; the unit stands in the cells.
fn heading(name: &str) -> String {
    if let Some((_, heading)) = HEADINGS.iter().find(|(key, _)| *key == name) {
        return (*heading).to_owned();
    }
    let name = name.trim_end_matches("_usd_micros").trim_end_matches("_s");
    name.replace("gpus", "GPUs").replace("gpu_hours", "GPU-hours").replace('_', " ")
}

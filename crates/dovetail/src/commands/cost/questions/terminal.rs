//! Answers for people, at most 100 columns wide.

use super::answer::{Answer, Cell, Row};
use super::document::Document;
use crate::commands::cost::terminal::price_lines;
use crate::output::table::{duration, fits, table, wrapped};

/// All answers.
pub(super) fn terminal(document: &Document) -> String {
    let period = match document.basis {
        "run-rate" => format!(
            "Hours and amounts are a run rate: one snapshot of {}, as if it lasted {:.0} days",
            document.from, document.days
        ),
        _ => format!("From {} to {} ({:.1} days)", document.from, document.to, document.days),
    };
    let sampled = match (document.sampled_hours, document.sample_step_s) {
        (Some(hours), Some(step_s)) => {
            format!("what GPUs did was read every {} over {hours:.1} h", duration(step_s))
        }
        _ => "nobody measured what GPUs did".to_owned(),
    };
    let mut text = wrapped(&format!("{period}; {sampled}. Method {}.", document.method), 0);
    document.answers.iter().for_each(|answer| text += &one(answer));
    text.push('\n');
    document.notes.iter().for_each(|note| text += &wrapped(&format!("{note}."), 0));
    text + &price_lines(&document.prices)
}

fn one(answer: &Answer) -> String {
    let mut text = format!("\n{}", wrapped(&format!("{} ({})", answer.question, answer.name), 0));
    if let Some(because) = &answer.unknown_because {
        return text + &wrapped(&format!("Unknown: {because}."), 0);
    }
    match answer.rows.first() {
        None => text += "None.\n",
        Some(first) => {
            let all: Vec<&str> = first.0.iter().map(|(name, _)| *name).collect();
            let (header, rows) = columns(answer, &all);
            // A pod's name has most of its owner's in it.
            let fewer: Vec<&str> = all.iter().copied().filter(|name| *name != "job").collect();
            let fits = fits(&names(&header), &rows) || !all.contains(&"pod");
            let (header, rows) = if fits { (header, rows) } else { columns(answer, &fewer) };
            text += &table(&names(&header), rows);
        }
    }
    text + &wrapped(&format!("How: {}. But: {}.", answer.how, answer.uncertainty), 0)
}

/// Headings and cells of some columns.
fn columns(answer: &Answer, wanted: &[&str]) -> (Vec<String>, Vec<Vec<String>>) {
    let of_row = |row: &Row| {
        let cells = row.0.iter().filter(|(name, _)| wanted.contains(name));
        cells.map(|(_, cell)| Cell::text(cell)).collect()
    };
    let header = wanted.iter().map(|name| heading(name)).collect();
    (header, answer.rows.iter().map(of_row).collect())
}

fn names(header: &[String]) -> Vec<&str> {
    header.iter().map(String::as_str).collect()
}

/// A key as people read it; the unit stands in the cells.
fn heading(name: &str) -> String {
    name.trim_end_matches("_usd_micros").replace("gpu_hours", "GPU-hours").replace('_', " ")
}

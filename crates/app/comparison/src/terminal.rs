//! The same comparison as tables for the terminal.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use dovetail_units::amount::counted;

use crate::arrivals::MEASURES;
use crate::html::check;
use crate::number::printable;
use crate::page::ReportError;
use crate::spread::Spread;
use crate::timed::groups;
use dovetail_sim::comparison::{ArrivalComparison, ReportData, TimedComparison};

const WIDTH: u16 = 100;

/// Policies beside each other in one table.
const BESIDE: usize = 4;

/// Tables of at most 100 columns: allocation, free GPUs by cause, queue times, dollars a month.
///
/// # Errors
/// [`ReportError`] if there is nothing to show, or the policies have different numbers of runs.
pub fn text(data: &ReportData) -> Result<String, ReportError> {
    check(data)?;
    let timed = data.timed.iter().map(of_timed);
    let parts: Vec<String> = timed.chain(data.arrivals.iter().map(of_arrivals)).collect();
    Ok(parts.join("\n"))
}

fn title(trace: &str, nodes: u64, gpus: u64) -> String {
    let (nodes, gpus) = (counted(nodes, "node"), counted(gpus, "GPU"));
    format!("{}: {nodes}, {gpus}\n\n", printable(trace))
}

fn of_timed(comparison: &TimedComparison) -> String {
    let groups = groups(comparison);
    let mut text = title(&comparison.trace, comparison.nodes, comparison.gpus);
    for policies in comparison.policies.chunks(BESIDE) {
        let header = policies.iter().map(|policy| printable(&policy.policy));
        let mut rows = Vec::new();
        for group in &groups {
            rows.push(vec![group.name.to_owned()]);
            for measure in &group.measures {
                let indent = if measure.is_part { "    " } else { "  " };
                let mut row = vec![format!("{indent}{}", measure.name)];
                row.extend(policies.iter().map(|policy| measure.text(policy)));
                rows.push(row);
            }
        }
        text += &table(std::iter::once(String::new()).chain(header).collect(), rows);
    }
    text
}

/// Means, and the spread of the most important figure; there is no room for more.
fn of_arrivals(comparison: &ArrivalComparison) -> String {
    let rows = comparison.policies.iter().map(|policy| {
        let cells = MEASURES.iter().enumerate().map(|(place, measure)| {
            let spread = measure.spread(comparison, policy);
            let spread = spread.map(|spread| match place {
                0 => spread,
                _ => Spread { deviation: None, ..spread },
            });
            Spread::full_text(spread, measure.unit).replace(" %", "")
        });
        std::iter::once(printable(&policy.policy)).chain(cells).collect()
    });
    let header = MEASURES.iter().map(|measure| measure.short.to_owned());
    let header = std::iter::once(String::new()).chain(header).collect();
    title(&comparison.trace, comparison.nodes, comparison.gpus) + &table(header, rows.collect())
}

/// First column text, the others numbers.
fn table(header: Vec<String>, rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_BORDERS_ONLY_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table.set_header(header);
    table.add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let lines = table.to_string();
    lines.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

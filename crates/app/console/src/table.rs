//! Tables of at most 100 columns, and numbers as people read them.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};

pub use dovetail_model::grouped as whole;
use dovetail_units::amount::{self, fine_percent, hundredths};

/// Columns of everything that is printed for people.
pub const COLUMNS: usize = 100;
const WIDTH: u16 = COLUMNS as u16;
/// What most terminals have at the least.
const NARROW: u16 = 80;
/// What a number or an amount starts with; a dash stands for an unknown one.
const NUMERIC: [char; 14] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '-', '+', '$', '≥'];

/// Lines of a table; columns of numbers stand to the right. Where it would be too wide, headers of
/// numbers are broken, then texts with blanks in them, the last column first, then the widest; a
/// number never is.
pub fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    table_within(WIDTH, header, rows)
}

/// The same in 80 columns, or in as many more as it needs to break no text.
pub fn narrow_table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let columns = (0..header.len()).map(|place| ColumnWidth::of(header[place], &rows, place));
    let wider = excess(&columns.collect::<Vec<_>>(), NARROW);
    table_within(
        WIDTH.min(NARROW.saturating_add(u16::try_from(wider).unwrap_or(WIDTH))),
        header,
        rows,
    )
}

fn table_within(width: u16, header: &[&str], rows: Vec<Vec<String>>) -> String {
    let columns: Vec<ColumnWidth> =
        (0..header.len()).map(|place| ColumnWidth::of(header[place], &rows, place)).collect();
    let broken = broken_texts(&columns, width);
    let mut table = Table::new();
    table.load_style(presets::ASCII_BORDERS_ONLY_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    table.set_header(header);
    table.add_rows(rows);
    for (place, (drawn, column)) in table.column_iter_mut().zip(&columns).enumerate() {
        if column.is_numeric {
            drawn.set_cell_alignment(CellAlignment::Right);
            let least = Width::Fixed((column.least + PADDING) as u16);
            drawn.set_constraint(ColumnConstraint::LowerBoundary(least));
        } else if !broken.contains(&place) {
            drawn.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    let lines = table.to_string();
    lines.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Whether a table needs no text broken.
pub fn fits(header: &[&str], rows: &[Vec<String>]) -> bool {
    let columns = (0..header.len()).map(|place| ColumnWidth::of(header[place], rows, place));
    excess(&columns.collect::<Vec<_>>(), WIDTH) == 0
}

/// How wide a column must be, in characters.
struct ColumnWidth {
    is_numeric: bool,
    /// Numbers, the longest of a list, and the longest word of the header; of texts everything.
    least: usize,
    has_blanks: bool,
}

impl ColumnWidth {
    fn of(header: &str, rows: &[Vec<String>], place: usize) -> Self {
        let cells = || rows.iter().filter_map(|row| row.get(place));
        let is_numeric = cells().all(|cell| cell.is_empty() || cell.starts_with(NUMERIC));
        let width = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        // Amounts of several things are a list, which is broken between them.
        let parts = |cell: &String| match is_numeric {
            true => cell.split(", ").map(width).max().unwrap_or(0),
            false => width(cell),
        };
        let widest = cells().map(parts).max().unwrap_or(0);
        let of_header = match is_numeric {
            true => header.split(' ').map(width).max().unwrap_or(0),
            false => width(header),
        };
        let has_blanks = cells().any(|cell| cell.contains(' '));
        Self { is_numeric, least: widest.max(of_header), has_blanks }
    }
}

/// Blanks at both sides of a cell, and what stands between two columns.
const PADDING: usize = 2;
/// A text that is broken has at least so much room.
const BROKEN_WIDTH: usize = 10;

/// By how much the columns are too wide.
fn excess(columns: &[ColumnWidth], width: u16) -> usize {
    let all: usize = columns.iter().map(|column| column.least + PADDING + 1).sum();
    (all + 1).saturating_sub(usize::from(width))
}

/// Places of the columns whose texts are broken.
fn broken_texts(columns: &[ColumnWidth], width: u16) -> Vec<usize> {
    let mut excess = excess(columns, width);
    let mut order: Vec<usize> =
        (0..columns.len()).filter(|place| !columns[*place].is_numeric).collect();
    order.sort_by_key(|place| {
        let ColumnWidth { has_blanks, least, .. } = columns[*place];
        let place = if has_blanks { columns.len() - place } else { 0 };
        (std::cmp::Reverse(has_blanks), place, std::cmp::Reverse(least))
    });
    let mut broken = Vec::new();
    for place in order {
        if excess == 0 {
            break;
        }
        // That would gain nothing.
        if columns[place].least <= BROKEN_WIDTH {
            continue;
        }
        excess = excess.saturating_sub(columns[place].least.saturating_sub(BROKEN_WIDTH));
        broken.push(place);
    }
    broken
}

/// Two columns: what, and its value.
pub fn facts(rows: Vec<(&str, String)>) -> String {
    let width = rows.iter().map(|(what, _)| what.chars().count()).max().unwrap_or(0);
    let line = |(what, value): (&str, String)| format!("{what:width$}  {value}\n");
    rows.into_iter().map(line).collect()
}

/// A text in lines of at most 100 columns, broken at blanks; the first is indented so far, the
/// others more.
pub fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = String::new();
    let mut line = " ".repeat(indent);
    let mut is_empty = true;
    for word in text.split(' ') {
        let more = word.chars().count() + usize::from(!is_empty);
        if !is_empty && line.chars().count() + more > usize::from(WIDTH) {
            lines += &line;
            lines.push('\n');
            line = " ".repeat(indent + 4);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line += word;
        is_empty = false;
    }
    lines + &line + "\n"
}

/// At most so many characters of a text; a cut one ends in `…`.
pub fn cut(text: &str, columns: usize) -> String {
    match text.chars().count() > columns {
        true => text.chars().take(columns.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// A number of things: `1 node`, `12 nodes`.
pub fn counted(count: usize, thing: &str) -> String {
    amount::counted(count as u64, thing)
}

/// A number of things in words of their own: `1 pod was`, `2 pods were`.
pub fn plural(count: usize, one: &str, many: &str) -> String {
    amount::plural(count as u64, one, many)
}

/// A percentage to the hundredth; a dash for what is not known.
pub fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), fine_percent)
}

/// A number to the hundredth; a dash for what is not known.
pub fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), hundredths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_broken_at_blanks() {
        let text = "word ".repeat(50);
        let lines = wrapped(text.trim_end(), 2);
        assert!(
            lines.lines().count() == 3 && lines.lines().all(|line| line.len() <= 100),
            "{lines}"
        );
        assert_eq!(lines.split_whitespace().count(), 50);
        assert_eq!(wrapped("short", 0), "short\n");
    }

    /// Seven columns that do not fit: the last text with blanks is broken, and no number is.
    #[test]
    fn a_number_is_never_broken() {
        let row = |cause: &str| -> Vec<String> {
            let cells = ["platform-engineering", cause, "1,234,567.8", "$1,234,567.89", "12.3%"];
            let rest = ["$1,234,567.89", "$1,234,567 to $12,345,678"];
            cells.into_iter().chain(rest).map(str::to_owned).collect()
        };
        let header = ["team", "cause", "GPU-hours", "cost", "share", "waste", "cost by method"];
        let text = table(&header, vec![row("free_draining_or_cordoned"), row("idle")]);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        for whole in ["1,234,567.8 ", "GPU-hours ", "$1,234,567.89 ", "12.3%"] {
            assert!(text.contains(whole), "{whole}: {text}");
        }
    }

    #[test]
    fn numbers_are_grouped_by_three() {
        let cases = [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")];
        for (number, text) in cases {
            assert_eq!(whole(number), text);
        }
    }
}

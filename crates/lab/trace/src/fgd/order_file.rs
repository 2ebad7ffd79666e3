//! Reads published orders: `seed,row row ...` for arrivals, `trace,seed,row row ...` for nodes.
//!
//! Rows are indices, from 0, into the pod or node file. Plain text or gzip.

use std::path::Path;

use crate::error::TraceError;
use crate::read::{Cell, LineReader, RowProblem};

/// Reads the arrival order for a seed.
///
/// # Errors
/// [`TraceError`] when the file has no line for the seed, or the line is bad; every index must be
/// below `pod_count`.
pub fn read_arrival_order(
    path: &Path,
    seed: i64,
    pod_count: usize,
) -> Result<Vec<u32>, TraceError> {
    find(path, &[seed.to_string()], &["seed"], pod_count)
}

/// Reads the order of nodes for a trace and a seed; the first wins ties.
///
/// # Errors
/// [`TraceError`] when the file has no line for the trace and the seed, or the line is bad; every
/// node must be there once.
pub fn read_node_order(
    path: &Path,
    trace: &str,
    seed: i64,
    node_count: usize,
) -> Result<Vec<u32>, TraceError> {
    let keys = [trace.to_owned(), seed.to_string()];
    let mut lines = Order::open(path, &keys, &["trace", "seed"])?;
    let order = lines.rows(node_count)?;
    let mut seen = vec![false; node_count];
    for row in &order {
        if std::mem::replace(&mut seen[*row as usize], true) {
            let problem = "is there twice";
            return Err(lines.bad(&row.to_string(), problem, "each node once"));
        }
    }
    if order.len() != node_count {
        let text = format!("{} rows", order.len());
        return Err(lines.bad(&text, "leave nodes out", format!("{node_count} rows")));
    }
    Ok(order)
}

/// The name of a trace in order files: the pods file's name without `openb_pod_list_` and `.csv`
/// (and `.gz`).
pub fn trace_name(pods_file: &Path) -> String {
    let name = pods_file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let name = name.strip_suffix(".csv").unwrap_or(name);
    name.strip_prefix("openb_pod_list_").unwrap_or(name).to_owned()
}

fn find(
    path: &Path,
    keys: &[String],
    names: &[&'static str],
    row_count: usize,
) -> Result<Vec<u32>, TraceError> {
    Order::open(path, keys, names)?.rows(row_count)
}

/// The one line that was asked for.
struct Order {
    file: String,
    line: u64,
    rows: String,
}

impl Order {
    fn open(path: &Path, keys: &[String], names: &[&'static str]) -> Result<Self, TraceError> {
        let mut lines = LineReader::open(path)?;
        let mut found: Option<Self> = None;
        let mut present = Vec::new();
        while lines.advance()? {
            let fields = match std::str::from_utf8(lines.bytes()) {
                Ok(text) => text.splitn(keys.len() + 1, ',').collect(),
                Err(_) => Vec::new(),
            };
            if fields.len() != keys.len() + 1 {
                let text = String::from_utf8_lossy(lines.bytes());
                let expected = format!("{},row row ...", names.join(","));
                let problem = RowProblem::whole_row(text, "is not such a line", expected);
                return Err(TraceError::Row(Box::new(problem.at(lines.file(), lines.line()))));
            }
            if keys.iter().zip(&fields).all(|(key, field)| key == field) {
                if let Some(first) = &found {
                    let problem = format!("was already on line {}", first.line);
                    let key = keys.join(",");
                    let problem = RowProblem::in_column(&names.join(","), &key, problem, "one row");
                    return Err(TraceError::Row(Box::new(problem.at(lines.file(), lines.line()))));
                }
                found = Some(Self {
                    file: lines.file().to_owned(),
                    line: lines.line(),
                    rows: fields[keys.len()].to_owned(),
                });
            }
            present.push(fields[..keys.len()].join(" "));
        }
        if let Some(order) = found {
            return Ok(order);
        }
        let named = |(name, key): (&&str, &String)| format!("{name} {key}");
        let wanted: Vec<String> = names.iter().zip(keys).map(named).collect();
        Err(TraceError::NoOrder {
            file: lines.file().to_owned(),
            wanted: wanted.join(", "),
            present: if present.is_empty() { "none".into() } else { present.join(", ") },
        })
    }

    fn rows(&mut self, row_count: usize) -> Result<Vec<u32>, TraceError> {
        let rows = std::mem::take(&mut self.rows);
        let highest = row_count.saturating_sub(1) as u64;
        let parse = |text| Cell { column: "row", text }.whole(highest.min(u32::MAX.into()));
        let order: Result<Vec<u32>, RowProblem> =
            rows.split(' ').map(|text| parse(text).map(|row| row as u32)).collect();
        order.map_err(|problem| TraceError::Row(Box::new(problem.at(&self.file, self.line))))
    }

    fn bad(&self, text: &str, problem: &str, expected: impl Into<String>) -> TraceError {
        let problem = RowProblem::in_column("row", text, problem, expected);
        TraceError::Row(Box::new(problem.at(&self.file, self.line)))
    }
}

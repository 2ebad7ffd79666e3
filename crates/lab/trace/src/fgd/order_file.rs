//! Reads published orders: `seed,row row ...` for arrivals, `trace,seed,row row ...` for nodes.
//!
//! Rows are indices, from 0, into the pod or node file. Plain text or gzip.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::TraceError;
use crate::read::{LineReader, RowProblem, TextCell, empty};

/// Reads the arrival order for a seed.
///
/// The experiments repeat pods where a trace requests too little GPU, and leave pods out where it
/// requests too much ([`super::fgd_orders`]), but never both. An order that does both is damaged.
///
/// # Errors
/// [`TraceError`] when the file has no line for the seed, or the line is bad; every index must be
/// below `pod_count`, and pods may be repeated only if none is left out.
pub fn read_arrival_order(
    path: &Path,
    seed: i64,
    pod_count: usize,
) -> Result<Vec<u32>, TraceError> {
    let mut line = OrderLine::open(path, None, seed)?;
    let order = line.rows(pod_count)?;
    let uses = RowUses::of(&order, pod_count);
    if let (Some(row), Some(missing)) = (uses.repeated, uses.missing) {
        let left_out = pod_count - uses.named;
        let problem = format!("is listed twice, but {left_out} of the pods are left out");
        let expected = format!(
            "an order that repeats pods or leaves pods out, not both (the first pod that is left \
             out is row {missing})"
        );
        return Err(line.bad(&row.to_string(), &problem, expected));
    }
    Ok(order)
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
    let mut lines = OrderLine::open(path, Some(trace), seed)?;
    let order = lines.rows(node_count)?;
    let uses = RowUses::of(&order, node_count);
    if let Some(row) = uses.repeated {
        return Err(lines.bad(&row.to_string(), "is listed twice", "each node once"));
    }
    if let Some(missing) = uses.missing {
        let problem = format!("names {} of the nodes", order.len());
        let expected = format!("all {node_count} (the first one missing is row {missing})");
        let problem = RowProblem::whole_row("", problem, expected);
        return Err(TraceError::Row(Box::new(problem.at(&lines.file, lines.line))));
    }
    Ok(order)
}

/// Which rows an order names.
struct RowUses {
    /// Rows that it names at least once.
    named: usize,
    /// The first row that it names again.
    repeated: Option<u32>,
    /// The lowest row that it does not name.
    missing: Option<usize>,
}

impl RowUses {
    fn of(order: &[u32], row_count: usize) -> Self {
        let mut seen = vec![false; row_count];
        let mut repeated = None;
        for row in order {
            if std::mem::replace(&mut seen[*row as usize], true) {
                repeated.get_or_insert(*row);
            }
        }
        let named = seen.iter().filter(|seen| **seen).count();
        Self { named, repeated, missing: seen.iter().position(|seen| !seen) }
    }
}

/// The name of a trace in order files: the pods file's name without `openb_pod_list_` and `.csv`
/// (and `.gz`).
pub fn trace_name(pods_file: &Path) -> String {
    let name = pods_file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let name = name.strip_suffix(".csv").unwrap_or(name);
    name.strip_prefix("openb_pod_list_").unwrap_or(name).to_owned()
}

/// The one line that was asked for.
struct OrderLine {
    file: String,
    line: u64,
    rows: String,
}

impl OrderLine {
    /// The line of a seed, and of a trace where lines begin with one.
    fn open(path: &Path, trace: Option<&str>, seed: i64) -> Result<Self, TraceError> {
        let mut lines = LineReader::open(path)?;
        let mut found: Option<Self> = None;
        let mut present: Vec<String> = Vec::new();
        let mut first_lines = BTreeMap::new();
        while lines.advance()? {
            let (key, rows) = key_and_rows(lines.bytes(), trace.is_some())
                .map_err(|problem| problem.at(lines.file(), lines.line()))
                .map_err(Box::new)?;
            let name = in_short(key);
            if let Some(first) = first_lines.insert(name.clone(), lines.line()) {
                let problem = format!("is a duplicate of line {first}");
                let problem = RowProblem::in_column("seed", &key.1.to_string(), problem, "one row");
                return Err(TraceError::Row(Box::new(problem.at(lines.file(), lines.line()))));
            }
            if key.0 == trace && key.1 == seed as u64 {
                found = Some(Self {
                    file: lines.file().to_owned(),
                    line: lines.line(),
                    rows: rows.to_owned(),
                });
            }
            present.push(name);
        }
        if present.is_empty() {
            return Err(empty(&lines, format!("lines {}", form(trace.is_some()))));
        }
        found.ok_or_else(|| TraceError::NoOrder {
            file: lines.file().to_owned(),
            wanted: named((trace, seed as u64)),
            present: present.join(", "),
        })
    }

    fn rows(&mut self, row_count: usize) -> Result<Vec<u32>, TraceError> {
        let rows = std::mem::take(&mut self.rows);
        let highest = row_count.saturating_sub(1) as u64;
        let parse = |text| TextCell { column: "row", text }.whole(highest.min(u32::MAX.into()));
        let order: Result<Vec<u32>, RowProblem> =
            rows.split(' ').map(|text| parse(text).map(|row| row as u32)).collect();
        order.map_err(|problem| TraceError::Row(Box::new(problem.at(&self.file, self.line))))
    }

    fn bad(&self, text: &str, problem: &str, expected: impl Into<String>) -> TraceError {
        let problem = RowProblem::in_column("row", text, problem, expected);
        TraceError::Row(Box::new(problem.at(&self.file, self.line)))
    }
}

/// Trace, if lines begin with one, and seed of a line, with its rows.
type Line<'l> = ((Option<&'l str>, u64), &'l str);

fn key_and_rows(bytes: &[u8], has_trace: bool) -> Result<Line<'_>, RowProblem> {
    let bad = || {
        let text = String::from_utf8_lossy(bytes);
        RowProblem::whole_row(text, "has another form", form(has_trace))
    };
    let text = std::str::from_utf8(bytes).map_err(|_| bad())?;
    let (trace, rest) = match has_trace {
        true => text.split_once(',').map(|(trace, rest)| (Some(trace), rest)).ok_or_else(bad)?,
        false => (None, text),
    };
    let (seed, rows) = rest.split_once(',').ok_or_else(bad)?;
    let seed = TextCell { column: "seed", text: seed }.whole(i64::MAX as u64)?;
    Ok(((trace, seed), rows))
}

/// How a line is written.
fn form(has_trace: bool) -> &'static str {
    if has_trace { "trace,seed,row row ..." } else { "seed,row row ..." }
}

fn in_short((trace, seed): (Option<&str>, u64)) -> String {
    trace.map_or_else(|| seed.to_string(), |trace| format!("{trace} {seed}"))
}

fn named((trace, seed): (Option<&str>, u64)) -> String {
    match trace {
        Some(trace) => format!("trace {trace}, seed {seed}"),
        None => format!("seed {seed}"),
    }
}

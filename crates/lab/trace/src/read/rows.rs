//! The loop over rows that all readers share.

use std::collections::HashMap;

use super::table::NextRow;
use super::{FileTable, RowProblem, RowView};
use crate::error::{RowError, SkippedRow, TraceError, shortened};
use crate::format::ReadOptions;
use crate::limits::MAX_GPUS;
use crate::node::TraceNode;

/// What [`read_rows`] found.
pub(crate) struct Rows<T> {
    pub(crate) values: Vec<T>,
    /// Line of each value.
    pub(crate) lines: Vec<u64>,
    pub(crate) skipped: Vec<SkippedRow>,
}

/// Reads all rows with `parse`, which returns `None` for rows that the format tells to pass over.
///
/// `id` gives a value's name, which must be unique, and `id_column` the column it stands in.
pub(crate) fn read_rows<T>(
    table: &mut FileTable,
    options: &ReadOptions,
    id_column: &'static str,
    id: impl Fn(&T) -> &str,
    mut parse: impl FnMut(RowView<'_>) -> Result<Option<T>, RowProblem>,
) -> Result<Rows<T>, TraceError> {
    let mut rows = Rows { values: Vec::new(), lines: Vec::new(), skipped: Vec::new() };
    let mut first_lines: HashMap<String, u64> = HashMap::new();
    loop {
        let parsed = match table.advance()? {
            NextRow::End => break,
            NextRow::Bad(problem) => Err(problem),
            NextRow::Row => parse(table.row()).and_then(|value| match value {
                Some(value) => unique(&mut first_lines, id_column, id(&value), table.line())
                    .map(|()| Some(value)),
                None => Ok(None),
            }),
        };
        match parsed {
            Ok(Some(value)) => {
                rows.values.push(value);
                rows.lines.push(table.line());
            }
            Ok(None) => {}
            Err(problem) => {
                let error = problem.at(table.file(), table.line());
                if !options.skip_bad_rows {
                    return Err(TraceError::Row(Box::new(error)));
                }
                rows.skipped.push(error.into());
            }
        }
    }
    if rows.values.is_empty() {
        return Err(no_rows(table, &rows.skipped));
    }
    Ok(rows)
}

/// GPUs of the machines read so far, of which a cluster has at most [`MAX_GPUS`].
#[derive(Default)]
pub(crate) struct ClusterGpus(u32);

impl ClusterGpus {
    /// Adds a machine, or says that it is one too many; `column` is that of the number of GPUs.
    pub(crate) fn add(&mut self, node: &TraceNode, column: &str) -> Result<(), RowProblem> {
        match self.0.checked_add(node.gpu_count).filter(|gpus| *gpus <= MAX_GPUS) {
            Some(gpus) => {
                self.0 = gpus;
                Ok(())
            }
            None => {
                let problem = format!("exceeds {MAX_GPUS} GPUs in total with the rows before");
                let expected = "a smaller cluster";
                Err(RowProblem::in_column(column, &node.gpu_count.to_string(), problem, expected))
            }
        }
    }
}

fn unique(
    first_lines: &mut HashMap<String, u64>,
    column: &'static str,
    id: &str,
    line: u64,
) -> Result<(), RowProblem> {
    match first_lines.insert(id.to_owned(), line) {
        None => Ok(()),
        Some(first) => {
            // The first row is the one that counts, also for a third of the same name.
            first_lines.insert(id.to_owned(), first);
            let problem = format!("was already used on line {first}");
            Err(RowProblem::in_column(column, id, problem, "a name used once"))
        }
    }
}

fn no_rows(table: &FileTable, skipped: &[SkippedRow]) -> TraceError {
    let first = skipped.first().map(|row| format!("line {}: {}", row.line, row.reason));
    TraceError::NoRows {
        file: table.file().to_owned(),
        skipped: skipped.len(),
        first: first.unwrap_or_default(),
        expected: format!("at least one row of {}", table.holds()),
    }
}

impl RowProblem {
    /// Adds the place.
    pub(crate) fn at(self, file: &str, line: u64) -> RowError {
        RowError {
            file: file.to_owned(),
            line,
            column: self.column,
            text: shortened(&self.text),
            problem: self.problem,
            expected: self.expected,
        }
    }
}

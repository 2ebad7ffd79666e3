//! Reading files: the entry points, and the loop over rows that all readers share.

mod cell;
mod csv_row;
mod job_table;
mod lines;
mod openb;
mod own;
mod small;
mod swf;
mod table;

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

pub(crate) use cell::Cell;
pub use cell::RowProblem;
pub(crate) use lines::LineReader;
pub(crate) use own::{JOB_COLUMNS, NODE_COLUMNS};
pub use small::{SmallRow, SmallTable};
pub(crate) use table::{Column, RowView, Table};

use crate::error::{RowError, SkippedRow, TraceError, shortened};
use crate::format::{FORMATS, Format, ReadOptions};
use crate::limits::MAX_GPUS;
use crate::node::{Cluster, TraceNode};
use crate::trace::Trace;
use table::Next;

/// Reads the jobs of a file, plain or gzip.
///
/// # Errors
/// [`TraceError`] for anything unreadable; the first bad row unless `options.skip_bad_rows`.
pub fn read_trace(path: &Path, options: &ReadOptions) -> Result<Trace, TraceError> {
    trace_of(LineReader::open(path)?, options)
}

/// Reads jobs from a stream; `name` stands for the file in messages.
///
/// # Errors
/// As [`read_trace`].
pub fn read_trace_from(
    input: impl Read + 'static,
    name: &str,
    options: &ReadOptions,
) -> Result<Trace, TraceError> {
    trace_of(LineReader::new(input, name)?, options)
}

/// Reads the machines of a file, plain or gzip.
///
/// # Errors
/// [`TraceError`] for anything unreadable; the first bad row unless `options.skip_bad_rows`.
pub fn read_cluster(path: &Path, options: &ReadOptions) -> Result<Cluster, TraceError> {
    cluster_of(LineReader::open(path)?, options)
}

/// Reads machines from a stream; `name` stands for the file in messages.
///
/// # Errors
/// As [`read_cluster`].
pub fn read_cluster_from(
    input: impl Read + 'static,
    name: &str,
    options: &ReadOptions,
) -> Result<Cluster, TraceError> {
    cluster_of(LineReader::new(input, name)?, options)
}

/// Tells the format of a file from its first line.
///
/// # Errors
/// [`TraceError::UnknownFormat`] when it is none of [`FORMATS`], or the file cannot be read.
pub fn detect_format(path: &Path) -> Result<Format, TraceError> {
    format_of(&mut LineReader::open(path)?, None)
}

fn trace_of(mut lines: LineReader, options: &ReadOptions) -> Result<Trace, TraceError> {
    let format = format_of(&mut lines, options.format)?;
    match format {
        Format::Jobs => own::read_jobs(Table::csv(lines, format)?, options),
        Format::JobTable => job_table::read(Table::csv(lines, format)?, options),
        Format::OpenbPods => openb::read_pods(Table::csv(lines, format)?, options),
        Format::Swf => swf::read(Table::blanks(lines, format, &swf::FIELDS), options),
        Format::Nodes | Format::OpenbNodes => Err(TraceError::WrongKind {
            file: lines.file().to_owned(),
            found: format,
            holds: "machines",
            wanted: "jobs",
        }),
    }
}

fn cluster_of(mut lines: LineReader, options: &ReadOptions) -> Result<Cluster, TraceError> {
    let format = format_of(&mut lines, options.format)?;
    match format {
        Format::Nodes => own::read_nodes(Table::csv(lines, format)?, options),
        Format::OpenbNodes => openb::read_nodes(Table::csv(lines, format)?, options),
        _ => Err(TraceError::WrongKind {
            file: lines.file().to_owned(),
            found: format,
            holds: "jobs",
            wanted: "machines",
        }),
    }
}

/// The forced format, or the one of the first line, which stays unread.
fn format_of(lines: &mut LineReader, forced: Option<Format>) -> Result<Format, TraceError> {
    if let Some(format) = forced {
        return Ok(format);
    }
    let known = || FORMATS.map(Format::description).join("; ");
    if !lines.advance()? {
        return Err(TraceError::NoRows {
            file: lines.file().to_owned(),
            skipped: 0,
            first: String::new(),
            expected: known(),
        });
    }
    lines.push_back();
    let first = String::from_utf8_lossy(lines.bytes());
    if Format::looks_like_swf(&first) {
        return Ok(Format::Swf);
    }
    let columns: Vec<String> = first.split(',').map(|name| name.trim_matches('"').into()).collect();
    Format::of_header(&columns).ok_or_else(|| TraceError::UnknownFormat {
        file: lines.file().to_owned(),
        header: shortened(&first),
        known: known(),
    })
}

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
    table: &mut Table,
    options: &ReadOptions,
    id_column: &'static str,
    id: impl Fn(&T) -> &str,
    mut parse: impl FnMut(RowView<'_>) -> Result<Option<T>, RowProblem>,
) -> Result<Rows<T>, TraceError> {
    let mut rows = Rows { values: Vec::new(), lines: Vec::new(), skipped: Vec::new() };
    let mut first_lines: HashMap<String, u64> = HashMap::new();
    loop {
        let parsed = match table.advance()? {
            Next::End => break,
            Next::Bad(problem) => Err(problem),
            Next::Row => parse(table.row()).and_then(|value| match value {
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
                let problem = format!("makes more than {MAX_GPUS} GPUs with the rows before");
                let expected = "a cluster that is not larger";
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

fn no_rows(table: &Table, skipped: &[SkippedRow]) -> TraceError {
    let first = skipped.first().map(|row| format!(", first: line {}: {}", row.line, row.reason));
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

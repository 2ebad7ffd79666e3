//! Reading files: the entry points.

mod cell;
mod csv_row;
mod job_table;
mod lines;
mod openb;
mod own;
mod rows;
mod small;
mod swf;
mod table;

use std::io::Read;
use std::path::Path;

pub use cell::RowProblem;
pub(crate) use cell::TextCell;
pub(crate) use lines::LineReader;
pub(crate) use own::{JOB_COLUMNS, NODE_COLUMNS};
pub(crate) use rows::{ClusterGpus, read_rows};
pub use small::{SmallRow, SmallTable};
pub(crate) use table::{FileTable, RowView, TableColumn};

use crate::error::{TraceError, shortened};
use crate::format::{FORMATS, ReadOptions, TraceFormat};
use crate::node::TraceCluster;
use crate::trace::Trace;

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
pub fn read_cluster(path: &Path, options: &ReadOptions) -> Result<TraceCluster, TraceError> {
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
) -> Result<TraceCluster, TraceError> {
    cluster_of(LineReader::new(input, name)?, options)
}

/// Tells the format of a file from its first line.
///
/// # Errors
/// [`TraceError::UnknownFormat`] when it is none of [`FORMATS`], or the file cannot be read.
pub fn detect_format(path: &Path) -> Result<TraceFormat, TraceError> {
    format_of(&mut LineReader::open(path)?, None)
}

fn trace_of(mut lines: LineReader, options: &ReadOptions) -> Result<Trace, TraceError> {
    let format = format_of(&mut lines, options.format)?;
    match format {
        TraceFormat::Jobs => own::read_jobs(FileTable::csv(lines, format)?, options),
        TraceFormat::JobTable => job_table::read(FileTable::csv(lines, format)?, options),
        TraceFormat::OpenbPods => openb::read_pods(FileTable::csv(lines, format)?, options),
        TraceFormat::Swf => swf::read(FileTable::blanks(lines, format, &swf::FIELDS), options),
        TraceFormat::Nodes | TraceFormat::OpenbNodes => Err(TraceError::WrongKind {
            file: lines.file().to_owned(),
            found: format,
            holds: "nodes",
            wanted: "jobs",
        }),
    }
}

fn cluster_of(mut lines: LineReader, options: &ReadOptions) -> Result<TraceCluster, TraceError> {
    let format = format_of(&mut lines, options.format)?;
    match format {
        TraceFormat::Nodes => own::read_nodes(FileTable::csv(lines, format)?, options),
        TraceFormat::OpenbNodes => openb::read_nodes(FileTable::csv(lines, format)?, options),
        _ => Err(TraceError::WrongKind {
            file: lines.file().to_owned(),
            found: format,
            holds: "jobs",
            wanted: "nodes",
        }),
    }
}

/// A file without a line.
pub(crate) fn empty(lines: &LineReader, expected: String) -> TraceError {
    TraceError::Header {
        file: lines.file().to_owned(),
        line: 1,
        column: None,
        problem: "the file is empty".to_owned(),
        expected,
    }
}

/// The forced format, or the one of the first line, which stays unread.
fn format_of(
    lines: &mut LineReader,
    forced: Option<TraceFormat>,
) -> Result<TraceFormat, TraceError> {
    if let Some(format) = forced {
        return Ok(format);
    }
    let known = || FORMATS.map(TraceFormat::description).join("; ");
    if !lines.advance()? {
        return Err(empty(lines, format!("a header, which is one of: {}", known())));
    }
    lines.push_back();
    let first = String::from_utf8_lossy(lines.bytes());
    if TraceFormat::looks_like_swf(&first) {
        return Ok(TraceFormat::Swf);
    }
    let columns: Vec<String> = first.split(',').map(|name| name.trim_matches('"').into()).collect();
    TraceFormat::of_header(&columns).ok_or_else(|| TraceError::UnknownFormat {
        file: lines.file().to_owned(),
        header: shortened(&first),
        known: known(),
    })
}

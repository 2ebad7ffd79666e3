//! Everything that can go wrong, each with the place and the way out.

use std::io;

use dovetail_units::place::{CARRIAGE_RETURNS, FilePosition};
use serde::Serialize;

use crate::format::TraceFormat;

/// Why a file could not be read or written, or a trace not be made.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// One row is bad, and bad rows are not to be left out.
    #[error(transparent)]
    Row(#[from] Box<RowError>),
    /// The file could not be opened or created.
    #[error("cannot open {file}: {source}; check the path and its permissions")]
    Open {
        /// Path as given.
        file: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The path is a folder.
    #[error("{file}: is a directory; pass a file")]
    Directory {
        /// Path as given.
        file: String,
    },
    /// The first line ends with a carriage return and no line feed.
    #[error("{}: {CARRIAGE_RETURNS}", FilePosition::line(.file, 1))]
    CarriageReturns {
        /// Path as given.
        file: String,
    },
    /// Reading stopped with an error; for gzip files also damaged or cut data.
    #[error(
        "{}: cannot continue reading: {source}; the file may be truncated or damaged; fetch it \
         again",
        FilePosition::line(.file, *.line)
    )]
    Read {
        /// Path as given.
        file: String,
        /// Line that was being read, from 1.
        line: u64,
        /// The system's reason.
        source: io::Error,
    },
    #[error("cannot write {what}: {source}")]
    Write {
        /// What was being written.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// There is no data row, or none was good.
    #[error("{}: {}; expected {expected}", FilePosition::file(.file), no_rows(*.skipped, .first))]
    NoRows {
        /// Path as given.
        file: String,
        /// Number of bad rows that were left out.
        skipped: usize,
        /// The first of them with its reason, or nothing.
        first: String,
        /// What the file should hold.
        expected: String,
    },
    /// The header is of no known format.
    #[error(
        "{}: unknown format: header `{header}`; expected one of: {known}",
        FilePosition::line(.file, 1)
    )]
    UnknownFormat {
        /// Path as given.
        file: String,
        /// First line, shortened.
        header: String,
        /// The known formats with their marking columns.
        known: String,
    },
    /// Machines were found where jobs are wanted, or the reverse.
    #[error("{file}: expected {wanted}, but the file contains {holds} (format {found})")]
    WrongKind {
        /// Path as given.
        file: String,
        found: TraceFormat,
        /// `jobs` or `machines`.
        holds: &'static str,
        /// `jobs` or `machines`.
        wanted: &'static str,
    },
    /// The header is of a known format but not usable.
    #[error(
        "{}: {problem}; expected {expected}",
        FilePosition::line(.file, *.line).column(.column.as_deref())
    )]
    Header {
        /// Path as given.
        file: String,
        /// Line of the header, from 1.
        line: u64,
        /// Column by name; `None` when the whole header is concerned.
        column: Option<String>,
        problem: String,
        /// What would be right.
        expected: String,
    },
    /// A value cannot be expressed in the format that is being written.
    #[error("{object}: column `{column}`: `{text}` {problem}; expected {expected}")]
    Unwritable {
        /// The job or machine, by name.
        object: String,
        column: &'static str,
        /// The value.
        text: String,
        /// Why it cannot be written.
        problem: String,
        /// What could be.
        expected: String,
    },
    /// An order file has no row for the asked seed (and trace).
    #[error("{file}: no row for {wanted}; it has {present}")]
    NoOrder {
        /// Path as given.
        file: String,
        /// What was asked for.
        wanted: String,
        /// What there is.
        present: String,
    },
    /// The arrivals-only protocol cannot be applied to these jobs and machines.
    #[error("the fgd protocol needs {expected}: {problem}")]
    Protocol {
        /// The job concerned, by its place in the list; `None` when it is all of them.
        job: Option<usize>,
        problem: String,
        /// What would be right.
        expected: &'static str,
    },
    /// A setting of the generator is out of its limits.
    #[error("--{setting} {value}: {problem}; expected {expected}")]
    Synth {
        setting: &'static str,
        value: String,
        problem: String,
        /// What would be right.
        expected: String,
    },
}

impl TraceError {
    /// True when the input itself is at fault, as opposed to the file system or the settings.
    ///
    /// The command line ends with exit code 3 exactly for these.
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self,
            Self::Row(_)
                | Self::CarriageReturns { .. }
                | Self::Read { .. }
                | Self::NoRows { .. }
                | Self::UnknownFormat { .. }
                | Self::WrongKind { .. }
                | Self::Header { .. }
                | Self::NoOrder { .. }
                | Self::Protocol { .. }
                | Self::Unwritable { .. }
        )
    }
}

/// A row that says something impossible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}: {} {problem}; expected {expected}",
    FilePosition::line(.file, *.line).column(.column.as_deref()), quoted(.text, .column.is_some())
)]
pub struct RowError {
    /// Path as given.
    pub file: String,
    /// Line in the file, from 1, the header included.
    pub line: u64,
    /// Column by name; `None` when the whole row is concerned.
    pub column: Option<String>,
    /// The offending text, shortened to 80 characters.
    pub text: String,
    /// What is wrong, as the end of the sentence "the text ...".
    pub problem: String,
    /// What would be right.
    pub expected: String,
}

/// A bad row that was left out on request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedRow {
    /// Line in the file, from 1, the header included.
    pub line: u64,
    /// Column by name; `None` when the whole row is concerned.
    pub column: Option<String>,
    /// The offending text, shortened to 80 characters.
    pub text: String,
    /// Why the row was left out.
    pub reason: String,
}

impl From<RowError> for SkippedRow {
    fn from(error: RowError) -> Self {
        Self {
            line: error.line,
            column: error.column,
            text: error.text,
            reason: format!("{}; expected {}", error.problem, error.expected),
        }
    }
}

/// Why a file has no row that can be used.
fn no_rows(skipped: usize, first: &str) -> String {
    match skipped {
        0 => "there is no row".to_owned(),
        1 => format!("no usable row (1 bad row skipped: {first})"),
        _ => format!("no usable row ({skipped} bad rows skipped, first: {first})"),
    }
}

/// The text that is wrong, or what it is that has none.
fn quoted(text: &str, is_cell: bool) -> String {
    match (text, is_cell) {
        ("", true) => "the cell".to_owned(),
        ("", false) => "the line".to_owned(),
        (text, _) => format!("`{text}`"),
    }
}

/// The first 80 characters of a text, for messages; control characters in their escaped form.
pub(crate) fn shortened(text: &str) -> String {
    const LONGEST: usize = 80;
    let (text, more) = match text.char_indices().nth(LONGEST) {
        Some((end, _)) => (&text[..end], "..."),
        None => (text, ""),
    };
    let shown = |letter: char| match letter.is_control() {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    text.chars().map(shown).collect::<String>() + more
}

//! What can be wrong with a usage file.

use std::io;

use dovetail_units::place::{CARRIAGE_RETURNS, FilePosition};
use thiserror::Error;

/// So many rows that were left out are listed; all are counted.
pub const MAX_LISTED_ROWS: usize = 100;

/// Why a usage file cannot be taken. Every message names the place and the way out.
#[derive(Debug, Error)]
pub enum UsageFileError {
    /// One row is bad, and bad rows are not to be left out.
    #[error(transparent)]
    Row(#[from] Box<RowError>),
    #[error("{}: {problem}", FilePosition::line(.file, 1))]
    Header {
        /// Name of the file as the user gave it.
        file: String,
        /// What is wrong and which columns exist.
        problem: String,
    },
    /// Reading stopped; for gzip files also damaged or cut data.
    #[error(
        "{}: {source}: the file may be truncated or damaged; fetch it again",
        FilePosition::line(.file, *.line)
    )]
    Read {
        /// Name of the file as the user gave it.
        file: String,
        /// Line that was being read, counted from 1.
        line: u64,
        /// The system's reason.
        source: io::Error,
    },
    /// A line that no table has. Nothing after it can be trusted.
    #[error(
        "{}: the line is longer than {limit} bytes: this is not a table of samples",
        FilePosition::line(.file, *.line)
    )]
    LongLine {
        /// Name of the file as the user gave it.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The longest allowed.
        limit: u64,
    },
    /// The first line ends with a carriage return and no line feed.
    #[error("{}: {CARRIAGE_RETURNS}", FilePosition::line(.file, 1))]
    CarriageReturns {
        /// Name of the file as the user gave it.
        file: String,
    },
    /// No row was good.
    #[error(
        "{}: no usable sample{}: add at least one valid row",
        FilePosition::file(.file),
        left_out(*.skipped_rows)
    )]
    NoSamples {
        /// Name of the file as the user gave it.
        file: String,
        /// Bad rows that were left out.
        skipped_rows: u64,
    },
}

impl UsageFileError {
    /// True when the content is at fault, as opposed to the file system.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Read { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::InvalidData
                    | io::ErrorKind::InvalidInput
                    | io::ErrorKind::UnexpectedEof
            ),
            _ => true,
        }
    }
}

/// A row that says something impossible.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}: `{text}` {problem}", FilePosition::line(.file, *.line).column(*.column))]
pub struct RowError {
    /// Name of the file as the user gave it.
    pub file: String,
    /// Line of the row, counted from 1, the header included.
    pub line: u64,
    /// Column by name; `None` when the whole row is concerned.
    pub column: Option<&'static str>,
    /// The offending text without control characters, shortened to 80 characters.
    pub text: String,
    /// What is wrong and how to write it, as the end of the sentence “the text …”.
    pub problem: String,
}

fn left_out(rows: u64) -> String {
    match rows {
        0 => String::new(),
        1 => " (1 bad row skipped)".to_owned(),
        _ => format!(" ({rows} bad rows skipped)"),
    }
}

/// A text fit for messages: no control characters, at most 80 others.
pub(crate) fn shown(text: &[u8]) -> String {
    const LONGEST: usize = 80;
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * LONGEST)]);
    let plain = text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter });
    let mut shown: String = plain.take(LONGEST).collect();
    if text.chars().count() > LONGEST {
        shown.push('…');
    }
    shown
}

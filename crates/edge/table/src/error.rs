//! What can be wrong with a table.

use dovetail_units::place::FilePosition;
use thiserror::Error;

/// A table that cannot be read. Every message names the place.
#[derive(Debug, Error)]
pub enum TableError {
    /// The header has not what is needed.
    #[error("{}: {problem}", FilePosition::line(.file, 1))]
    Header {
        /// Name of the file as the user gave it.
        file: String,
        /// What is wrong, and what to write.
        problem: String,
    },
    #[error("{}: {problem}", FilePosition::line(.file, *.line).column(Some(.column)))]
    Cell {
        file: String,
        /// Line on which the record begins, from 1.
        line: u64,
        column: String,
        /// What is wrong, and what to write.
        problem: String,
    },
    /// More bytes without the end of a record than any table has.
    #[error(
        "{}: a row is longer than {} KiB: check for a missing closing quote, and that the file is \
         CSV",
        FilePosition::line(.file, *.line), crate::MAX_RECORD_BYTES >> 10
    )]
    LongRecord {
        file: String,
        /// Line on which the record begins, from 1.
        line: u64,
    },
    /// A record whose last cell begins with a quote and has no other.
    #[error(
        "{}: a quote is never closed: end the cell with a quote, and double quotes inside it",
        FilePosition::line(.file, *.line)
    )]
    OpenQuote {
        file: String,
        /// Line on which the record begins, from 1.
        line: u64,
    },
    /// A record that is not as wide as the header.
    #[error(
        "{}: the row has {found} fields; expected {expected} as in the header: put quotes around \
         a field with a comma in it",
        FilePosition::line(.file, *.line)
    )]
    Width {
        file: String,
        /// Line on which the record begins, from 1.
        line: u64,
        /// Its cells.
        found: usize,
        /// Those of the header.
        expected: usize,
    },
    /// Bytes that are no text.
    #[error(
        "{}: cell {cell} is not UTF-8: write the file again as UTF-8 text",
        FilePosition::line(.file, *.line)
    )]
    NoText {
        file: String,
        /// Line on which the record begins, from 1.
        line: u64,
        /// The cell, from 1.
        cell: usize,
    },
    /// Input that broke off.
    #[error("{}: cannot continue reading", FilePosition::line(.file, *.line))]
    Unreadable {
        file: String,
        /// Line after the last record, from 1.
        line: u64,
        /// Why.
        #[source]
        source: csv::Error,
    },
}

//! What can be wrong with prices that a user gives.

use thiserror::Error;

/// A price that cannot be taken. Every message names the place and the way out.
#[derive(Debug, Error)]
pub enum PriceError {
    /// A cell of a price file.
    #[error("{file}:{line}: column `{column}`: {problem}")]
    Cell {
        /// Name of the file as the user gave it.
        file: String,
        /// Line of the row, counted from 1.
        line: u64,
        /// Name of the column.
        column: &'static str,
        /// What is wrong and how to write it.
        problem: String,
    },
    /// The header row of a price file.
    #[error("{file}:1: {problem}")]
    Header {
        /// Name of the file as the user gave it.
        file: String,
        /// What is wrong and which columns exist.
        problem: String,
    },
    /// A file that is not CSV in UTF-8, or cannot be read.
    #[error("{file}:{line}: {source}")]
    Csv {
        /// Name of the file as the user gave it.
        file: String,
        /// Line where reading stopped, counted from 1; 0 where none was read.
        line: u64,
        /// What the reader says.
        source: csv::Error,
    },
    /// A machine of one's own.
    #[error("own machine for `{model}`: {problem}")]
    Owned {
        /// The model as the user wrote it.
        model: String,
        /// What is wrong.
        problem: String,
    },
    /// A price from the command line.
    #[error("assumed GPU price for `{model}`: {problem}")]
    Assumed {
        /// The model as the user wrote it.
        model: String,
        /// What is wrong and how to write it.
        problem: String,
    },
}

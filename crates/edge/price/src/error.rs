//! What can be wrong with prices that a user gives.

use dovetail_table::TableError;
use thiserror::Error;

/// A price that cannot be taken. Every message names the place and the way out.
#[derive(Debug, Error)]
pub enum PriceError {
    #[error(transparent)]
    File(#[from] TableError),
    /// A row that stands in no file of its own.
    #[error("{place}: {column}: {problem}")]
    Row {
        /// Where it is written.
        place: String,
        /// Which of its cells is bad.
        column: String,
        /// What is wrong and how to write it.
        problem: String,
    },
    /// A machine of one's own.
    #[error("{place}: `{model}`: {problem}")]
    Owned {
        /// Where it is written.
        place: String,
        /// The model as the user wrote it.
        model: String,
        problem: String,
    },
    /// A price from the command line.
    #[error("price of {model}: {problem}")]
    Assumed {
        /// The model as the user wrote it.
        model: String,
        /// What is wrong and how to write it.
        problem: String,
    },
}

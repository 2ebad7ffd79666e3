//! Usage files:
//! `timestamp_s,pod,gpu,activity_percent[,memory_bytes][,namespace][,node][,gpu_share]`.
//!
//! One row is one sample of one GPU, or a part of one, that one pod holds. Columns stand in any
//! order, rows too. A row with an impossible cell stops the reader or, if asked, is left out,
//! counted and listed. Two equal rows are one sample: the second is counted and left out. Two rows
//! that disagree about the same moment are an error.

mod error;
mod lines;
mod reader;
mod row;
#[cfg(test)]
mod tests;

pub use error::{MAX_LISTED_ROWS, RowError, UsageFileError};
pub use reader::{MAX_LINE_BYTES, UsageFileOptions, UsageSamples, UsageSeries, read_usage_file};

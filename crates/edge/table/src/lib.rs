//! Tables from strangers: CSV in UTF-8 with a header, records of bounded length, each cell with its
//! place.
//!
//! A file that people or providers wrote may be damaged, or no table at all. [`Table`] reads it
//! record by record, takes no more than [`MAX_RECORD_BYTES`] for one of them, and every
//! [`TableError`] names file, line and, where there is one, the column.

mod bounded;
mod error;
mod table;
#[cfg(test)]
mod tests;

pub use error::TableError;
pub use table::{CsvRecord, MAX_RECORD_BYTES, Style, Table};

//! The table of start overheads and its CSV form.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::Path,
};

use thiserror::Error;

use super::micros_from_decimal_seconds;

const COLUMNS: [&str; 3] = ["num_gpu", "model", "overhead_s"];

/// Seconds lost to starting a job, by GPU count and model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartOverheads {
    by_gpus: BTreeMap<u32, BTreeMap<String, Row>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    overhead_us: u64,
    line: u64,
}

impl StartOverheads {
    /// Reads the CSV file at `path`; see [`StartOverheads::read`] for its form.
    ///
    /// # Errors
    /// When the file cannot be opened, and as [`StartOverheads::read`].
    pub fn open(path: &Path) -> Result<Self, OverheadTableError> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Self::read(&name, file),
            Err(source) => Err(OverheadTableError::Open { file: name, source }),
        }
    }

    /// Reads CSV with the columns `num_gpu`, `model` and `overhead_s` (plain decimal seconds), in
    /// any order; `file` is the name used in errors.
    ///
    /// # Errors
    /// On a missing or unknown column, a row of another length, a cell that is not what its column
    /// holds, or a second row for the same GPU count and model.
    pub fn read(file: &str, content: impl Read) -> Result<Self, OverheadTableError> {
        let mut reader = csv::Reader::from_reader(content);
        let header = reader.headers().map_err(|error| csv_error(file, error))?.clone();
        let columns = locate_columns(file, &header)?;
        let mut table = Self::default();
        for record in reader.records() {
            let record = record.map_err(|error| csv_error(file, error))?;
            table.insert(file, &columns.map(|column| &record[column]), line_of(&record))?;
        }
        Ok(table)
    }

    /// Overhead in microseconds of a job with this GPU count and model, if the table has a row.
    #[must_use]
    pub fn overhead_us(&self, num_gpu: u32, model: &str) -> Option<u64> {
        Some(self.by_gpus.get(&num_gpu)?.get(model)?.overhead_us)
    }

    fn insert(
        &mut self,
        file: &str,
        [num_gpu, model, overhead_s]: &[&str; 3],
        line: u64,
    ) -> Result<(), OverheadTableError> {
        let bad = |column: usize, value: &str, expected| OverheadTableError::Cell {
            file: file.to_owned(),
            line,
            column: COLUMNS[column],
            value: value.to_owned(),
            expected,
        };
        let gpus = num_gpu
            .parse::<u32>()
            .ok()
            .filter(|&gpus| gpus > 0)
            .ok_or_else(|| bad(0, num_gpu, "a whole number of GPUs above 0"))?;
        if model.is_empty() {
            return Err(bad(1, model, "the name of a model"));
        }
        let overhead_us = micros_from_decimal_seconds(overhead_s)
            .map_err(|_| bad(2, overhead_s, "plain decimal seconds such as 7 or 7.5"))?;
        let rows = self.by_gpus.entry(gpus).or_default();
        match rows.insert((*model).to_owned(), Row { overhead_us, line }) {
            None => Ok(()),
            Some(first) => Err(OverheadTableError::Duplicate {
                file: file.to_owned(),
                line,
                first_line: first.line,
                num_gpu: gpus,
                model: (*model).to_owned(),
            }),
        }
    }
}

fn locate_columns(
    file: &str,
    header: &csv::StringRecord,
) -> Result<[usize; 3], OverheadTableError> {
    let mut found = [None; 3];
    for (position, name) in header.iter().enumerate() {
        match COLUMNS.iter().position(|column| *column == name) {
            Some(column) if found[column].is_none() => found[column] = Some(position),
            _ => {
                let column = name.to_owned();
                return Err(OverheadTableError::UnexpectedColumn { file: file.to_owned(), column });
            }
        }
    }
    let mut columns = [0; 3];
    for (column, position) in found.into_iter().enumerate() {
        columns[column] = position.ok_or_else(|| OverheadTableError::MissingColumn {
            file: file.to_owned(),
            column: COLUMNS[column],
        })?;
    }
    Ok(columns)
}

fn line_of(record: &csv::StringRecord) -> u64 {
    record.position().map_or(0, csv::Position::line)
}

fn csv_error(file: &str, source: csv::Error) -> OverheadTableError {
    let line = source.position().map_or(0, csv::Position::line);
    OverheadTableError::Csv { file: file.to_owned(), line, source }
}

/// Why a start-overhead table could not be read.
#[derive(Debug, Error)]
pub enum OverheadTableError {
    /// The file could not be opened.
    #[error("{file}: cannot open the start-overhead table: {source}; check the path")]
    Open {
        /// Name of the file.
        file: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is not well-formed CSV.
    #[error("{file}:{line}: not well-formed CSV: {source}; give every row three cells")]
    Csv {
        /// Name of the file.
        file: String,
        /// Line, from 1; 0 when unknown.
        line: u64,
        /// What the CSV reader said.
        source: csv::Error,
    },
    /// The header lacks a column.
    #[error("{file}:1: the column {column} is missing; the header is num_gpu,model,overhead_s")]
    MissingColumn {
        /// Name of the file.
        file: String,
        /// The missing column.
        column: &'static str,
    },
    /// The header has a column of another name, or one twice.
    #[error("{file}:1: unexpected column \"{column}\"; the header is num_gpu,model,overhead_s")]
    UnexpectedColumn {
        /// Name of the file.
        file: String,
        /// The column's name.
        column: String,
    },
    /// A cell does not hold what its column holds.
    #[error("{file}:{line}: column {column}: \"{value}\" is not {expected}; correct the cell")]
    Cell {
        /// Name of the file.
        file: String,
        /// Line, from 1.
        line: u64,
        /// The column.
        column: &'static str,
        /// What the cell holds.
        value: String,
        /// What the column holds.
        expected: &'static str,
    },
    /// Two rows for the same GPU count and model.
    #[error(
        "{file}:{line}: {num_gpu} GPUs and model {model} stand already on line {first_line}; keep one of the two rows"
    )]
    Duplicate {
        /// Name of the file.
        file: String,
        /// Line of the second row, from 1.
        line: u64,
        /// Line of the first row, from 1.
        first_line: u64,
        /// GPU count of both rows.
        num_gpu: u32,
        /// Model of both rows.
        model: String,
    },
}

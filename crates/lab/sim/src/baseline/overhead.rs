//! The table of start overheads and its CSV form.

use std::{collections::BTreeMap, io::Read, path::Path};

use dovetail_trace::limits::MAX_GPUS;
use dovetail_trace::{SmallTable, TraceError};

const COLUMNS: [&str; 3] = ["num_gpu", "model", "overhead_s"];
const NUM_GPU: usize = 0;
const MODEL: usize = 1;
const OVERHEAD: usize = 2;

/// Seconds lost to starting a job, by GPU count and model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartOverheads {
    file: String,
    by_gpus: BTreeMap<u32, BTreeMap<String, OverheadRow>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OverheadRow {
    overhead_us: u64,
    line: u64,
}

impl StartOverheads {
    /// Reads the CSV file at `path`; see [`StartOverheads::read`] for its form.
    ///
    /// # Errors
    /// When the file cannot be opened, and as [`StartOverheads::read`].
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        Self::of(SmallTable::open(path, &COLUMNS)?, &path.display().to_string())
    }

    /// Reads CSV with the columns `num_gpu`, `model` and `overhead_s` (plain decimal seconds), in
    /// any order; `file` is the name used in errors.
    ///
    /// # Errors
    /// On a missing or unknown column, a row of another length, a cell that is not what its column
    /// holds, or a second row for the same GPU count and model.
    pub fn read(file: &str, content: impl Read + 'static) -> Result<Self, TraceError> {
        Self::of(SmallTable::new(content, file, &COLUMNS)?, file)
    }

    fn of(table: SmallTable, file: &str) -> Result<Self, TraceError> {
        let mut overheads = Self { file: file.to_owned(), ..Self::default() };
        table.rows(|row| {
            let gpus = row.whole(NUM_GPU, MAX_GPUS.into())? as u32;
            if gpus == 0 {
                return Err(row.bad(NUM_GPU, "requests no GPU", "a number from 1"));
            }
            let model = row.name(MODEL)?;
            let overhead_us = row.seconds_as_us(OVERHEAD)?;
            let rows = overheads.by_gpus.entry(gpus).or_default();
            match rows.insert(model, OverheadRow { overhead_us, line: row.line }) {
                None => Ok(()),
                Some(first) => {
                    let problem = format!("is a duplicate of line {} (GPUs: {gpus})", first.line);
                    Err(row.bad(MODEL, problem, "one row for each number of GPUs and model"))
                }
            }
        })?;
        Ok(overheads)
    }

    /// Overhead in microseconds of a job with this GPU count and model, if the table has a row.
    #[must_use]
    pub fn overhead_us(&self, num_gpu: u32, model: &str) -> Option<u64> {
        Some(self.by_gpus.get(&num_gpu)?.get(model)?.overhead_us)
    }

    pub(super) fn file(&self) -> &str {
        &self.file
    }
}

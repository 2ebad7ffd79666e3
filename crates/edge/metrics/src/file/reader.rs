//! From lines to series of samples.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::BufRead;

use dovetail_account::{ActivitySample, PodSamples};

use super::error::{MAX_LISTED_ROWS, RowError, UsageFileError, shown};
use super::lines::{BoundedLines, LineRead, fields};
use super::row::{Columns, NODE, POD, RowProblem, SHARE, SampleRow};

/// Longest line; a longer one is damage or an attack on memory.
pub const MAX_LINE_BYTES: u64 = 64 << 10;

/// How to read.
#[derive(Clone, Copy, Debug)]
pub struct UsageFileOptions {
    /// Leave bad rows out, counted and listed, instead of stopping at the first.
    pub skip_bad_rows: bool,
    /// The last moment that can have happened, in ms since 1970; later samples are bad.
    pub latest_ms: u64,
}

/// What a file holds.
#[derive(Clone, Debug, Default)]
pub struct UsageSamples {
    /// One for each namespace, pod and GPU, in this order.
    pub series: Vec<UsageSeries>,
    /// Bad rows that were left out.
    pub skipped_rows: u64,
    /// The first [`MAX_LISTED_ROWS`] of them.
    pub skipped: Vec<RowError>,
    /// Rows left out because the same row stands earlier.
    pub duplicate_rows: u64,
}

/// Samples of one pod on one GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageSeries {
    /// Namespace of the pod, where the file says it.
    pub namespace: Option<String>,
    pub pod: String,
    /// Index or UUID of the GPU, as the file has it.
    pub gpu: String,
    /// The pod's node, where the file says it.
    pub node: Option<String>,
    /// Ascending in time, each moment once.
    pub activity: Vec<ActivitySample>,
    /// Memory in use at these moments; `None` where the file does not say.
    pub memory_bytes: Vec<Option<u64>>,
    /// How much of the GPU the pod has, in milli-GPU; all of it where the file does not say.
    pub gpu_milli: u32,
}

impl UsageSamples {
    /// Each series with its part of a GPU.
    pub fn of_pods(&self) -> impl Iterator<Item = PodSamples<'_>> + Clone {
        self.series
            .iter()
            .map(|series| PodSamples { gpu_milli: series.gpu_milli, samples: &series.activity })
    }
}

/// Reads a usage file; `file` is its name in messages.
///
/// # Errors
/// See [`UsageFileError`]. Nothing is taken from a file with a bad row unless such rows may be left
/// out.
pub fn read_usage_file(
    input: impl BufRead,
    file: &str,
    options: &UsageFileOptions,
) -> Result<UsageSamples, UsageFileError> {
    let mut reader =
        UsageFileReader { file, options, series: BTreeMap::new(), found: UsageSamples::default() };
    let mut lines = BoundedLines::new(input, MAX_LINE_BYTES);
    let mut columns = None;
    while reader.advance(&mut lines)? {
        let text = str::from_utf8(lines.bytes());
        let mut cells = Vec::new();
        let split = text.map_err(|_| "is not UTF-8: write the file in UTF-8").and_then(|text| {
            fields(text, &mut cells)?;
            Ok(())
        });
        match (&columns, split) {
            (None, Err(problem)) => return Err(reader.header(format!("the header {problem}"))),
            (None, Ok(())) => {
                columns = Some(Columns::of(&cells).map_err(|problem| reader.header(problem))?);
            }
            (Some(_), _) if lines.bytes().is_empty() => {}
            (Some(_), Err(problem)) => {
                reader.refuse(lines.number(), RowProblem::whole_row(lines.bytes(), problem))?;
            }
            (Some(columns), Ok(())) => match columns.row(&cells, options.latest_ms) {
                Ok(row) => reader.take(lines.number(), &row)?,
                Err(problem) => reader.refuse(lines.number(), problem)?,
            },
        }
    }
    if columns.is_none() {
        return Err(reader.header("the file is empty: start it with a header".to_owned()));
    }
    reader.finish()
}

/// One sample and the line it stands on.
type Numbered = (ActivitySample, Option<u64>, u64);

struct UsageFileReader<'a> {
    file: &'a str,
    options: &'a UsageFileOptions,
    /// By namespace, pod and GPU: node and share, and the samples as they come.
    series: BTreeMap<Key, (Option<String>, u32, Vec<Numbered>)>,
    found: UsageSamples,
}

type Key = (Option<String>, String, String);

impl UsageFileReader<'_> {
    fn advance<R: BufRead>(&self, lines: &mut BoundedLines<R>) -> Result<bool, UsageFileError> {
        let file = self.file.to_owned();
        match lines.advance() {
            Ok(LineRead::Here) => Ok(true),
            Ok(LineRead::End) => Ok(false),
            Ok(LineRead::TooLong) => {
                let line = lines.number();
                Err(UsageFileError::LongLine { file, line, limit: MAX_LINE_BYTES })
            }
            Ok(LineRead::CarriageReturns) => Err(UsageFileError::CarriageReturns { file }),
            Err(source) => Err(UsageFileError::Read { file, line: lines.number(), source }),
        }
    }

    fn header(&self, problem: String) -> UsageFileError {
        UsageFileError::Header { file: self.file.to_owned(), problem }
    }

    fn take(&mut self, line: u64, row: &SampleRow<'_>) -> Result<(), UsageFileError> {
        let key = (row.namespace.map(str::to_owned), row.pod.to_owned(), row.gpu.to_owned());
        let (node, gpu_milli, samples) = match self.series.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert((None, row.gpu_milli, Vec::new())),
        };
        if *gpu_milli != row.gpu_milli {
            let (before, now) = (f64::from(*gpu_milli) / 1e3, f64::from(row.gpu_milli) / 1e3);
            let problem =
                format!("differs from {before} in an earlier row: a pod's share never changes");
            return self.refuse(line, RowProblem::of(SHARE, &now.to_string(), problem));
        }
        let other = node.as_deref().zip(row.node).filter(|(known, node)| known != node);
        if let Some((known, node)) = other {
            let known = shown(known.as_bytes());
            let problem =
                format!("differs from `{known}` in an earlier row: a pod never changes its node");
            return self.refuse(line, RowProblem::of(NODE, node, problem));
        }
        if node.is_none() {
            *node = row.node.map(str::to_owned);
        }
        samples.push((row.sample, row.memory_bytes, line));
        Ok(())
    }

    /// Leaves a row out, or stops.
    fn refuse(&mut self, line: u64, problem: RowProblem) -> Result<(), UsageFileError> {
        let RowProblem { column, text, problem } = problem;
        let error = RowError { file: self.file.to_owned(), line, column, text, problem };
        if !self.options.skip_bad_rows {
            return Err(Box::new(error).into());
        }
        self.found.skipped_rows += 1;
        if self.found.skipped.len() < MAX_LISTED_ROWS {
            self.found.skipped.push(error);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<UsageSamples, UsageFileError> {
        for ((namespace, pod, gpu), (node, gpu_milli, mut rows)) in std::mem::take(&mut self.series)
        {
            rows.sort_by_key(|(sample, _, line)| (sample.at_ms, *line));
            let mut kept: Vec<Numbered> = Vec::with_capacity(rows.len());
            for row in rows {
                let (sample, memory_bytes, line) = row;
                match kept.last().filter(|(last, ..)| last.at_ms == sample.at_ms) {
                    None => kept.push(row),
                    Some((last, memory, _)) if (*last, *memory) == (sample, memory_bytes) => {
                        self.found.duplicate_rows += 1;
                    }
                    Some((.., first)) => {
                        let problem = format!(
                            "has another value for gpu `{}` at the same time on line {first}: keep \
                             one row",
                            shown(gpu.as_bytes())
                        );
                        self.refuse(line, RowProblem::of(POD, &pod, problem))?;
                    }
                }
            }
            let activity = kept.iter().map(|(sample, ..)| *sample).collect();
            let memory_bytes = kept.iter().map(|(_, memory_bytes, _)| *memory_bytes).collect();
            let series =
                UsageSeries { namespace, pod, gpu, node, activity, memory_bytes, gpu_milli };
            self.found.series.push(series);
        }
        self.found.skipped.sort_by_key(|row| row.line);
        match self.found.series.is_empty() {
            true => Err(UsageFileError::NoSamples {
                file: self.file.to_owned(),
                skipped_rows: self.found.skipped_rows,
            }),
            false => Ok(self.found),
        }
    }
}

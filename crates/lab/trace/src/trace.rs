//! A whole job stream.

use serde::Serialize;

use crate::error::{RowError, SkippedRow, TraceError};
use crate::format::TraceFormat;
use crate::job::TraceJob;

/// The jobs of one source, in the order of the source, which need not be the order of submission.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Trace {
    pub jobs: Vec<TraceJob>,
    /// Where they come from: a file, or the generator and its seed.
    pub source: String,
    /// The format of the file; `None` for jobs that come from none.
    pub format: Option<TraceFormat>,
    /// Line of each job in the file, from 1, the header included; empty for jobs that come from
    /// none.
    pub lines: Vec<u64>,
    /// What the source states at all.
    pub known: KnownFields,
    /// Rows that were left out, with reasons; empty unless asked for.
    pub skipped: Vec<SkippedRow>,
    /// What else the reader wants known, for example columns it does not use.
    pub notes: Vec<String>,
}

/// Which of the values that every [`TraceJob`] carries come from the source.
///
/// Where a flag is false the value in the jobs is 0 and means "not stated".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KnownFields {
    /// `submit_ms` is known; without it the trace has an order but no time.
    pub submit_times: bool,
    /// `cpu_milli` is known.
    pub cpu: bool,
    /// `memory_bytes` is known.
    pub memory: bool,
    /// `gpu_models` is known; where it is not, an empty list does not mean "any".
    pub gpu_models: bool,
    /// `cut` is known; where it is not, jobs may have run for longer than they say.
    pub cuts: bool,
}

impl Default for KnownFields {
    fn default() -> Self {
        Self { submit_times: true, cpu: true, memory: true, gpu_models: true, cuts: false }
    }
}

impl Trace {
    /// Leaves only jobs whose run time is known, for uses that cannot do without. The others are
    /// listed in [`Trace::skipped`] if they are to be skipped.
    ///
    /// # Errors
    /// [`TraceError::Row`] names the first job without run time, if none is to be skipped;
    /// [`TraceError::NoRows`] if no job is left.
    pub fn with_run_times(mut self, skip: bool, needed_by: &str) -> Result<Self, TraceError> {
        let unknown: Vec<usize> =
            (0..self.jobs.len()).filter(|job| self.jobs[*job].duration_ms.is_none()).collect();
        let Some(first) = unknown.first() else { return Ok(self) };
        let (count, all) = (unknown.len(), self.jobs.len());
        if !skip {
            let others =
                format!("a run time, which {needed_by} needs ({count} of {all} jobs have none)");
            return Err(TraceError::Row(Box::new(self.row_without_run_time(*first, others))));
        }
        let expected = format!("a run time, which {needed_by} needs");
        let rows = unknown.iter().map(|job| self.row_without_run_time(*job, expected.clone()));
        let rows: Vec<SkippedRow> = rows.map(SkippedRow::from).collect();
        if count == all {
            return Err(TraceError::NoRows {
                file: self.source,
                skipped: self.skipped.len() + count,
                first: format!(", first: line {}: {}", rows[0].line, rows[0].reason),
                expected: "a job with a run time".to_owned(),
            });
        }
        self.skipped.extend(rows);
        self.skipped.sort_by_key(|row| row.line);
        let mut place = 0..;
        self.lines.retain(|_| place.next().is_some_and(|job| unknown.binary_search(&job).is_err()));
        self.jobs.retain(|job| job.duration_ms.is_some());
        Ok(self)
    }

    /// Where a job is written: file and line, or only the source of jobs that come from no file.
    pub fn place(&self, job: usize) -> String {
        match self.lines.get(job) {
            Some(line) => format!("{}:{line}", self.source),
            None => self.source.clone(),
        }
    }

    /// A job that a use of the trace cannot take; `column` is the cell that says so.
    pub fn row_error(
        &self,
        job: usize,
        column: &str,
        text: impl ToString,
        problem: impl Into<String>,
        expected: impl Into<String>,
    ) -> TraceError {
        TraceError::Row(Box::new(RowError {
            file: self.source.clone(),
            line: self.lines.get(job).copied().unwrap_or(0),
            column: Some(column.to_owned()),
            text: text.to_string(),
            problem: problem.into(),
            expected: expected.into(),
        }))
    }

    fn row_without_run_time(&self, job: usize, expected: String) -> RowError {
        let TraceJob { id, start_ms, .. } = &self.jobs[job];
        let column = self.format.and_then(|format| match format {
            TraceFormat::Jobs => Some("duration_ms"),
            TraceFormat::Swf => Some("run_time"),
            // Its run time is the one minus the other, and the first that is empty is missing.
            TraceFormat::OpenbPods if start_ms.is_none() => Some("scheduled_time"),
            TraceFormat::OpenbPods => Some("deletion_time"),
            TraceFormat::JobTable | TraceFormat::Nodes | TraceFormat::OpenbNodes => None,
        });
        RowError {
            file: self.source.clone(),
            line: self.lines.get(job).copied().unwrap_or(0),
            column: column.map(str::to_owned),
            text: if self.format == Some(TraceFormat::Swf) { "-1" } else { "" }.to_owned(),
            problem: format!("has no run time of job {id}"),
            expected,
        }
    }
}

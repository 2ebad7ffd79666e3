//! The Standard Workload Format, version 2.2.
//!
//! Source: S. J. Chapin et al., "Benchmarks and Standards for the Evaluation of Parallel Job
//! Schedulers", JSSPP 1999, kept up by the Parallel Workloads Archive. One line a job, 18 numbers,
//! -1 for unknown, comments after `;`. Jobs that were swapped out have extra lines with status
//! 2, 3 or 4 for each partial run beside the summary line; only the summary line is a job.

use std::num::NonZeroU32;

use super::cell::RowProblem;
use super::{FileTable, RowView, TextCell, read_rows};
use crate::error::TraceError;
use crate::format::{ReadOptions, SwfProcessors};
use crate::job::{RecordedOutcome, TraceJob};
use crate::limits::{MAX_GPUS, MAX_MEMORY_BYTES, MAX_TIME_MS};
use crate::trace::{KnownFields, Trace};
use dovetail_units::number::Number;

/// Names of the 18 fields, in order.
pub(crate) const FIELDS: [&str; 18] = [
    "job_number",
    "submit_time",
    "wait_time",
    "run_time",
    "allocated_processors",
    "average_cpu_time",
    "used_memory",
    "requested_processors",
    "requested_time",
    "requested_memory",
    "status",
    "user_id",
    "group_id",
    "executable_number",
    "queue_number",
    "partition_number",
    "preceding_job_number",
    "think_time",
];

const KIB: u64 = 1024;

pub(crate) fn read(mut table: FileTable, options: &ReadOptions) -> Result<Trace, TraceError> {
    let mut partial_runs = 0_u64;
    let fields = Fields::of(&mut table)?;
    let rows = read_rows(
        &mut table,
        options,
        FIELDS[0],
        |job: &TraceJob| &job.id,
        |row| {
            fields.check_numbers(row)?;
            let status = fields.cell(row, "status");
            let outcome = match status.signed() {
                Ok(0) => RecordedOutcome::Failed,
                Ok(1) => RecordedOutcome::Completed,
                Ok(5) => RecordedOutcome::Killed,
                Ok(-1) => RecordedOutcome::Unknown,
                Ok(2..=4) => {
                    partial_runs += 1;
                    return Ok(None);
                }
                _ => return Err(status.bad("is not a status code", "-1, 0, 1, 2, 3, 4 or 5")),
            };
            fields.job(row, outcome, options.swf_processors).map(Some)
        },
    )?;
    let known = KnownFields {
        submit_times: true,
        cpu: options.swf_processors != SwfProcessors::AsGpus,
        memory: rows.values.iter().any(|job| job.memory_bytes > 0),
        gpu_models: false,
        cuts: false,
    };
    let notes = (partial_runs > 0).then(|| {
        let lines =
            if partial_runs == 1 { "line of a partial run" } else { "lines of partial runs" };
        format!("{partial_runs} {lines}: skipped, because the summary lines contain them")
    });
    Ok(Trace {
        jobs: rows.values,
        source: table.file().to_owned(),
        format: table.format(),
        lines: rows.lines,
        known,
        skipped: rows.skipped,
        notes: notes.into_iter().collect(),
    })
}

/// The columns in file order.
struct Fields(Vec<super::TableColumn>);

impl Fields {
    fn of(table: &mut FileTable) -> Result<Self, TraceError> {
        FIELDS.iter().map(|name| table.require(name)).collect::<Result<_, _>>().map(Self)
    }

    fn cell<'a>(&self, row: RowView<'a>, name: &str) -> TextCell<'a> {
        let index = FIELDS.iter().position(|field| *field == name);
        row.cell(self.0[index.unwrap_or_default()])
    }

    /// Every field is a number, also those that no job keeps.
    fn check_numbers(&self, row: RowView<'_>) -> Result<(), RowProblem> {
        for column in &self.0 {
            let cell = row.cell(*column);
            Number::read(cell.text).map_err(|problem| {
                let expected = "digits with at most one point, or -1 for unknown";
                cell.bad(problem.in_words(), expected)
            })?;
        }
        Ok(())
    }

    fn job(
        &self,
        row: RowView<'_>,
        outcome: RecordedOutcome,
        meaning: SwfProcessors,
    ) -> Result<TraceJob, RowProblem> {
        let seconds = |name| known(self.cell(row, name), TextCell::seconds_as_ms);
        let number = |name| known(self.cell(row, name), |cell| cell.whole(u64::MAX >> 1));
        let submit = self.cell(row, "submit_time");
        let submit_ms = submit.seconds_as_ms()?;
        let start_ms = seconds("wait_time")?.map(|wait| submit_ms + wait);
        if start_ms.is_some_and(|start| start > MAX_TIME_MS) {
            let expected = format!("a start before {} s", MAX_TIME_MS / 1000);
            return Err(self
                .cell(row, "wait_time")
                .bad("is too large after the submission", expected));
        }
        let processors = self.processors(row)?;
        let (cpu_milli, gpu_count) = request(processors, meaning);
        let memory = self.cell(row, "requested_memory");
        let memory_kib = known(memory, |cell| cell.whole(MAX_MEMORY_BYTES as u64 / KIB))?;
        let memory_bytes = memory_kib.unwrap_or(0) * KIB * u64::from(processors);
        if memory_bytes > MAX_MEMORY_BYTES as u64 {
            return Err(
                memory.bad("is too large for this number of processors", "KiB per processor")
            );
        }
        let job = TraceJob {
            id: self.cell(row, "job_number").whole(u64::MAX)?.to_string(),
            submit_ms,
            duration_ms: seconds("run_time")?,
            estimate_ms: seconds("requested_time")?,
            start_ms,
            pod_count: 1,
            cpu_milli,
            memory_bytes: memory_bytes as i64,
            gpu_count,
            gpu_milli: if gpu_count == 0 { 0 } else { 1000 },
            user: number("user_id")?.map(|user| user.to_string()),
            queue: number("queue_number")?.map(|queue| queue.to_string()),
            outcome,
            ..TraceJob::default()
        };
        job.check()?;
        Ok(job)
    }

    /// Allocated processors, or those asked for when that is unknown.
    fn processors(&self, row: RowView<'_>) -> Result<u32, RowProblem> {
        let read = |name| known(self.cell(row, name), |cell| cell.whole(MAX_GPUS.into()));
        let allocated = read("allocated_processors")?.filter(|count| *count > 0);
        let requested = read("requested_processors")?.filter(|count| *count > 0);
        allocated.or(requested).map(|count| count as u32).ok_or_else(|| {
            let expected = "a number from 1 here or in requested_processors";
            self.cell(row, "allocated_processors").bad("leaves the size unknown", expected)
        })
    }
}

/// `None` for -1, the format's unknown.
fn known<'a, T>(
    cell: TextCell<'a>,
    read: impl Fn(TextCell<'a>) -> Result<T, RowProblem>,
) -> Result<Option<T>, RowProblem> {
    if cell.signed() == Ok(-1) { Ok(None) } else { read(cell).map(Some) }
}

/// CPU (thousandths of a core) and GPUs of so many processors.
fn request(processors: u32, meaning: SwfProcessors) -> (i64, u32) {
    let cores = i64::from(processors) * 1000;
    match meaning {
        SwfProcessors::AsGpus => (0, processors),
        SwfProcessors::AsCpuCores => (cores, 0),
        SwfProcessors::PerGpu(group) => (cores, processors.div_ceil(NonZeroU32::get(group))),
    }
}

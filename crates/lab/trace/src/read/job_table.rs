//! Job tables: one row a job, times in seconds, GPUs counted over the whole job.
//!
//! The columns are described in `docs/reference/trace-formats.md`.

use super::cell::RowProblem;
use super::{FileTable, RowView, TableColumn, TextCell, read_rows};
use crate::error::TraceError;
use crate::format::ReadOptions;
use crate::job::{ExactTimes, RecordedOutcome, StopCosts, TraceJob};
use crate::limits::{MAX_GPUS, MAX_PODS};
use crate::trace::{KnownFields, Trace};

/// Words for each way of ending, in lower case; those of Philly, Slurm and Kubernetes among them.
const OUTCOMES: [(RecordedOutcome, &[&str]); 4] = [
    (RecordedOutcome::Completed, &["pass", "passed", "completed", "succeeded", "success"]),
    (
        RecordedOutcome::Failed,
        &["failed", "fail", "error", "timeout", "node_fail", "out_of_memory"],
    ),
    (RecordedOutcome::Killed, &["killed", "cancelled", "canceled", "preempted", "stopped"]),
    (RecordedOutcome::Unknown, &["", "unknown", "running", "pending"]),
];

struct Columns {
    job_id: TableColumn,
    submit: TableColumn,
    duration: TableColumn,
    num_gpu: TableColumn,
    gpu_milli: Option<TableColumn>,
    nodes: Option<TableColumn>,
    model: Option<TableColumn>,
    deadline: Option<TableColumn>,
    queue: Option<TableColumn>,
    status: Option<TableColumn>,
    user: Option<TableColumn>,
    estimate: Option<TableColumn>,
    priority: Option<TableColumn>,
    checkpoint_interval: Option<TableColumn>,
    checkpoint_cost: Option<TableColumn>,
    restart_cost: Option<TableColumn>,
    save_on_notice: Option<TableColumn>,
}

pub(crate) fn read(mut table: FileTable, options: &ReadOptions) -> Result<Trace, TraceError> {
    let columns = Columns::of(&mut table)?;
    let rows = read_rows(
        &mut table,
        options,
        "job_id",
        |job: &TraceJob| &job.id,
        |row| columns.job(row).map(Some),
    )?;
    Ok(Trace {
        jobs: rows.values,
        source: table.file().to_owned(),
        format: table.format(),
        lines: rows.lines,
        known: KnownFields {
            submit_times: true,
            cpu: false,
            memory: false,
            gpu_models: false,
            cuts: false,
        },
        skipped: rows.skipped,
        notes: table.notes(),
    })
}

impl Columns {
    fn of(table: &mut FileTable) -> Result<Self, TraceError> {
        let duration = match (table.optional("duration_s"), table.optional("service_s")) {
            (Some(_), Some(_)) => {
                let expected = "one of duration_s and service_s";
                return Err(table.header_error("service_s", "repeats duration_s", expected));
            }
            (Some(column), None) | (None, Some(column)) => column,
            (None, None) => table.require("duration_s")?,
        };
        let queue = table.optional("queue");
        Ok(Self {
            job_id: table.require("job_id")?,
            submit: table.require("submit_s")?,
            duration,
            num_gpu: table.require("num_gpu")?,
            gpu_milli: table.optional("gpu_milli"),
            nodes: table.optional("nodes"),
            model: table.optional("model"),
            deadline: table.optional("deadline_s"),
            // Philly calls its queues virtual clusters.
            queue: queue.or_else(|| table.optional("vc")),
            status: table.optional("status"),
            user: table.optional("user"),
            estimate: table.optional("estimate_s"),
            priority: table.optional("priority"),
            checkpoint_interval: table.optional("checkpoint_interval_s"),
            checkpoint_cost: table.optional("checkpoint_cost_s"),
            restart_cost: table.optional("restart_cost_s"),
            save_on_notice: table.optional("save_on_notice_s"),
        })
    }

    fn job(&self, row: RowView<'_>) -> Result<TraceJob, RowProblem> {
        let text = |column| row.maybe(column).map_or(Ok(None), TextCell::text);
        let seconds = |column| row.maybe(column).map_or(Ok(None), TextCell::optional_seconds_as_ms);
        let (pod_count, gpu_count) = self.pods(row)?;
        let (submit, duration) = (row.cell(self.submit), row.cell(self.duration));
        let (submit_ms, duration_ms) = (submit.seconds_as_ms()?, duration.seconds_as_ms()?);
        let exact = ExactTimes {
            submit_us: submit.seconds_as_us()?,
            duration_us: duration.seconds_as_us()?,
        };
        let is_finer =
            exact.submit_us != submit_ms * 1000 || exact.duration_us != duration_ms * 1000;
        let job = TraceJob {
            id: row.cell(self.job_id).name()?,
            submit_ms,
            duration_ms: Some(duration_ms),
            exact: is_finer.then_some(exact),
            estimate_ms: seconds(self.estimate)?,
            pod_count,
            gpu_count,
            gpu_milli: self.gpu_milli(row, gpu_count)?,
            user: text(self.user)?,
            queue: text(self.queue)?,
            model: text(self.model)?,
            priority: row.maybe(self.priority).map_or(Ok(0), TextCell::signed)?,
            deadline_ms: seconds(self.deadline)?,
            stop_costs: StopCosts {
                checkpoint_interval_ms: seconds(self.checkpoint_interval)?,
                checkpoint_cost_ms: seconds(self.checkpoint_cost)?,
                restart_cost_ms: seconds(self.restart_cost)?,
                save_on_notice_ms: seconds(self.save_on_notice)?,
            },
            outcome: row.maybe(self.status).map_or(Ok(RecordedOutcome::Unknown), outcome)?,
            ..TraceJob::default()
        };
        Ok(job)
    }

    /// Number of pods and GPUs of each: one pod a node when `nodes` is given, one pod otherwise.
    fn pods(&self, row: RowView<'_>) -> Result<(u32, u32), RowProblem> {
        let gpu_cell = row.cell(self.num_gpu);
        let gpus = gpu_cell.whole(MAX_GPUS.into())? as u32;
        let Some(cell) = row.maybe(self.nodes).filter(|cell| !cell.has_no_number()) else {
            return Ok((1, gpus));
        };
        let nodes = cell.whole(MAX_PODS.into())? as u32;
        if nodes == 0 || !gpus.is_multiple_of(nodes) {
            let expected = format!("a positive number that divides num_gpu, which is {gpus}");
            return Err(cell.bad("does not divide the GPUs evenly", expected));
        }
        Ok((nodes, gpus / nodes))
    }

    fn gpu_milli(&self, row: RowView<'_>, gpu_count: u32) -> Result<i64, RowProblem> {
        let whole = if gpu_count == 0 { 0 } else { 1000 };
        let Some(cell) = row.maybe(self.gpu_milli).filter(|cell| !cell.has_no_number()) else {
            return Ok(whole);
        };
        let milli = cell.whole(1000)? as i64;
        if milli != whole && !(gpu_count == 1 && milli > 0) {
            let expected = format!("{whole}, or 1 to 1000 for one GPU");
            return Err(cell.bad("does not match num_gpu", expected));
        }
        Ok(milli)
    }
}

fn outcome(cell: TextCell<'_>) -> Result<RecordedOutcome, RowProblem> {
    let word = cell.text.to_ascii_lowercase();
    let known = OUTCOMES.iter().find(|(_, words)| words.contains(&word.as_str()));
    known.map(|(outcome, _)| *outcome).ok_or_else(|| {
        let words: Vec<&str> = OUTCOMES.iter().flat_map(|(_, words)| *words).copied().collect();
        cell.bad("is not a known status", words.join(" ").trim().replace("  ", " "))
    })
}

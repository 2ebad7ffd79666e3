//! dovetail's own CSV of jobs and of machines: every value of the types, nothing else.

use super::cell::RowProblem;
use super::{ClusterGpus, FileTable, RowView, TableColumn, TextCell, read_rows};
use crate::error::TraceError;
use crate::format::ReadOptions;
use crate::job::{RecordedOutcome, StopCosts, TraceJob, UnseenEnds};
use crate::limits::{
    MAX_CPU_MILLI, MAX_GPUS, MAX_MEMORY_BYTES, MAX_NODE_GPUS, MAX_PODS, MAX_TIME_MS,
};
use crate::node::{TraceCluster, TraceNode};
use crate::trace::{KnownFields, Trace};

/// Columns of the jobs file, in the order in which they are written.
pub(crate) const JOB_COLUMNS: [&str; 23] = [
    "job_id",
    "submit_ms",
    "duration_ms",
    "estimate_ms",
    "start_ms",
    "pod_count",
    "cpu_milli",
    "memory_bytes",
    "gpu_count",
    "gpu_milli",
    "gpu_models",
    "user",
    "queue",
    "model",
    "service_class",
    "priority",
    "deadline_ms",
    "outcome",
    "cut",
    "checkpoint_interval_ms",
    "checkpoint_cost_ms",
    "restart_cost_ms",
    "save_on_notice_ms",
];

/// Columns of the machines file, in the order in which they are written.
pub(crate) const NODE_COLUMNS: [&str; 8] = [
    "node_name",
    "cpu_milli",
    "memory_bytes",
    "gpu_count",
    "gpu_model",
    "gpu_memory_bytes",
    "rack",
    "zone",
];

/// The columns that are there, by their place in the list of names.
struct Present<'n> {
    names: &'n [&'static str],
    columns: Vec<Option<TableColumn>>,
}

impl<'n> Present<'n> {
    /// Looks the names up; a column of another name is refused, since it would be lost.
    fn of(table: &mut FileTable, names: &'n [&'static str]) -> Result<Self, TraceError> {
        let columns = names.iter().map(|name| table.optional(name)).collect();
        let stranger = table.unused().next().map(str::to_owned);
        match stranger {
            None => Ok(Self { names, columns }),
            Some(name) => {
                let expected = format!("only {}", names.join(", "));
                Err(table.header_error(&name, "is not a column of this format", expected))
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        self.column(name).is_some()
    }

    fn column(&self, name: &str) -> Option<TableColumn> {
        let index = self.names.iter().position(|known| *known == name)?;
        self.columns[index]
    }

    fn text(&self, row: RowView<'_>, name: &str) -> Result<Option<String>, RowProblem> {
        row.maybe(self.column(name)).map_or(Ok(None), TextCell::text)
    }

    fn whole(&self, row: RowView<'_>, name: &str, highest: u64) -> Result<Option<u64>, RowProblem> {
        row.maybe(self.column(name)).map_or(Ok(None), |cell| cell.optional_whole(highest))
    }

    /// A number that must stand in the row if the file has its column.
    fn stated(
        &self,
        row: RowView<'_>,
        name: &str,
        (lowest, highest): (u64, u64),
    ) -> Result<Option<u64>, RowProblem> {
        row.maybe(self.column(name)).map(|cell| cell.whole_within(lowest, highest)).transpose()
    }

    /// An amount that is 0 where the file has no column for it.
    fn amount(&self, row: RowView<'_>, name: &str, highest: i64) -> Result<i64, RowProblem> {
        Ok(self.stated(row, name, (0, highest as u64))?.unwrap_or(0) as i64)
    }

    /// A number of things, likewise.
    fn count(&self, row: RowView<'_>, name: &str, highest: u32) -> Result<u32, RowProblem> {
        Ok(self.stated(row, name, (0, highest.into()))?.unwrap_or(0) as u32)
    }

    fn gpu_memory_bytes(&self, row: RowView<'_>) -> Result<Option<i64>, RowProblem> {
        let cell = row.maybe(self.column("gpu_memory_bytes")).filter(|cell| !cell.has_no_number());
        let read = |cell: TextCell<'_>| cell.whole_within(1, MAX_MEMORY_BYTES as u64);
        Ok(cell.map(read).transpose()?.map(|bytes| bytes as i64))
    }
}

pub(crate) fn read_jobs(mut table: FileTable, options: &ReadOptions) -> Result<Trace, TraceError> {
    for name in ["job_id", "duration_ms", "gpu_count"] {
        table.require(name)?;
    }
    let present = Present::of(&mut table, &JOB_COLUMNS)?;
    let rows = read_rows(
        &mut table,
        options,
        "job_id",
        |job: &TraceJob| &job.id,
        |row| job(&present, row).map(Some),
    )?;
    Ok(Trace {
        jobs: rows.values,
        source: table.file().to_owned(),
        format: table.format(),
        lines: rows.lines,
        known: KnownFields {
            submit_times: present.has("submit_ms"),
            cpu: present.has("cpu_milli"),
            memory: present.has("memory_bytes"),
            gpu_models: present.has("gpu_models"),
            cuts: present.has("cut"),
        },
        skipped: rows.skipped,
        notes: Vec::new(),
    })
}

pub(crate) fn read_nodes(
    mut table: FileTable,
    options: &ReadOptions,
) -> Result<TraceCluster, TraceError> {
    for name in ["node_name", "cpu_milli", "memory_bytes", "gpu_count"] {
        table.require(name)?;
    }
    let present = Present::of(&mut table, &NODE_COLUMNS)?;
    let mut cluster_gpus = ClusterGpus::default();
    let rows = read_rows(
        &mut table,
        options,
        "node_name",
        |node: &TraceNode| &node.name,
        |row| {
            let node = TraceNode {
                name: present.text(row, "node_name")?.unwrap_or_default(),
                cpu_milli: present.amount(row, "cpu_milli", MAX_CPU_MILLI)?,
                memory_bytes: present.amount(row, "memory_bytes", MAX_MEMORY_BYTES)?,
                gpu_count: present.count(row, "gpu_count", MAX_NODE_GPUS)?,
                gpu_model: present.text(row, "gpu_model")?,
                gpu_memory_bytes: present.gpu_memory_bytes(row)?,
                rack: present.text(row, "rack")?,
                zone: present.text(row, "zone")?,
            };
            node.check()?;
            cluster_gpus.add(&node, "gpu_count")?;
            Ok(Some(node))
        },
    )?;
    Ok(TraceCluster {
        nodes: rows.values,
        source: table.file().to_owned(),
        skipped: rows.skipped,
        notes: Vec::new(),
    })
}

fn job(present: &Present<'_>, row: RowView<'_>) -> Result<TraceJob, RowProblem> {
    let gpu_count = present.count(row, "gpu_count", MAX_GPUS)?;
    let time_ms = |name| present.whole(row, name, MAX_TIME_MS);
    let whole_gpus = if gpu_count == 0 { 0 } else { 1000 };
    let models = present.text(row, "gpu_models")?;
    let job = TraceJob {
        id: present.text(row, "job_id")?.unwrap_or_default(),
        submit_ms: present.stated(row, "submit_ms", (0, MAX_TIME_MS))?.unwrap_or(0),
        duration_ms: time_ms("duration_ms")?,
        estimate_ms: time_ms("estimate_ms")?,
        start_ms: time_ms("start_ms")?,
        pod_count: present.stated(row, "pod_count", (1, MAX_PODS.into()))?.unwrap_or(1) as u32,
        cpu_milli: present.amount(row, "cpu_milli", MAX_CPU_MILLI)?,
        memory_bytes: present.amount(row, "memory_bytes", MAX_MEMORY_BYTES)?,
        gpu_count,
        gpu_milli: present.stated(row, "gpu_milli", (0, 1000))?.unwrap_or(whole_gpus) as i64,
        gpu_models: models
            .map_or_else(Vec::new, |text| text.split('|').map(str::to_owned).collect()),
        user: present.text(row, "user")?,
        queue: present.text(row, "queue")?,
        model: present.text(row, "model")?,
        service_class: present.text(row, "service_class")?,
        priority: row.maybe(present.column("priority")).map_or(Ok(0), TextCell::signed)?,
        deadline_ms: time_ms("deadline_ms")?,
        stop_costs: StopCosts {
            checkpoint_interval_ms: time_ms("checkpoint_interval_ms")?,
            checkpoint_cost_ms: time_ms("checkpoint_cost_ms")?,
            restart_cost_ms: time_ms("restart_cost_ms")?,
            save_on_notice_ms: time_ms("save_on_notice_ms")?,
        },
        outcome: row
            .maybe(present.column("outcome"))
            .map_or(Ok(RecordedOutcome::Unknown), outcome)?,
        cut: row.maybe(present.column("cut")).map_or(Ok(UnseenEnds::Nowhere), cut)?,
        exact: None,
    };
    job.check()?;
    Ok(job)
}

fn outcome(cell: TextCell<'_>) -> Result<RecordedOutcome, RowProblem> {
    use RecordedOutcome::{Completed, Failed, Killed, Unknown};
    let all = [Completed, Failed, Killed, Unknown];
    let known = all.into_iter().find(|outcome| outcome.name() == cell.text);
    known.ok_or_else(|| cell.bad("is not an outcome", all.map(RecordedOutcome::name).join(", ")))
}

fn cut(cell: TextCell<'_>) -> Result<UnseenEnds, RowProblem> {
    let known = UnseenEnds::ALL.into_iter().find(|cut| cut.name() == cell.text);
    known.ok_or_else(|| cell.bad("is not a valid value", "nothing, begin, end or both"))
}

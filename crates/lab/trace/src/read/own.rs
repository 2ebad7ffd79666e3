//! dovetail's own CSV of jobs and of machines: every value of the types, nothing else.

use super::cell::RowProblem;
use super::{Cell, ClusterGpus, Column, RowView, Table, read_rows};
use crate::error::TraceError;
use crate::format::ReadOptions;
use crate::job::{Cut, Outcome, StopCosts, TraceJob};
use crate::node::{Cluster, TraceNode};
use crate::trace::{Known, Trace};

/// Columns of the jobs file, in the order in which they are written.
pub(crate) const JOB_COLUMNS: [&str; 22] = [
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
    columns: Vec<Option<Column>>,
}

impl<'n> Present<'n> {
    /// Looks the names up; a column of another name is refused, since it would be lost.
    fn of(table: &mut Table, names: &'n [&'static str]) -> Result<Self, TraceError> {
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

    fn column(&self, name: &str) -> Option<Column> {
        let index = self.names.iter().position(|known| *known == name)?;
        self.columns[index]
    }

    fn text(&self, row: RowView<'_>, name: &str) -> Result<Option<String>, RowProblem> {
        row.maybe(self.column(name)).map_or(Ok(None), Cell::text)
    }

    fn whole(&self, row: RowView<'_>, name: &str, highest: u64) -> Result<Option<u64>, RowProblem> {
        row.maybe(self.column(name)).map_or(Ok(None), |cell| cell.optional_whole(highest))
    }

    fn size(&self, row: RowView<'_>, name: &str) -> Result<Option<i64>, RowProblem> {
        Ok(self.whole(row, name, i64::MAX as u64)?.map(|value| value as i64))
    }

    /// A number that must stand in the row if the file has its column.
    fn stated(
        &self,
        row: RowView<'_>,
        name: &str,
        highest: u64,
    ) -> Result<Option<u64>, RowProblem> {
        row.maybe(self.column(name)).map(|cell| cell.whole(highest)).transpose()
    }
}

pub(crate) fn read_jobs(mut table: Table, options: &ReadOptions) -> Result<Trace, TraceError> {
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
        known: Known {
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

pub(crate) fn read_nodes(mut table: Table, options: &ReadOptions) -> Result<Cluster, TraceError> {
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
                cpu_milli: present.stated(row, "cpu_milli", i64::MAX as u64)?.unwrap_or(0) as i64,
                memory_bytes: present.stated(row, "memory_bytes", i64::MAX as u64)?.unwrap_or(0)
                    as i64,
                gpu_count: present.stated(row, "gpu_count", u32::MAX.into())?.unwrap_or(0) as u32,
                gpu_model: present.text(row, "gpu_model")?,
                gpu_memory_bytes: present.size(row, "gpu_memory_bytes")?,
                rack: present.text(row, "rack")?,
                zone: present.text(row, "zone")?,
            };
            node.check()?;
            cluster_gpus.add(&node, "gpu_count")?;
            Ok(Some(node))
        },
    )?;
    Ok(Cluster {
        nodes: rows.values,
        source: table.file().to_owned(),
        skipped: rows.skipped,
        notes: Vec::new(),
    })
}

fn job(present: &Present<'_>, row: RowView<'_>) -> Result<TraceJob, RowProblem> {
    let gpu_count = present.stated(row, "gpu_count", u32::MAX.into())?.unwrap_or(0) as u32;
    let whole_gpus = if gpu_count == 0 { 0 } else { 1000 };
    let models = present.text(row, "gpu_models")?;
    let job = TraceJob {
        id: present.text(row, "job_id")?.unwrap_or_default(),
        submit_ms: present.stated(row, "submit_ms", u64::MAX)?.unwrap_or(0),
        duration_ms: present.whole(row, "duration_ms", u64::MAX)?,
        estimate_ms: present.whole(row, "estimate_ms", u64::MAX)?,
        start_ms: present.whole(row, "start_ms", u64::MAX)?,
        pod_count: present.stated(row, "pod_count", u32::MAX.into())?.unwrap_or(1) as u32,
        cpu_milli: present.stated(row, "cpu_milli", i64::MAX as u64)?.unwrap_or(0) as i64,
        memory_bytes: present.stated(row, "memory_bytes", i64::MAX as u64)?.unwrap_or(0) as i64,
        gpu_count,
        gpu_milli: present.stated(row, "gpu_milli", 1000)?.unwrap_or(whole_gpus) as i64,
        gpu_models: models
            .map_or_else(Vec::new, |text| text.split('|').map(str::to_owned).collect()),
        user: present.text(row, "user")?,
        queue: present.text(row, "queue")?,
        model: present.text(row, "model")?,
        service_class: present.text(row, "service_class")?,
        priority: row.maybe(present.column("priority")).map_or(Ok(0), Cell::signed)?,
        deadline_ms: present.whole(row, "deadline_ms", u64::MAX)?,
        stop_costs: StopCosts {
            checkpoint_interval_ms: present.whole(row, "checkpoint_interval_ms", u64::MAX)?,
            checkpoint_cost_ms: present.whole(row, "checkpoint_cost_ms", u64::MAX)?,
            restart_cost_ms: present.whole(row, "restart_cost_ms", u64::MAX)?,
        },
        outcome: row.maybe(present.column("outcome")).map_or(Ok(Outcome::Unknown), outcome)?,
        cut: row.maybe(present.column("cut")).map_or(Ok(Cut::Nowhere), cut)?,
        exact: None,
    };
    job.check()?;
    Ok(job)
}

fn outcome(cell: Cell<'_>) -> Result<Outcome, RowProblem> {
    use Outcome::{Completed, Failed, Killed, Unknown};
    let all = [Completed, Failed, Killed, Unknown];
    let known = all.into_iter().find(|outcome| outcome.name() == cell.text);
    known.ok_or_else(|| cell.bad("is not an outcome", all.map(Outcome::name).join(", ")))
}

fn cut(cell: Cell<'_>) -> Result<Cut, RowProblem> {
    let known = Cut::ALL.into_iter().find(|cut| cut.name() == cell.text);
    known.ok_or_else(|| cell.bad("is no end of a job", "nothing, begin, end or both"))
}

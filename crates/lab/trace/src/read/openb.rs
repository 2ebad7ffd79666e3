//! Machines and pods of the Alibaba openb trace (`openb_node_list_*.csv`, `openb_pod_list_*.csv`).
//!
//! Source of the format: the data sets published with "Beware of Fragmentation: Scheduling
//! GPU-Sharing Workloads with Fragmentation Gradient Descent" (USENIX ATC 2023).
//! Two rules belong to the format and are applied here: a pod without a GPU has no GPU share and
//! no model wish, whatever those columns say; and a share above 1000 means a whole GPU.

use super::cell::RowProblem;
use super::{ClusterGpus, FileTable, RowView, TableColumn, TextCell, read_rows};
use crate::error::TraceError;
use crate::format::ReadOptions;
use crate::job::{RecordedOutcome, TraceJob};
use crate::limits::{MAX_CPU_MILLI, MAX_GPUS, MAX_MEMORY_BYTES, MAX_NODE_GPUS};
use crate::node::{TraceCluster, TraceNode};
use crate::trace::{KnownFields, Trace};

const MIB: u64 = 1 << 20;

/// Columns that every pod file has, then those of the files with times.
struct PodColumns {
    name: TableColumn,
    cpu_milli: TableColumn,
    memory_mib: TableColumn,
    num_gpu: TableColumn,
    gpu_milli: TableColumn,
    gpu_spec: Option<TableColumn>,
    qos: Option<TableColumn>,
    times: Option<PodTimes>,
}

struct PodTimes {
    phase: TableColumn,
    creation: TableColumn,
    deletion: TableColumn,
    scheduled: TableColumn,
}

pub(crate) fn read_pods(mut table: FileTable, options: &ReadOptions) -> Result<Trace, TraceError> {
    let columns = PodColumns::of(&mut table)?;
    let rows = read_rows(
        &mut table,
        options,
        "name",
        |job: &TraceJob| &job.id,
        |row| columns.pod(row).map(Some),
    )?;
    Ok(Trace {
        jobs: rows.values,
        source: table.file().to_owned(),
        format: table.format(),
        lines: rows.lines,
        known: KnownFields {
            submit_times: columns.times.is_some(),
            gpu_models: columns.gpu_spec.is_some(),
            ..KnownFields::default()
        },
        skipped: rows.skipped,
        notes: table.notes(),
    })
}

pub(crate) fn read_nodes(
    mut table: FileTable,
    options: &ReadOptions,
) -> Result<TraceCluster, TraceError> {
    let name = table.require("sn")?;
    let cpu_milli = table.require("cpu_milli")?;
    let memory_mib = table.require("memory_mib")?;
    let gpu = table.require("gpu")?;
    let model = table.require("model")?;
    let mut cluster_gpus = ClusterGpus::default();
    let rows = read_rows(
        &mut table,
        options,
        "sn",
        |node: &TraceNode| &node.name,
        |row| {
            let node = TraceNode {
                name: row.cell(name).name()?,
                cpu_milli: row.cell(cpu_milli).whole(MAX_CPU_MILLI as u64)? as i64,
                memory_bytes: memory_bytes(row.cell(memory_mib))?,
                gpu_count: row.cell(gpu).whole(MAX_NODE_GPUS.into())? as u32,
                gpu_model: row.cell(model).text()?,
                ..TraceNode::default()
            };
            if node.gpu_count == 0 && node.gpu_model.is_some() {
                return Err(row.cell(model).bad("needs a GPU", "an empty cell, because gpu is 0"));
            }
            cluster_gpus.add(&node, "gpu")?;
            Ok(Some(node))
        },
    )?;
    Ok(TraceCluster {
        nodes: rows.values,
        source: table.file().to_owned(),
        skipped: rows.skipped,
        notes: table.notes(),
    })
}

impl PodColumns {
    fn of(table: &mut FileTable) -> Result<Self, TraceError> {
        let times = match table.optional("creation_time") {
            None => None,
            Some(creation) => Some(PodTimes {
                phase: table.require("pod_phase")?,
                creation,
                deletion: table.require("deletion_time")?,
                scheduled: table.require("scheduled_time")?,
            }),
        };
        Ok(Self {
            name: table.require("name")?,
            cpu_milli: table.require("cpu_milli")?,
            memory_mib: table.require("memory_mib")?,
            num_gpu: table.require("num_gpu")?,
            gpu_milli: table.require("gpu_milli")?,
            gpu_spec: table.optional("gpu_spec"),
            qos: table.optional("qos"),
            times,
        })
    }

    fn pod(&self, row: RowView<'_>) -> Result<TraceJob, RowProblem> {
        let gpu_count = row.cell(self.num_gpu).whole(MAX_GPUS.into())? as u32;
        let mut job = TraceJob {
            id: row.cell(self.name).name()?,
            pod_count: 1,
            cpu_milli: row.cell(self.cpu_milli).whole(MAX_CPU_MILLI as u64)? as i64,
            memory_bytes: memory_bytes(row.cell(self.memory_mib))?,
            gpu_count,
            gpu_milli: share(row.cell(self.gpu_milli), gpu_count)?,
            service_class: row.maybe(self.qos).map_or(Ok(None), TextCell::text)?,
            ..TraceJob::default()
        };
        if let Some(cell) = row.maybe(self.gpu_spec) {
            let models = gpu_models(cell)?;
            if gpu_count > 0 {
                job.gpu_models = models;
            }
        }
        if let Some(times) = &self.times {
            times.read(row, &mut job)?;
        }
        Ok(job)
    }
}

impl PodTimes {
    fn read(&self, row: RowView<'_>, job: &mut TraceJob) -> Result<(), RowProblem> {
        let (creation, deletion) = (row.cell(self.creation), row.cell(self.deletion));
        let (scheduled, phase) = (row.cell(self.scheduled), row.cell(self.phase));
        job.submit_ms = creation.seconds_as_ms()?;
        job.start_ms = scheduled.optional_seconds_as_ms()?;
        job.outcome = outcome(phase)?;
        let end_ms = deletion.optional_seconds_as_ms()?;
        let pending = phase.text == "Pending";
        if pending != job.start_ms.is_none() {
            let expected = "a time, or an empty cell where pod_phase is Pending";
            return Err(scheduled.bad("does not match the phase", expected));
        }
        if job.start_ms.is_some_and(|start| start < job.submit_ms) {
            let expected = format!("at least creation_time, which is {}", creation.text);
            return Err(scheduled.bad("is before the creation", expected));
        }
        let started = job.start_ms.unwrap_or(job.submit_ms);
        if end_ms.is_some_and(|end| end < started) {
            let expected = "at least creation_time and scheduled_time";
            return Err(deletion.bad("is before the pod was created", expected));
        }
        job.duration_ms = job.start_ms.zip(end_ms).map(|(start, end)| end - start);
        Ok(())
    }
}

/// `Running` was the last phase seen before the pod was deleted, which tells nothing of its end.
fn outcome(phase: TextCell<'_>) -> Result<RecordedOutcome, RowProblem> {
    match phase.text {
        "Succeeded" => Ok(RecordedOutcome::Completed),
        "Failed" => Ok(RecordedOutcome::Failed),
        "Running" | "Pending" | "Unknown" => Ok(RecordedOutcome::Unknown),
        _ => Err(phase.bad("is not a pod phase", "Pending, Running, Succeeded, Failed or Unknown")),
    }
}

fn share(cell: TextCell<'_>, gpu_count: u32) -> Result<i64, RowProblem> {
    let milli = cell.whole(u64::from(MAX_GPUS) * 1000)?.min(1000) as i64;
    match (gpu_count, milli) {
        (0, _) => Ok(0),
        (_, 0) => {
            Err(cell.bad("requests nothing of each GPU", "1 to 1000, because num_gpu is not 0"))
        }
        (2.., 1..1000) => {
            Err(cell.bad("requests a part of several GPUs", "1000, because num_gpu is above 1"))
        }
        (_, milli) => Ok(milli),
    }
}

fn gpu_models(cell: TextCell<'_>) -> Result<Vec<String>, RowProblem> {
    let Some(text) = cell.text()? else {
        return Ok(Vec::new());
    };
    let models: Vec<String> = text.split('|').map(str::to_owned).collect();
    if models.iter().any(String::is_empty) {
        return Err(cell.bad("has an empty model", "models joined with |"));
    }
    Ok(models)
}

fn memory_bytes(cell: TextCell<'_>) -> Result<i64, RowProblem> {
    Ok((cell.whole(MAX_MEMORY_BYTES as u64 / MIB)? * MIB) as i64)
}

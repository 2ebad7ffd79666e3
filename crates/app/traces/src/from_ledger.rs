//! `dovetail trace export --from-ledger`: what a ledger saw of a cluster, as jobs and machines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use dovetail_account::device_time::{DeviceInterval, Span};
use dovetail_account::rollup::HOUR_MS;
use dovetail_console::app::App;
use dovetail_console::clock::now_ms;
use dovetail_console::file::write_whole;
use dovetail_console::places::refuse_shared;
use dovetail_console::plain::plain;
use dovetail_console::table::{facts, whole};
use dovetail_costing::from_store::{Ledger, bad_address, require_file};
use dovetail_objects::owner_kind;
use dovetail_settings::errors::UsageError;
use dovetail_settings::form::Output;
use dovetail_sources::period::{PeriodFlag, timestamp};
use dovetail_store::{Address, HistoryHour, HistoryPod, NodeFacts};
use dovetail_trace::{
    ObservedAllocations, SeenPart, SeenPod, Trace, TraceCluster, TraceNode, UnseenEnds,
    write_cluster, write_trace,
};
use dovetail_units::amount::hundredths;
use dovetail_units::duration::duration_of_seconds;
use dovetail_units::time::exact_time;
use serde::Serialize;

use crate::{AMPLE_CPU_MILLI, AMPLE_MEMORY_BYTES};

/// Flags as written. A file with jobs conflicts with each of them: to clap, a flag that cannot
/// stand beside the file is not missing, whatever else requires it.
#[derive(Debug, Args)]
pub struct LedgerFlags {
    /// Ledger (written by dovetail serve) to export instead of FILE: a path, or
    /// postgres://USER@HOST/DATABASE; its GPU time in a period is written as jobs
    #[arg(long, value_name = "LEDGER", conflicts_with_all = ["jobs", "skip_bad_rows"])]
    pub from_ledger: Option<String>,
    /// With --from-ledger: period to read: a duration before --until (24h, 14d), a day
    /// (2026-10-14), a month (2026-10), or START..END of days, months or times
    /// (2026-10-01T08:00:00Z..2026-10-14), in UTC
    #[arg(
        long,
        value_name = "PERIOD",
        default_value = "24h",
        requires = "from_ledger",
        conflicts_with = "jobs"
    )]
    period: PeriodFlag,
    /// With --from-ledger: end of a --period that is a duration, such as 2026-11-20T12:00:00Z
    /// [default: now]
    #[arg(long, value_name = "TIME", requires = "from_ledger", conflicts_with = "jobs")]
    #[arg(value_parser = timestamp)]
    until: Option<jiff::Timestamp>,
    /// With --from-ledger: cluster in the ledger [default: the only one]
    #[arg(long, value_name = "NAME", requires = "from_ledger", conflicts_with = "jobs")]
    cluster: Option<String>,
    /// With --from-ledger: file for the nodes
    #[arg(long, value_name = "FILE", requires = "from_ledger", conflicts_with = "jobs")]
    to_nodes: Option<PathBuf>,
}

/// The result, as JSON.
#[derive(Debug, Serialize)]
struct LedgerExport {
    cluster: String,
    from: String,
    to: String,
    jobs: usize,
    pods: usize,
    gpu_hours: f64,
    /// Jobs of which not everything was seen.
    cut_at_begin: usize,
    cut_at_end: usize,
    cut_at_both: usize,
    /// Jobs whose requests were not recorded.
    jobs_without_cpu: usize,
    jobs_without_memory: usize,
    nodes: usize,
    gpus: u64,
    nodes_without_cpu_and_memory: usize,
    /// Time of the period that was never read.
    hours_never_read: f64,
    written: String,
    written_nodes: Option<String>,
}

#[derive(Default)]
struct NodeDevices {
    /// Most devices in one hour, by node.
    gpus: BTreeMap<u32, u32>,
}

/// Writes what a ledger saw.
///
/// # Errors
/// Flags that do not fit together, a ledger that cannot be read, and files that cannot be written.
pub fn run(app: &App, flags: &LedgerFlags, ledger: &str, to: &Path) -> Result<()> {
    let output = app.output("trace export")?;
    let to_nodes = flags.to_nodes.as_deref();
    let address: Address = ledger.parse().map_err(|error| bad_address("--from-ledger", error))?;
    require_file("--from-ledger", &address, "")?;
    let file = match &address {
        Address::File(path) => Some(path.as_path()),
        Address::Server(_) => None,
    };
    refuse_shared(&[("--from-ledger", file)], &[("--to", Some(to)), ("--to-nodes", to_nodes)])?;
    let span = flags.span()?;
    let mut ledger = Ledger::open("--from-ledger", &address)?;
    let cluster = cluster(&mut ledger, &address, flags.cluster.as_deref())?;
    let (seen, machines) = look(&mut ledger, &cluster, span)?;
    let numbers = seen.pods();
    let pods = ledger.run(|store| HistoryPod::of(store, &cluster, &numbers))?;
    let trace = seen.jobs(span.from_ms, |pod| named(pods.get(&pod)), address.to_string());
    let nodes = machines.cluster(&mut ledger, &cluster, span)?;
    if trace.jobs.is_empty() {
        bail!(
            "cluster `{}` had no allocated GPUs from {} to {}: choose a period for which `dovetail cost \
             --store` shows GPU-hours",
            plain(&cluster),
            exact_time(span.from_ms),
            exact_time(span.to_ms)
        );
    }
    let missing = ledger.run(|store| store.missing(&cluster, None, span))?;
    write_whole(to, |file| write_trace(&trace, file))?;
    if let Some(path) = to_nodes {
        write_whole(path, |file| write_cluster(&nodes.cluster, file))?;
    }
    let mut report = LedgerExport::of(&trace, &nodes, span);
    report.cluster = plain(&cluster);
    report.pods = pods.len();
    let missing_ms: u64 = missing.iter().map(|span| span.to_ms - span.from_ms).sum();
    report.hours_never_read = missing_ms as f64 / 3.6e6;
    report.written = to.display().to_string();
    report.written_nodes = to_nodes.map(|path| path.display().to_string());
    match output {
        Output::Json => app.print_json(&report),
        _ => app.print(&report.text()),
    }
}

impl LedgerFlags {
    fn span(&self) -> Result<Span> {
        let until = |time: jiff::Timestamp| time.as_millisecond().max(0).cast_unsigned();
        let to_ms = self.until.map_or_else(now_ms, until);
        let refused = match self.period {
            PeriodFlag::Last { ms: 0 } => {
                Some("--period 0s: the period is empty; use a duration such as 24h")
            }
            PeriodFlag::Between(_) if self.until.is_some() => Some(
                "--until: conflicts with --period START..END, which already has an end; remove --until, or use a duration \
                 such as --period 24h",
            ),
            _ => None,
        };
        match refused {
            Some(text) => Err(UsageError(text.to_owned()).into()),
            None => Ok(self.period.span(to_ms, 1)?),
        }
    }
}

/// The cluster that is meant.
fn cluster(ledger: &mut Ledger, address: &Address, named: Option<&str>) -> Result<String> {
    let known = ledger.run(|store| store.clusters())?;
    let list = || known.iter().map(|name| plain(name)).collect::<Vec<_>>().join(", ");
    let text = match (named, known.as_slice()) {
        (Some(name), _) if known.iter().any(|known| known == name) => return Ok(name.to_owned()),
        (None, [only]) => return Ok(only.clone()),
        (_, []) => {
            let store = plain(&address.to_string());
            format!(
                "--from-ledger {store}: the ledger is empty; fill it with `dovetail serve --store {store}` or \
                 `dovetail cost --store {store} --prometheus URL --cluster NAME`"
            )
        }
        (Some(name), _) => {
            format!("--cluster {}: not in the ledger, which has {}", plain(name), list())
        }
        (None, _) => {
            format!(
                "--from-ledger: the ledger has several clusters; select one with --cluster: {}",
                list()
            )
        }
    };
    Err(UsageError(text).into())
}

/// Goes through the hours of a period.
fn look(
    ledger: &mut Ledger,
    cluster: &str,
    span: Span,
) -> Result<(ObservedAllocations, NodeDevices)> {
    let (mut seen, mut machines) = (ObservedAllocations::default(), NodeDevices::default());
    for hour in span.from_ms / HOUR_MS..span.to_ms.div_ceil(HOUR_MS) {
        let found = ledger.run(|store| HistoryHour::of(store, cluster, hour))?;
        let mut gpus: BTreeMap<u32, u32> = BTreeMap::new();
        for device in &found.devices {
            let parts: Vec<SeenPart> =
                device.intervals.iter().filter_map(|interval| part(interval, span)).collect();
            if !parts.is_empty() {
                *gpus.entry(device.node).or_default() += 1;
                seen.add(device.device, &parts);
            }
        }
        for (node, gpus) in gpus {
            let most = machines.gpus.entry(node).or_default();
            *most = gpus.max(*most);
        }
        for (_, pod, held) in found.kept {
            let hour = (hour * HOUR_MS, (hour + 1) * HOUR_MS);
            seen.add_kept(pod, hour, held.cpu_milli_ms, held.memory_byte_ms);
        }
    }
    Ok((seen, machines))
}

/// The part of an interval that lies in the period.
fn part(interval: &DeviceInterval, span: Span) -> Option<SeenPart> {
    let from_ms = interval.span.from_ms.max(span.from_ms);
    let to_ms = interval.span.to_ms.min(span.to_ms);
    let DeviceInterval { gpu_milli, holder, .. } = *interval;
    (from_ms < to_ms).then_some(SeenPart { from_ms, to_ms, gpu_milli, pod: holder })
}

fn named(pod: Option<&HistoryPod>) -> SeenPod {
    let Some(HistoryPod { name, party, workload }) = pod else { return SeenPod::default() };
    let kind = workload.job.split(' ').next().unwrap_or_default();
    SeenPod {
        name: format!("{}/{name}", party.namespace),
        // The pods of a Job need not start together: each is a job of its own.
        gang: owner_kind(kind).gangs.then(|| workload.job.clone()),
        queue: workload.queue.clone(),
        model: workload.model.clone(),
    }
}

/// Machines, and of how many nobody knows CPU and memory.
struct LedgerNodes {
    cluster: TraceCluster,
    blind: usize,
}

impl NodeDevices {
    fn cluster(self, ledger: &mut Ledger, cluster: &str, span: Span) -> Result<LedgerNodes> {
        let numbers: BTreeSet<u32> = self.gpus.keys().copied().collect();
        let day_ms = 24 * HOUR_MS;
        let days = span.from_ms / day_ms..span.to_ms.div_ceil(day_ms);
        let known = ledger.run(|store| NodeFacts::last_known(store, cluster, &numbers, days))?;
        let mut nodes = Vec::new();
        let mut blind = 0;
        for (number, (name, facts)) in known {
            let NodeFacts { cpu_milli, memory_bytes, gpu_type, .. } = facts;
            blind += usize::from(cpu_milli == 0 || memory_bytes == 0);
            // More than any job asks for where nobody knows, as with `--nodes 8x8`.
            let amount = |amount: u64, ample: i64| match i64::try_from(amount) {
                Ok(amount) if amount > 0 => amount.min(ample),
                _ => ample,
            };
            nodes.push(TraceNode {
                name: plain(&name),
                cpu_milli: amount(cpu_milli, AMPLE_CPU_MILLI),
                memory_bytes: amount(memory_bytes, AMPLE_MEMORY_BYTES),
                gpu_count: self.gpus.get(&number).copied().unwrap_or(0),
                gpu_model: Some(plain(&gpu_type)).filter(|model| !model.is_empty()),
                ..TraceNode::default()
            });
        }
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(LedgerNodes { cluster: TraceCluster { nodes, ..TraceCluster::default() }, blind })
    }
}

impl LedgerExport {
    fn of(trace: &Trace, nodes: &LedgerNodes, span: Span) -> Self {
        let cut = |cut: UnseenEnds| trace.jobs.iter().filter(|job| job.cut == cut).count();
        let milli_ms: u128 = trace.jobs.iter().filter_map(|job| job.gpu_milli_ms()).sum();
        Self {
            cluster: String::new(),
            from: exact_time(span.from_ms),
            to: exact_time(span.to_ms),
            jobs: trace.jobs.len(),
            pods: 0,
            gpu_hours: milli_ms as f64 / 3.6e9,
            cut_at_begin: cut(UnseenEnds::Begin),
            cut_at_end: cut(UnseenEnds::End),
            cut_at_both: cut(UnseenEnds::Both),
            jobs_without_cpu: trace.jobs.iter().filter(|job| job.cpu_milli == 0).count(),
            jobs_without_memory: trace.jobs.iter().filter(|job| job.memory_bytes == 0).count(),
            nodes: nodes.cluster.nodes.len(),
            gpus: nodes.cluster.total_gpus(),
            nodes_without_cpu_and_memory: nodes.blind,
            hours_never_read: 0.0,
            written: String::new(),
            written_nodes: None,
        }
    }

    fn text(&self) -> String {
        let number = |number: usize| whole(number as u64);
        let of = |part: usize, all: usize| format!("{} of {}", number(part), number(all));
        let mut rows = vec![
            ("cluster", self.cluster.clone()),
            ("from", self.from.clone()),
            ("to", self.to.clone()),
            ("jobs", format!("{}, of {} pods", number(self.jobs), number(self.pods))),
            ("GPU-hours", hundredths(self.gpu_hours)),
            ("start unknown", of(self.cut_at_begin + self.cut_at_both, self.jobs)),
            ("end unknown", of(self.cut_at_end + self.cut_at_both, self.jobs)),
            ("CPU unknown", of(self.jobs_without_cpu, self.jobs)),
            ("memory unknown", of(self.jobs_without_memory, self.jobs)),
            (
                "no data",
                format!("{} of the period", duration_of_seconds(3_600.0 * self.hours_never_read)),
            ),
            ("always unknown", "submission (taken as the start), outcome, priority".to_owned()),
            ("nodes", format!("{}, with {} GPUs", number(self.nodes), whole(self.gpus))),
            (
                "CPU and memory unknown",
                format!("{} (treated as ample)", of(self.nodes_without_cpu_and_memory, self.nodes)),
            ),
            ("written", self.written.clone()),
        ];
        if self.nodes_without_cpu_and_memory == 0 {
            rows.retain(|(name, _)| *name != "CPU and memory unknown");
        }
        rows.extend(self.written_nodes.clone().map(|path| ("nodes written", path)));
        facts(rows)
    }
}

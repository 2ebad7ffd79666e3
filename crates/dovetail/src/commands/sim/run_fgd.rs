//! `dovetail sim run --protocol fgd`.

use anyhow::{Context, Result};
use dovetail_console::app::App;
use dovetail_console::progress::Progress;
use dovetail_console::style::OutputStream;
use dovetail_console::table::{counted, facts, percent, table, whole};
use dovetail_settings::form::Output;
use dovetail_trace::TraceCluster;
use dovetail_units::amount::fine_percent;
use serde::Serialize;

use crate::commands::sim::page::{Section, page};
use crate::commands::sim::run::RunFlags;
use dovetail_replays::fgd_replay::{FgdReplay, replay};
use dovetail_replays::figures::{FgdFigures, Figures, ReplayResult};
use dovetail_replays::input::fgd_world::FgdTrace;
use dovetail_replays::limits::PolicyBound;
use dovetail_sim::fgd::prefixes;
use dovetail_sim::timed::Impossible;

/// Arrived percents that the table shows.
const SHOWN: [usize; 5] = [50, 80, 90, 100, 130];

/// The result, as JSON.
#[derive(Debug, Serialize)]
struct ArrivalsDocument {
    protocol: &'static str,
    policy: String,
    trace: String,
    seed: u64,
    nodes: usize,
    gpus: u64,
    allocation_percent: Vec<Option<f64>>,
    fragmentation_percent: Vec<Option<f64>>,
    failed_pods: u64,
    first_rejection_percent: Option<f64>,
    decisions: u64,
    decisions_per_second: Option<f64>,
    decision_p50_ns: Option<u32>,
    decision_p99_ns: Option<u32>,
    learning_started_from: Option<String>,
    event_log_hash: String,
}

/// Replays the pods of one file.
pub(crate) fn run(app: &App, flags: &RunFlags) -> Result<()> {
    let output = app.output("sim run")?;
    let name = flags.policy.as_deref().unwrap_or("dovetail");
    let seed = app.settings.seed.value;
    let policy = flags.learning.policy(name, seed)?;
    let nodes = flags.nodes.as_ref().context("--nodes is required")?;
    let cluster = nodes.cluster(app, flags.rows)?;
    let path = flags.pods.as_deref().context("--pods is required")?;
    let trace = FgdTrace::read(app, path, flags.rows)?;
    let orders = trace.orders_from(app, &cluster, seed, &flags.orders)?;
    trace.note_missing_models(app, &cluster);
    let progress = Progress::new("pods", orders.arrivals.len() as u64);
    let world = trace.world(&cluster, &orders);
    let replay = replay(&world, policy, flags.check, flags.record.as_deref(), &progress)?;
    drop(progress);
    flags.learning.save(replay.run.learnt.as_ref())?;
    let started_from = flags.learning.started_from(name);
    if output == Output::Html {
        let row = ReplayResult {
            trace: trace.name.clone(),
            variant: name.to_owned(),
            seed,
            figures: Figures::Fgd(Box::new(FgdFigures::of(&replay, seed, world.cluster_milli()))),
            bill: None,
            limit: Some(PolicyBound::from(&prefixes(&world, false)?)),
            usage: None,
            learning_started_from: started_from,
        };
        let (nodes, gpus) = (cluster.nodes.len(), cluster.total_gpus());
        let title = format!("{name} on {}", trace.name);
        let impossible = &Impossible::default();
        let section = Section { nodes, gpus, rows: &[row], seeds: 1, against: "", impossible };
        return app.print(&page(&title, &[section])?);
    }
    let report = report(&trace, &cluster, name, seed, started_from, replay);
    match output {
        Output::Json => app.print_json(&report),
        _ => app.print(&report.text(app)),
    }
}

fn report(
    trace: &FgdTrace,
    cluster: &TraceCluster,
    policy: &str,
    seed: u64,
    learning_started_from: Option<String>,
    replay: FgdReplay,
) -> ArrivalsDocument {
    let decisions_per_second = replay.decisions_per_second();
    let mut run = replay.run;
    run.latencies_ns.sort_unstable();
    let quantile = |hundredths: usize| {
        let place = run.latencies_ns.len() * hundredths / 100;
        run.latencies_ns.get(place).copied()
    };
    ArrivalsDocument {
        protocol: "fgd",
        policy: policy.to_owned(),
        trace: trace.name.clone(),
        seed,
        nodes: cluster.nodes.len(),
        gpus: cluster.total_gpus(),
        decision_p50_ns: quantile(50),
        decision_p99_ns: quantile(99),
        allocation_percent: run.curves.allocation_percent,
        fragmentation_percent: run.curves.fragmentation_percent,
        failed_pods: run.failed_pods,
        first_rejection_percent: run.first_rejection_percent,
        decisions: run.decisions,
        decisions_per_second,
        learning_started_from,
        event_log_hash: run.event_log_hash,
    }
}

impl ArrivalsDocument {
    /// What a person wants to see.
    fn text(&self, app: &App) -> String {
        let style = app.style(OutputStream::Result);
        let title = format!("{} on {}, seed {}", self.policy, self.trace, self.seed);
        let title = style.strong(&title);
        let row = |at: usize| {
            let of = |curve: &[Option<f64>]| percent(curve.get(at).copied().flatten());
            vec![format!("{at}%"), of(&self.allocation_percent), of(&self.fragmentation_percent)]
        };
        let header = ["GPU requested", "allocated", "fragmented"];
        let curves = table(&header, SHOWN.map(row).to_vec());
        let micros = |ns: Option<u32>| {
            ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.1} us", f64::from(ns) / 1e3))
        };
        let first = self.first_rejection_percent;
        let first = first
            .map_or_else(|| "none".to_owned(), |at| format!("at {} requested", fine_percent(at)));
        let learning = self.learning_started_from.clone();
        let mut rows = vec![
            (
                "cluster",
                format!("{}, {}", counted(self.nodes, "node"), counted(self.gpus as usize, "GPU")),
            ),
            ("pods arrived", whole(self.decisions)),
            ("pods rejected", whole(self.failed_pods)),
            ("first rejection", first),
            (
                "decisions per second",
                self.decisions_per_second.map_or_else(|| "-".to_owned(), |s| whole(s as u64)),
            ),
            (
                "time of a decision",
                format!(
                    "p50 {}, p99 {}",
                    micros(self.decision_p50_ns),
                    micros(self.decision_p99_ns)
                ),
            ),
        ];
        rows.extend(learning.map(|from| ("learning started from", from)));
        rows.push(("event log", self.event_log_hash.clone()));
        format!("{title}\n\n{curves}\n{}", facts(rows))
    }
}

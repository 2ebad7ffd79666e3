//! `dovetail sim compare`: several policies on the same traces and seeds.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use clap::Args;
use dovetail_console::app::App;
use dovetail_console::style::OutputStream;
use dovetail_console::table::{counted, number, table};
use dovetail_settings::errors::UsageError;
use dovetail_settings::form::Output;
use serde::Serialize;

use crate::commands::sim::grid::{Grid, GridFlags};
use crate::commands::sim::page::page;
use dovetail_replays::figures::{Metric, ReplayResult, metrics_of, money_note, shown};
use dovetail_replays::impossible;
use dovetail_replays::limits::PolicyBound;
use dovetail_replays::statistics::{Paired, Spread};
use dovetail_sim::timed::Impossible;

/// Metrics that fit into a table without spreads.
const SHOWN_ALONE: usize = 5;
/// Metrics that fit beside one with its spread.
const SHOWN_BESIDE: usize = 2;

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct CompareFlags {
    #[command(flatten)]
    grid: GridFlags,
    /// Baseline: a policy, or order/policy for timed [default: the first]
    #[arg(long, value_name = "NAME")]
    against: Option<String>,
    /// Skip the bound that no policy can beat; computing it takes as long as several replays
    #[arg(long = "no-bounds", alias = "no-limits")]
    no_limits: bool,
}

/// The result, as JSON.
#[derive(Debug, Serialize)]
struct ComparisonDocument {
    protocol: &'static str,
    nodes: usize,
    gpus: u64,
    seeds: Vec<u64>,
    against: String,
    traces: Vec<ComparisonBlock>,
    /// Over all traces and seeds.
    all_traces: ComparisonBlock,
    #[serde(skip)]
    metrics: &'static [Metric],
}

/// All policies on one trace, or on all.
#[derive(Debug, Serialize)]
struct ComparisonBlock {
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    /// Mean over the seeds; percent of the GPUs requested (fgd), or seconds from submission to end.
    limit: Option<f64>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    impossible: Option<Impossible>,
    policies: Vec<PolicyLine>,
}

#[derive(Debug, Serialize)]
struct PolicyLine {
    policy: String,
    metrics: BTreeMap<&'static str, Comparison>,
}

/// One figure of one policy.
#[derive(Debug, Serialize)]
struct Comparison {
    #[serde(flatten)]
    spread: Option<Spread>,
    /// Absent for the policy that the others are compared with.
    against: Option<Paired>,
}

pub(crate) fn run(app: &App, flags: &CompareFlags) -> Result<()> {
    let output = app.output("sim compare")?;
    let grid = Grid::new(app, &flags.grid)?;
    let against = flags.against.clone().unwrap_or_else(|| grid.variants[0].clone());
    if !grid.variants.contains(&against) {
        let known = grid.variants.join(", ");
        return Err(UsageError(format!(
            "--against {against}: not among the compared policies: {known}"
        ))
        .into());
    }
    let rows = grid.run(!flags.no_limits)?;
    if output == Output::Html {
        let sections = grid.sections(&rows, &against);
        let title = format!("{} on {}", grid.variants.join(", "), grid.traces.join(", "));
        return app.print(&page(&title, &sections)?);
    }
    let report = ComparisonDocument::new(&grid, flags.grid.protocol.name(), &rows, against);
    match output {
        Output::Json => app.print_json(&report),
        _ => app.print(&report.text(app)),
    }
}

impl ComparisonDocument {
    fn new(grid: &Grid, protocol: &'static str, rows: &[ReplayResult], against: String) -> Self {
        let metrics = rows.first().map_or(&[][..], metrics_of);
        let per_trace = grid.variants.len() * grid.seeds.len();
        let block = |rows: &[ReplayResult], trace: Option<String>| {
            ComparisonBlock::new(grid, rows, trace, &against, metrics)
        };
        let traces = rows.chunks(per_trace).zip(&grid.impossible).map(|(rows, impossible)| {
            ComparisonBlock {
                impossible: (protocol == "timed").then(|| impossible.clone()),
                ..block(rows, Some(rows[0].trace.clone()))
            }
        });
        Self {
            protocol,
            nodes: grid.cluster.nodes.len(),
            gpus: grid.cluster.total_gpus(),
            seeds: grid.seeds.clone(),
            traces: traces.collect(),
            all_traces: block(rows, None),
            against,
            metrics,
        }
    }

    fn text(&self, app: &App) -> String {
        let style = app.style(OutputStream::Result);
        let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
        let mut text = format!(
            "{}, {}, seeds {}; compared with {}\n",
            counted(self.nodes, "node"),
            counted(self.gpus as usize, "GPU"),
            seeds.join(" "),
            self.against
        );
        for block in &self.traces {
            let name = block.trace.as_deref().unwrap_or_default();
            text += &format!("\n{}\n{}", style.strong(name), block.text(self.metrics));
            text += &block.impossible.as_ref().map_or_else(String::new, impossible::text);
        }
        if self.traces.len() > 1 {
            let block = self.all_traces.text(self.metrics);
            text += &format!("\n{}\n{block}", style.strong("all traces"));
        }
        text
    }
}

impl ComparisonBlock {
    fn new(
        grid: &Grid,
        rows: &[ReplayResult],
        trace: Option<String>,
        against: &str,
        metrics: &[Metric],
    ) -> Self {
        let of = |variant: &str| -> Vec<&ReplayResult> {
            rows.iter().filter(|row| row.variant == variant).collect()
        };
        let others = of(against);
        let line = |variant: &String| {
            let own = of(variant);
            let metrics = metrics.iter().map(|metric| {
                let mut seen = BTreeSet::new();
                let mut figures = Vec::new();
                let mut pairs = Vec::new();
                for (row, other) in own.iter().zip(&others) {
                    let (hash, other_hash) =
                        (row.figures.event_log_hash(), other.figures.event_log_hash());
                    // A replay that the seed does not change is one replay, however often asked
                    // for.
                    if seen.insert((hash, None)) {
                        figures.extend(metric.of(row));
                    }
                    if seen.insert((hash, Some(other_hash))) {
                        pairs.extend(metric.of(row).zip(metric.of(other)));
                    }
                }
                let against = Paired::of(&pairs).filter(|_| variant != against);
                (metric.key, Comparison { spread: Spread::of(&figures), against })
            });
            PolicyLine { policy: variant.clone(), metrics: metrics.collect() }
        };
        let limits: Vec<f64> =
            others.iter().filter_map(|row| row.limit.map(PolicyBound::figure)).collect();
        Self {
            trace,
            limit: Spread::of(&limits).map(|spread| spread.mean),
            impossible: None,
            policies: grid.variants.iter().map(line).collect(),
        }
    }

    /// With several runs the first metric with its spread and the sign test, and the means of the
    /// next ones; with one run alone what it gave.
    fn text(&self, metrics: &[Metric]) -> String {
        let is_known = |metric: &&Metric| {
            let spread = |line: &PolicyLine| line.metrics.get(metric.key)?.spread;
            self.policies.iter().any(|line| spread(line).is_some())
        };
        let metrics: Vec<&Metric> = metrics.iter().filter(is_known).collect();
        let runs = |line: &PolicyLine| {
            line.metrics.values().filter_map(|c| c.spread).map(|s| s.runs).max()
        };
        if self.policies.iter().filter_map(runs).max() == Some(1) {
            let mut header = vec!["policy"];
            let metrics = shown(metrics, SHOWN_ALONE);
            header.extend(metrics.iter().map(|metric| metric.title));
            let row = |line: &PolicyLine| {
                let means = metrics.iter().map(|metric| line.mean(metric));
                std::iter::once(line.policy.clone()).chain(means).collect()
            };
            let rows = self.policies.iter().map(row).collect();
            return table(&header, rows) + money_note(&metrics);
        }
        let Some((first, others)) = metrics.split_first() else { return String::new() };
        let others = shown(others.iter().copied(), SHOWN_BESIDE);
        let mut header = vec!["policy", first.title, "+-", "min", "max", "change", "p"];
        header.extend(others.iter().map(|metric| metric.title));
        let row = |line: &PolicyLine| {
            let mut cells = line.compared(first);
            cells.extend(others.iter().map(|metric| line.mean(metric)));
            cells
        };
        table(&header, self.policies.iter().map(row).collect()) + money_note(&others)
    }
}

impl PolicyLine {
    /// The policy and one metric with its spread and the sign test.
    fn compared(&self, metric: &Metric) -> Vec<String> {
        let comparison = self.metrics.get(metric.key);
        let spread = comparison.and_then(|comparison| comparison.spread);
        let against = comparison.and_then(|comparison| comparison.against);
        let shown = |figure: Option<f64>| number(figure.map(|figure| metric.shown(figure)));
        let difference = |paired: Paired| {
            let difference = metric.shown(paired.mean_difference);
            let sign = if difference > 0.0 { "+" } else { "" };
            format!("{sign}{}", number(Some(difference)))
        };
        vec![
            self.policy.clone(),
            shown(spread.map(|spread| spread.mean)),
            shown(spread.and_then(|spread| spread.standard_deviation)),
            shown(spread.map(|spread| spread.min)),
            shown(spread.map(|spread| spread.max)),
            against.map_or_else(String::new, difference),
            against.map_or_else(String::new, |paired| format!("{:.3}", paired.sign_test_p)),
        ]
    }

    fn mean(&self, metric: &Metric) -> String {
        let spread = self.metrics.get(metric.key).and_then(|comparison| comparison.spread);
        number(spread.map(|spread| metric.shown(spread.mean)))
    }
}

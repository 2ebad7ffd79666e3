//! `dovetail sim run --protocol slices`.

use anyhow::{Context, Result};
use dovetail_console::app::App;
use dovetail_console::style::OutputStream;
use dovetail_console::table::{counted, facts, whole};
use dovetail_plan::EngineConfig;
use dovetail_settings::errors::UsageError;
use dovetail_settings::form::Output;
use dovetail_sim::slices::{
    ByEngine, ByRule, Moves, Places, RULES, SlicesRun, SlicesWorld, run_slices,
};
use dovetail_units::amount::fine_percent;
use serde::Serialize;

use crate::commands::sim::run::RunFlags;

/// The policy that the engine carries out; all others are rules.
const ENGINE: &str = "dovetail";

/// The result, as JSON.
#[derive(Debug, Serialize)]
struct SlicesDocument {
    protocol: &'static str,
    policy: String,
    gpu: String,
    mix: &'static str,
    load: f64,
    seed: u64,
    nodes: usize,
    gpus: usize,
    /// All requests; the first quarter is a warm-up and counts for nothing below.
    requests: usize,
    requests_counted: u64,
    rejected: u64,
    /// Rejected over counted requests, 0 to 1.
    rejected_share: f64,
    moves: u64,
    moved_gpu_s: f64,
    served_gpu_s: f64,
}

/// Runs generated requests for MIG slices.
pub(crate) fn run(app: &App, flags: &RunFlags) -> Result<()> {
    let output = app.output("sim run")?;
    if flags.record.is_some() {
        let text = "--record: runs with --protocol slices cannot be recorded; omit it";
        return Err(UsageError(text.to_owned()).into());
    }
    let slices = flags.slices.read()?;
    let name = flags.policy.as_deref().unwrap_or(ENGINE);
    let seed = app.settings.seed.value;
    let policy = flags.learning.policy(name, seed)?;
    let nodes = flags.nodes.as_ref().context("--nodes is required")?;
    let cluster = nodes.cluster(app, flags.rows)?;
    let world = SlicesWorld {
        table: slices.table,
        node_gpus: cluster.nodes.iter().map(|node| node.gpu_count).collect(),
        mix: slices.mix,
        load: slices.load,
        requests: slices.requests,
        seed,
    };
    refuse_empty(&world)?;
    let result = match name {
        ENGINE => {
            let config = EngineConfig { policy, ..EngineConfig::default() };
            let mut engine = ByEngine::new(&world, config)?;
            run_slices(&world, &mut engine, slices.moves)?
        }
        rule => by_rule(&world, rule, slices.moves)?,
    };
    let document = document(&world, &slices.model, name, &result);
    match output {
        Output::Json => app.print_json(&document),
        _ => app.print(&document.text(app)),
    }
}

fn by_rule(world: &SlicesWorld, name: &str, moves: Moves) -> Result<SlicesRun> {
    let rule: Option<Box<dyn Places>> =
        ByRule::named(name, world).map(|rule| Box::new(rule) as Box<dyn Places>);
    let mut rule = rule.ok_or_else(|| {
        let known: Vec<&str> = RULES.iter().map(|(rule, _)| *rule).collect();
        let known = known.join(", ");
        UsageError(format!("--policy {name} does not support slices; use {ENGINE}, {known}"))
    })?;
    Ok(run_slices(world, rule.as_mut(), moves)?)
}

fn refuse_empty(world: &SlicesWorld) -> Result<()> {
    let problem = match (world.gpus(), world.mix.profiles(&world.table).len()) {
        (0, _) => "--nodes: no node has GPUs".to_owned(),
        (_, 0) => format!(
            "--mix {}: GPU model {} has no MIG profile of these sizes",
            world.mix.name, world.table.name
        ),
        _ => return Ok(()),
    };
    Err(UsageError(problem).into())
}

fn document(world: &SlicesWorld, gpu: &str, policy: &str, run: &SlicesRun) -> SlicesDocument {
    SlicesDocument {
        protocol: "slices",
        policy: policy.to_owned(),
        gpu: gpu.to_owned(),
        mix: world.mix.name,
        load: world.load,
        seed: world.seed,
        nodes: world.node_gpus.len(),
        gpus: world.gpus(),
        requests: world.requests,
        requests_counted: run.counted,
        rejected: run.rejected,
        rejected_share: run.rejected as f64 / run.counted.max(1) as f64,
        moves: run.moves,
        moved_gpu_s: run.moved_gpu_s,
        served_gpu_s: run.served_gpu_s,
    }
}

impl SlicesDocument {
    fn text(&self, app: &App) -> String {
        let style = app.style(OutputStream::Result);
        let Self { policy, mix, load, seed, gpu, .. } = self;
        let title = format!("{policy}, mix {mix} at load {load}, seed {seed}");
        let title = style.strong(&title);
        let moved = 100.0 * self.moved_gpu_s / self.served_gpu_s.max(f64::MIN_POSITIVE);
        let (nodes, gpus) = (counted(self.nodes, "node"), whole(self.gpus as u64));
        let of_which = whole(self.requests_counted);
        let rows = vec![
            ("cluster", format!("{nodes}, {gpus} × {gpu}")),
            ("requests", format!("{}, of which {of_which} count", whole(self.requests as u64))),
            (
                "rejected",
                format!("{} ({})", whole(self.rejected), fine_percent(100.0 * self.rejected_share)),
            ),
            (
                "moves",
                match self.moves {
                    0 => "none".to_owned(),
                    moves => {
                        format!("{} ({} of the GPU time served)", whole(moves), fine_percent(moved))
                    }
                },
            ),
        ];
        format!("{title}\n\n{}", facts(rows))
    }
}

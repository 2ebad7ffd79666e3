//! `dovetail sim arena`: policies in many kinds of worlds, each against the best simple policy.

mod listing;
mod report;
mod resume;
mod traces;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use dovetail_console::app::App;
use dovetail_console::progress::Progress;
use dovetail_console::table::{counted, plural};
use dovetail_policy::named::POLICIES;
use dovetail_settings::errors::{UsageError, refuse_twice};
use dovetail_settings::form::Output;
use dovetail_sim::arena::{self, ArenaPlan, ArenaRun, Judged, Regime, RegimeVerdict};
use rayon::prelude::*;

use crate::commands::sim::arena::listing::RegimesDocument;
use crate::commands::sim::arena::report::ArenaDocument;
use crate::commands::sim::arena::resume::Ledger;
use crate::commands::sim::arena::traces::Traces;
use dovetail_replays::input::policy;

/// Seeds and orders of the nodes where nothing else is asked for.
const SEEDS: u64 = 8;
const ORDERS: u64 = 3;
/// The same of the quick subset.
const QUICK_SEEDS: u64 = 4;
const QUICK_ORDERS: u64 = 1;
/// Largest first seed: a seed may stand for many draws, each with a seed of its own.
const MAX_FIRST_SEED: u64 = u32::MAX as u64;
/// No reference, and not worth its time unless it is asked for.
const LEFT_OUT: &str = "random";

/// Regimes that are left out, with what their data lacks.
type LeftOut = BTreeMap<String, String>;

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct ArenaFlags {
    /// Regimes (kinds of clusters) to simulate, comma-separated: full names, families, or name
    /// prefixes up to a slash; --list shows the names [default: all with available data]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    regimes: Vec<String>,
    /// Policies, comma-separated [default: all but random]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(value_parser = policy::names())]
    policies: Vec<String>,
    /// Number of seeds for the jobs, starting with --seed [default: 8, or 4 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: Option<u64>,
    /// Run only a small subset of the regimes, or of the families in --regimes, with 4 seeds
    /// instead of 8 and 1 node order instead of 3; regimes given by full name always run
    #[arg(long)]
    quick: bool,
    /// Number of node orders for each seed: the original order, then random orders [default: 3, or
    /// 1 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    orders: Option<u64>,
    /// Save finished runs to a file, and skip runs that it already contains
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Folder of external traces: node and pod lists in openb/, job files in jobs/ (docs/arena.md)
    #[arg(long, value_name = "FOLDER", env = "DOVETAIL_TRACES", value_parser = folder)]
    traces: Option<PathBuf>,
    /// List the regimes that would run, without running them
    #[arg(long)]
    list: bool,
}

/// A variable that is set to nothing names no folder, and is no mistake.
fn folder(text: &str) -> Result<PathBuf, Infallible> {
    Ok(PathBuf::from(text))
}

pub(crate) fn run(app: &App, flags: &ArenaFlags) -> Result<()> {
    let output = app.output("sim arena")?;
    let folder = flags.traces.as_deref().filter(|folder| !folder.as_os_str().is_empty());
    // Flags that are wrong are told before files are read.
    let wanted = flags.wanted()?;
    let first_seed = first_seed(app)?;
    let traces = Traces::read(app, folder, &wanted)?;
    if flags.list {
        let listed = RegimesDocument::of(&wanted, &traces.data);
        return match output {
            Output::Json => app.print_json(&listed),
            Output::Html => {
                Err(UsageError("--list does not support -o html; use -o table or json".to_owned())
                    .into())
            }
            _ => app.print(&listed.text()),
        };
    }
    let (plan, left_out) = flags.plan(first_seed, wanted, &traces)?;
    tell(app, &plan, &left_out);
    let runs = run_all(app, &plan, &traces, flags)?;
    let verdicts: Vec<RegimeVerdict> = plan
        .regimes
        .iter()
        .zip(&runs)
        .map(|(regime, runs)| RegimeVerdict::of(regime, runs))
        .collect();
    let summary = arena::summary(&verdicts);
    let judged = plan.regimes.iter().zip(&runs).zip(&verdicts);
    let judged: Vec<Judged<'_>> =
        judged.map(|((regime, runs), verdict)| Judged { regime, runs, verdict }).collect();
    let groups = arena::groups(&judged);
    let bounds = arena::bounds(&groups, &verdicts, POLICIES[0].0);
    let (seeds, orders) = (plan.seeds, plan.orders);
    let simple_not_run = arena::simple_not_run(&plan.policies);
    let report = ArenaDocument {
        regimes: verdicts,
        summary,
        groups,
        bounds,
        seeds,
        orders,
        left_out: left_out.keys().cloned().collect(),
        lacks: left_out,
        simple_not_run,
    };
    match output {
        Output::Json => app.print_json(&report),
        Output::Html => app.print(&report.html()?),
        _ => app.print(&report.text()),
    }
}

fn tell(app: &App, plan: &ArenaPlan, left_out: &LeftOut) {
    for (lacks, count) in listing::by_reason(left_out.values()) {
        let regimes = plural(count, "regime is", "regimes are");
        app.note(&format!("{regimes} skipped: {lacks}"));
    }
    if let [seed] = plan.seeds[..] {
        app.note(&format!(
            "the reference is chosen and compared on the same seed, {seed}, so regrets favor it: \
             use --seeds 2 or more"
        ));
    }
    let not_run = arena::simple_not_run(&plan.policies);
    if !not_run.is_empty() {
        app.note(&format!(
            "policies not run: {}; the reference and the easy regimes are determined without them, so means \
             differ from those of a full comparison",
            not_run.join(", ")
        ));
    }
    let runs: usize = plan.worlds().len() * plan.policies.len();
    app.note(&format!(
        "{}, {}, {}",
        counted(plan.regimes.len(), "regime"),
        plural(plan.policies.len(), "policy", "policies"),
        counted(runs, "run")
    ));
}

/// Every run, by regime; of one regime by seed, order and policy, whatever order they finished in.
fn run_all(
    app: &App,
    plan: &ArenaPlan,
    traces: &Traces,
    flags: &ArenaFlags,
) -> Result<Vec<Vec<ArenaRun>>> {
    let ledger = match &flags.resume {
        Some(path) => Ledger::open(app, path, plan, &traces.fingerprint()?)?,
        None => Ledger::none(),
    };
    let worlds = plan.worlds();
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(app.settings.threads.value as usize).build()?;
    let progress = Progress::new("worlds", worlds.len() as u64);
    let run = |key: &arena::WorldKey| -> Result<Vec<ArenaRun>> {
        let regime = &plan.regimes[key.regime].name;
        let missing: Vec<&str> = plan
            .policies
            .iter()
            .map(String::as_str)
            .filter(|policy| !ledger.has(regime, policy, *key))
            .collect();
        let mut fresh = Vec::new();
        if !missing.is_empty() {
            let runs = plan.run(&traces.data, *key, &missing);
            for run in runs.map_err(|error| traces.told(regime, error))? {
                fresh.push(ledger.keep(regime, run)?);
            }
        }
        progress.advance(1);
        Ok(ledger.of_world(regime, plan, *key, fresh))
    };
    let runs: Vec<Vec<ArenaRun>> =
        pool.install(|| worlds.par_iter().map(run).collect::<Result<Vec<_>>>())?;
    let mut by_regime = vec![Vec::new(); plan.regimes.len()];
    for (key, runs) in worlds.iter().zip(runs) {
        by_regime[key.regime].extend(runs);
    }
    Ok(by_regime)
}

impl ArenaFlags {
    /// What is to be run, and the regimes that are left out because their data is not there.
    fn plan(
        &self,
        first_seed: u64,
        mut wanted: Vec<Regime>,
        traces: &Traces,
    ) -> Result<(ArenaPlan, LeftOut)> {
        let mut left_out = LeftOut::new();
        wanted.retain(|regime| {
            let lacks = regime.recipe.lacks(&traces.data);
            let runs = lacks.is_none();
            left_out.extend(lacks.map(|lacks| (regime.name.clone(), lacks)));
            runs
        });
        if wanted.is_empty() {
            let first =
                left_out.iter().next().map(|(regime, lacks)| format!(" ({regime}: {lacks})"));
            let text = format!(
                "--regimes: none of these regimes has its data: set DOVETAIL_TRACES or --traces{}",
                first.unwrap_or_default()
            );
            return Err(UsageError(text).into());
        }
        let default = if self.quick { QUICK_SEEDS } else { SEEDS };
        let seeds = self.seeds.unwrap_or(default);
        let plan = ArenaPlan {
            regimes: wanted,
            policies: self.policies(),
            seeds: (first_seed..first_seed + seeds).collect(),
            orders: self.orders.unwrap_or(if self.quick { QUICK_ORDERS } else { ORDERS }),
        };
        Ok((plan, left_out))
    }

    /// Regimes by name, family or beginning of the name; of the quick subset, if it is asked for,
    /// but for what is named in full.
    fn wanted(&self) -> Result<Vec<Regime>> {
        refuse_twice("--policies", self.policies.iter().map(String::as_str))?;
        refuse_twice("--regimes", self.regimes.iter().map(String::as_str))?;
        let all = arena::regimes();
        for name in &self.regimes {
            let mut of_name = all.iter().filter(|regime| is_of(&all, regime, name)).peekable();
            if of_name.peek().is_none() {
                return Err(UsageError(unknown_regime(&all, name)).into());
            }
            if self.quick && !of_name.any(|regime| regime.is_quick || regime.name == *name) {
                let text = format!(
                    "--quick: no regime of {name} is in the quick subset: use full regime names, \
                     or pass --seeds {QUICK_SEEDS} --orders {QUICK_ORDERS} instead"
                );
                return Err(UsageError(text).into());
            }
        }
        let is_wanted = |regime: &Regime| {
            let is_named = self.regimes.iter().any(|name| is_of(&all, regime, name));
            let in_full = self.regimes.contains(&regime.name);
            (self.regimes.is_empty() || is_named) && (!self.quick || regime.is_quick || in_full)
        };
        Ok(all.iter().filter(|regime| is_wanted(regime)).cloned().collect())
    }

    fn policies(&self) -> Vec<String> {
        if !self.policies.is_empty() {
            return self.policies.clone();
        }
        let names = POLICIES.iter().map(|(name, _)| *name).filter(|name| *name != LEFT_OUT);
        names.map(str::to_owned).collect()
    }
}

fn first_seed(app: &App) -> Result<u64> {
    let first_seed = app.settings.seed.value;
    if first_seed > MAX_FIRST_SEED {
        let text = format!("--seed {first_seed}: must be at most {MAX_FIRST_SEED} for the arena");
        return Err(UsageError(text).into());
    }
    Ok(first_seed)
}

/// Whether a regime is meant by a name: its own, that of its family, or, where no family is called
/// so, its own up to a slash.
fn is_of(all: &[Regime], regime: &Regime, name: &str) -> bool {
    let begins = regime.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
    let is_family = || all.iter().any(|regime| regime.family == name);
    regime.name == name || regime.family == name || begins && !is_family()
}

/// That nothing has a name, and what begins like it.
fn unknown_regime(all: &[Regime], name: &str) -> String {
    let families = arena::families(all).join(", ");
    let text = match name.is_empty() {
        true => "--regimes: a name in the list is empty".to_owned(),
        false => format!("--regimes: no regime or family is named {name}"),
    };
    let in_common =
        |known: &str| known.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
    let nearest = all.iter().flat_map(|regime| [regime.name.as_str(), regime.family]);
    let nearest = nearest.max_by_key(|known| (in_common(known), std::cmp::Reverse(known.len())));
    let did_you_mean = nearest.filter(|known| in_common(known) >= 3);
    let did_you_mean = did_you_mean.map(|known| format!(" (did you mean {known}?)"));
    format!(
        "{text}{}; the families are {families}; --list lists the regimes",
        did_you_mean.unwrap_or_default()
    )
}

//! Whether jobs would wait less if a scheduler chose its policy by simulation:
//! `cargo run --profile test -p dovetail-sim --example selection [-- NAME VALUE ...]` with
//! `--regimes A,B`, `--seeds N`, `--first-seed N`, `--futures N`. Regimes of published jobs need
//! `DOVETAIL_TRACES`.
//!
//! Each world is one stream of jobs of an arena regime in which jobs finish. `dovetail` schedules
//! its first half, the past. In the middle a selector chooses a policy for the second half.
//! Candidates: `dovetail`, all simple policies, and the two parameter sets of `dovetail` that won
//! most folds of the cross-validation in which jobs finish
//! (docs/reference/benchmarks/default-policy.md).
//!
//! - A future is as long as the second half. Each of its days is a day of the past, drawn with
//!   replacement, with the true run times. It starts in the state that the past left, and so does
//!   the true second half: pending jobs, running jobs, and what the policy has learned.
//! - The cost of a candidate is the GPU-weighted wait of the jobs submitted in the second half. A
//!   job that does not start waits to the end. Waits below 6 minutes count as 6 minutes.
//! - The improvement in a future is the cost of `dovetail` less that of the candidate, over the
//!   mean cost of `dovetail`. A candidate is eligible if the one-sided lower 90% bound (Student)
//!   of the mean improvement exceeds 2%. The selector chooses the eligible candidate with the
//!   lowest mean cost, or else `dovetail`. A candidate with a mean improvement below -10% over the
//!   first quarter of the futures is not simulated further.
//! - The factor of a choice is its true cost over that of `dovetail`. Factors are pooled as a
//!   geometric mean. The 95% interval resamples regimes, and seeds within them.
//!
//! For comparison: `strict` (the 10th percentile of the improvements exceeds 2%), `by mean` (the
//! largest mean improvement), `by past` (the lowest cost in the past, simulated from an empty
//! cluster, after a warm-up of 20%), `best-fit` always, and `hindsight`, the lowest true cost,
//! which no selector can beat and which includes luck. Selectors have an advantage here: they know
//! the run times of jobs that have not finished. Their disadvantage: the past is short, and days
//! are drawn from it independently.
//!
//! Criterion, written before the first result: the selector pays if the upper end of the interval
//! of its pooled factor is below 1. If not, it is left out. The other rules decide nothing.
#![allow(clippy::print_stdout, reason = "this program prints tables")]

mod tables;

use std::collections::BTreeMap;
use std::path::Path;

use dovetail_plan::PolicySpec;
use dovetail_policy::weights::Weights;
use dovetail_sim::arena::{
    ArenaData, Recipe, Regime, RegimeInput, SIMPLE, WAIT_FLOOR_HOURS, WARM_UP_PERCENT, mean,
    regimes,
};
use dovetail_sim::timed::{Simulation, TimedConfig, TimedWorld};
use dovetail_trace::synth::{Purpose, Random};
use dovetail_trace::{ReadOptions, TraceJob, read_cluster, read_trace};

const DAY_MS: u64 = 86_400_000;
const HOUR_MS: f64 = 3_600_000.0;
/// The least improvement that is worth a change.
const LEAST: f64 = 0.02;
/// A candidate that is worse than this after a quarter of the futures is out.
const HOPELESS: f64 = -0.1;
/// Quantile 0.9 of the normal distribution.
const NORMAL_90: f64 = 1.281_551_565_544_6;
/// Seeds that neither the arena nor the choice of weights used.
const FIRST_SEED: u64 = 3_000;
/// Those that are cheap, and those where `dovetail` is furthest behind a simple policy.
const REGIMES: &str = "training/10-nodes/load-0.9/fifo-skip,training/50-nodes/load-0.7/fifo-skip,\
                       mixed/10-nodes/load-0.9/fifo-skip,philly/mixed-nodes/load-0.9,\
                       openb-timed/20-nodes/load-0.7,openb-timed/60-nodes/load-0.7";

/// Ways to choose a candidate.
const RULES: [&str; 6] = ["selector", "strict", "by mean", "by past", "best-fit", "hindsight"];

/// Place of `best-fit` among the candidates.
const BEST_FIT: usize = 1;

/// Policies by name, `dovetail` first.
fn candidates() -> Vec<(&'static str, PolicySpec)> {
    let set = |weights| PolicySpec { weights: Some(weights), ..PolicySpec::named("dovetail") };
    let mut all = vec![("dovetail", PolicySpec::named("dovetail"))];
    all.extend(SIMPLE.map(|name| (name, PolicySpec::named(name))));
    all.push(("left 50%", set(Weights { left: 50, ..Weights::default() })));
    all.push(("rare kinds 200%", set(Weights { rare_kinds: 200, ..Weights::default() })));
    all
}

/// A stream of jobs whose second half is to come.
struct Stream {
    world: TimedWorld,
    config: TimedConfig,
    half_ms: u64,
    end_ms: u64,
}

impl Stream {
    fn of(regime: &Regime, data: &ArenaData, seed: u64) -> Self {
        let made = regime.recipe.world(data, seed, 0).expect("a world");
        let (Recipe::Timed(recipe), RegimeInput::Timed { world, config, .. }) =
            (&regime.recipe, made)
        else {
            panic!("{}: jobs do not finish", regime.name)
        };
        let days = u64::from(recipe.days);
        let (half_ms, end_ms) = (days / 2 * DAY_MS, days * DAY_MS);
        Self { world: *world, config: *config, half_ms, end_ms }
    }

    fn past(&self) -> impl Iterator<Item = &TraceJob> {
        self.world.jobs.iter().filter(|job| job.submit_ms < self.half_ms)
    }

    /// The past, followed by days that are drawn from it.
    fn with_future(&self, random: &mut Random) -> TimedWorld {
        let mut jobs: Vec<TraceJob> = self.past().cloned().collect();
        for start_ms in (self.half_ms..self.end_ms).step_by(DAY_MS as usize) {
            let from_ms = random.below((self.half_ms / DAY_MS) as usize) as u64 * DAY_MS;
            let day =
                self.past().filter(|job| (from_ms..from_ms + DAY_MS).contains(&job.submit_ms));
            jobs.extend(day.map(|job| TraceJob {
                id: format!("{}-{start_ms}", job.id),
                submit_ms: job.submit_ms - from_ms + start_ms,
                ..job.clone()
            }));
        }
        TimedWorld { jobs, ..self.world.clone() }
    }

    /// Cost of each candidate in the second half; NaN of those that are not wanted.
    fn costs(&self, world: TimedWorld, is_wanted: &dyn Fn(usize) -> bool) -> Vec<f64> {
        let mut past = Simulation::new(world.clone(), self.config.clone()).expect("a world");
        past.run(Some(self.half_ms), &mut ()).expect("a run");
        let snapshot = past.engine.snapshot();
        let cost = |(at, (_, spec)): (usize, (&str, PolicySpec))| {
            if !is_wanted(at) {
                return f64::NAN;
            }
            let mut config = self.config.clone();
            let learnt = past.engine.policy().learnt().cloned();
            config.engine.policy = PolicySpec { learnt, ..spec };
            let progress = past.progress().clone();
            let resumed = Simulation::resume(world.clone(), config, &snapshot, progress);
            wait_hours(resumed.expect("the same world"), self.half_ms, self.end_ms)
        };
        candidates().into_iter().enumerate().map(cost).collect()
    }

    /// Cost of each candidate in the first half, from an empty cluster.
    fn costs_of_past(&self) -> Vec<f64> {
        let jobs: Vec<TraceJob> = self.past().cloned().collect();
        let world = TimedWorld { jobs, ..self.world.clone() };
        let cost = |(_, spec): (&str, PolicySpec)| {
            let mut config = self.config.clone();
            config.engine.policy = spec;
            let simulation = Simulation::new(world.clone(), config).expect("a world");
            wait_hours(simulation, self.half_ms * WARM_UP_PERCENT / 100, self.half_ms)
        };
        candidates().into_iter().map(cost).collect()
    }
}

/// Runs to the end: the GPU-weighted wait of the jobs submitted from a time on.
fn wait_hours(mut simulation: Simulation, from_ms: u64, end_ms: u64) -> f64 {
    simulation.run(Some(end_ms), &mut ()).expect("a run");
    let (mut weighted, mut weights) = (0.0, 0.0);
    for view in simulation.outcomes().filter(|view| view.outcome.submit_ms >= from_ms) {
        let gpus = view.job.total_gpu_milli() as f64;
        let started_ms = view.outcome.start_ms.unwrap_or(end_ms);
        weighted += gpus * started_ms.saturating_sub(view.outcome.submit_ms) as f64 / HOUR_MS;
        weights += gpus;
    }
    (weighted / f64::max(weights, 1.0)).max(WAIT_FLOOR_HOURS)
}

/// Mean, lower bound of the mean and 10th percentile of the improvements over all futures.
fn improvement(costs: &[Vec<f64>], candidate: usize) -> [f64; 3] {
    let base = mean(&costs.iter().map(|costs| costs[0]).collect::<Vec<_>>()).expect("futures");
    let mut all: Vec<f64> =
        costs.iter().map(|costs| (costs[0] - costs[candidate]) / base).collect();
    all.sort_unstable_by(f64::total_cmp);
    let (count, middle) = (all.len() as f64, mean(&all).expect("futures"));
    let squares: f64 = all.iter().map(|one| (one - middle) * (one - middle)).sum();
    // Student's quantile by two terms of its expansion: within 0.002 from 19 degrees on.
    let freedom = (count - 1.0).max(1.0);
    let t = NORMAL_90 + (NORMAL_90.powi(3) + NORMAL_90) / (4.0 * freedom);
    [middle, middle - t * (squares / freedom / count).sqrt(), all[all.len() / 10]]
}

fn lowest(costs: &[f64]) -> usize {
    (0..costs.len()).min_by(|a, b| costs[*a].total_cmp(&costs[*b])).expect("candidates")
}

/// What each rule chose in one world.
struct Choice {
    true_costs: Vec<f64>,
    by_rule: [usize; RULES.len()],
    cpu_s: f64,
    days: f64,
}

impl Choice {
    fn of(regime: &Regime, data: &ArenaData, seed: u64, futures: usize) -> Self {
        let stream = Stream::of(regime, data, seed);
        let before_s = cpu_s();
        let mut random = Random::new(seed, Purpose::Arrivals);
        let mut costs = Vec::new();
        let mut running: Vec<usize> = (0..candidates().len()).collect();
        for future in 0..futures {
            if future > 0 && future == futures / 4 {
                running.retain(|at| improvement(&costs, *at)[0] > HOPELESS);
            }
            costs.push(stream.costs(stream.with_future(&mut random), &|at| running.contains(&at)));
        }
        let cpu_s = cpu_s() - before_s;
        let improvements: Vec<_> = (0..costs[0].len()).map(|at| improvement(&costs, at)).collect();
        // `dovetail` is candidate 0 with improvement 0: it stays where no other is eligible.
        let largest = |eligible: &dyn Fn(&[f64; 3]) -> bool| {
            let others = (1..improvements.len()).filter(|at| eligible(&improvements[*at]));
            let best = others.max_by(|a, b| improvements[*a][0].total_cmp(&improvements[*b][0]));
            best.unwrap_or(0)
        };
        let true_costs = stream.costs(stream.world.clone(), &|_| true);
        let by_rule = [
            largest(&|[_, bound, _]| *bound > LEAST),
            largest(&|[_, _, tenth]| *tenth > LEAST),
            largest(&|[mean, ..]| *mean > 0.0),
            lowest(&stream.costs_of_past()),
            BEST_FIT,
            lowest(&true_costs),
        ];
        let days = (stream.end_ms - stream.half_ms) as f64 / DAY_MS as f64;
        Self { true_costs, by_rule, cpu_s, days }
    }

    fn factor(&self, rule: usize) -> f64 {
        self.true_costs[self.by_rule[rule]] / self.true_costs[0]
    }
}

/// CPU seconds of this thread; NaN where Linux does not say.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|text| text.parse::<f64>().ok());
    nanoseconds.map_or(f64::NAN, |nanoseconds| nanoseconds / 1e9)
}

/// Published traces; empty where `DOVETAIL_TRACES` is not set.
fn data() -> ArenaData {
    let Some(folder) = std::env::var_os("DOVETAIL_TRACES") else { return ArenaData::default() };
    let (folder, options) = (Path::new(&folder), ReadOptions::default());
    let jobs = |file: &str| read_trace(&folder.join(file), &options).expect(file).jobs;
    let nodes = folder.join("openb/openb_node_list_gpu_node.csv");
    let pods = ("default".to_owned(), jobs("openb/openb_pod_list_default.csv"));
    ArenaData {
        openb_nodes: read_cluster(&nodes, &options).expect("openb nodes").nodes,
        openb_pods: BTreeMap::from([pods]),
        philly: jobs("jobs/philly_pass_82k.csv"),
        itp: jobs("jobs/itp_cluster04.csv"),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        Some(arguments.get(at + 1).expect("a value").as_str())
    };
    let number = |name: &str, otherwise: u64| {
        given(name).map_or(otherwise, |value| value.parse().expect("a number"))
    };
    let (seeds, first) = (number("--seeds", 4), number("--first-seed", FIRST_SEED));
    let futures = number("--futures", 20) as usize;
    let (data, all) = (data(), regimes());
    println!("| regime | dovetail (h) | changes | selector (95%) | {} |", RULES[1..].join(" | "));
    println!("|---|---|---|---|{}", "---|".repeat(RULES.len() - 1));
    let mut measured = Vec::new();
    for name in given("--regimes").unwrap_or(REGIMES).split(',') {
        let regime = all.iter().find(|regime| regime.name == name).expect(name);
        if let Some(lack) = regime.recipe.lacks(&data) {
            println!("| {name} | not measured: {lack} |");
            continue;
        }
        let of = |seed| Choice::of(regime, &data, seed, futures);
        let choices: Vec<Choice> = (first..first + seeds).map(of).collect();
        tables::print_regime(name, &choices);
        measured.push(choices);
    }
    tables::print_pooled(&measured);
}

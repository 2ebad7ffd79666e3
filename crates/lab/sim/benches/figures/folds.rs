//! What each weight of the default policy is worth, and how the default fares in kinds of worlds
//! that were left out when weights were chosen.
//!
//! Candidates are the default weights, and those in which one of them is nothing, half or twice as
//! much. For each fold the candidate that is best on all other regimes is judged on the fold:
//! against `best-fit`, and against the reference, the simple policy that is best on the seeds
//! themselves (which favors the reference: the arena chooses it on other seeds than it compares).

use std::time::Instant;

use dovetail_plan::PolicySpec;
use dovetail_policy::weights::Weights;
use dovetail_sim::arena::{
    ALLOCATION, ArenaData, OPENB_LISTS, Regime, RegimeInput, SIMPLE, WAIT_FLOOR_HOURS, regimes,
};
use dovetail_trace::{ReadOptions, read_trace};
use rayon::prelude::*;

use crate::openb;

/// Seeds that neither the arena nor the choice of the default weights used.
const SEEDS: std::ops::Range<u64> = 500..503;
/// A point of allocation counts as much as 5% of GPU-weighted wait.
const WAIT_PER_POINT: f64 = 0.05;

/// Folds by name, and what the names of their regimes contain; `$` is the end of a name.
const FOLDS: [(&str, &[&str]); 14] = [
    ("traces with other CPU requests", &["cpu050/", "cpu250/"]),
    ("traces whose pods name models", &["gpuspec33/"]),
    ("traces with shares or large pods", &["gpushare100/", "multigpu50/"]),
    ("transformed traces", &["-cores-per-gpu", "no-cpu", "only-p100", "fewer-nodes"]),
    ("other arrival orders", &["large-last", "shares-last"]),
    ("small clusters", &["openb/default/10-nodes", "mixed/10-nodes"]),
    ("profile `mixed`", &["mixed/", "daily/", "bursts/", "preemption/"]),
    ("profile `training`", &["training/", "gangs-in-one-rack/"]),
    ("profile `sharing`", &["sharing/"]),
    ("published run times", &["philly/", "itp/"]),
    ("openb with run times of Philly", &["openb-timed/"]),
    ("load that changes", &["daily/", "bursts/", "mix-change/50"]),
    ("other queue orders", &["/fifo$", "/dominant-share$"]),
    ("gangs and failures", &["gangs-in-one-rack/", "preemption/"]),
];

/// Regimes: cheap ones of every kind.
const REGIMES: [&str; 29] = [
    "openb/default/plain",
    "openb/cpu050/plain",
    "openb/cpu250/plain",
    "openb/gpuspec33/plain",
    "openb/gpushare100/plain",
    "openb/multigpu50/plain",
    "openb/default/1-cores-per-gpu",
    "openb/default/no-cpu",
    "openb/default/only-p100",
    "openb/cpu250/only-p100",
    "openb/default/fewer-nodes",
    "openb/default/large-last",
    "openb/multigpu50/large-last",
    "openb/default/shares-last",
    "mixed/10-nodes/load-0.9/fifo-skip",
    "mixed/50-nodes/load-0.7/fifo-skip",
    "mixed/50-nodes/load-0.9/fifo-skip",
    "mixed/50-nodes/load-0.9/dominant-share",
    "training/50-nodes/load-0.9/fifo-skip",
    "training/50-nodes/load-0.9/fifo",
    "sharing/10-nodes/load-0.9/fifo-skip",
    "philly/cpu-tight/load-0.9",
    "itp/mixed-nodes/load-0.9",
    "openb-timed/20-nodes/load-0.9",
    "daily/50-nodes/load-0.9",
    "bursts/50-nodes/load-0.9",
    "mix-change/50-nodes/load-0.9",
    "gangs-in-one-rack/50-nodes/load-0.9",
    "preemption/50-nodes/load-0.9",
];

/// Changes a weight in place.
type Change = fn(&mut Weights) -> &mut i64;

const WEIGHTS: [(&str, Change); 7] = [
    ("fragmentation", |weights| &mut weights.fragmentation),
    ("cpu_gpu_balance", |weights| &mut weights.balance),
    ("opening", |weights| &mut weights.opening),
    ("left", |weights| &mut weights.left),
    ("scarcity", |weights| &mut weights.scarcity),
    ("unseen pods", |weights| &mut weights.unseen),
    ("rare kinds", |weights| &mut weights.rare_kinds),
];

/// A set of weights with its name.
fn candidates() -> Vec<(String, Weights)> {
    let mut all = vec![("default".to_owned(), Weights::default())];
    for (name, weight) in WEIGHTS {
        for percent in [0, 50, 200] {
            let mut weights = Weights::default();
            *weight(&mut weights) = percent;
            all.push((format!("{name} {percent}%"), weights));
        }
    }
    all
}

fn data() -> Option<ArenaData> {
    let folder = openb::folder()?;
    let jobs = |file: &str| {
        read_trace(&folder.join(file), &ReadOptions::default()).expect("a table of jobs").jobs
    };
    let openb_pods = OPENB_LISTS.map(|list| (list.to_owned(), openb::pods(&folder, list)));
    Some(ArenaData {
        openb_nodes: openb::nodes(&folder),
        openb_pods: openb_pods.into(),
        philly: jobs("jobs/philly_pass_82k.csv"),
        itp: jobs("jobs/itp_cluster04.csv"),
    })
}

/// What a policy costs in a regime, in logarithms of waits: the figure that the regime is judged
/// by, then the mean and the p99 wait (nothing for arrivals only).
type Cost = [f64; 3];

/// A regime, and what was measured in it.
struct Measured<'a> {
    regime: &'a Regime,
    /// Name and cost of the simple policy that costs least.
    reference: (&'static str, Cost),
    best_fit: Cost,
    /// Of each candidate.
    own: Vec<Cost>,
}

impl<'a> Measured<'a> {
    fn of(data: &ArenaData, regime: &'a Regime, candidates: &[(String, Weights)]) -> Self {
        let worlds: Vec<_> =
            SEEDS.map(|seed| regime.recipe.world(data, seed, 0).expect("a world")).collect();
        let simple = SIMPLE.iter().map(|name| PolicySpec::named(name));
        let own = candidates.iter().map(|(_, weights)| PolicySpec {
            weights: Some(*weights),
            ..PolicySpec::named("dovetail")
        });
        let specs: Vec<PolicySpec> = simple.chain(own).collect();
        let pairs: Vec<(&PolicySpec, &RegimeInput)> =
            specs.iter().flat_map(|spec| worlds.iter().map(move |world| (spec, world))).collect();
        let keys = [regime.figure().key, "mean_wait_hours", "p99_wait_hours"];
        let run = |(spec, world): &(&PolicySpec, &RegimeInput)| {
            let figures = world.run_with((*spec).clone()).expect("a run");
            keys.map(|key| figures.get(key).copied().unwrap_or(f64::NAN))
        };
        let runs: Vec<[f64; 3]> = pairs.par_iter().map(run).collect();
        let cost = |runs: &[[f64; 3]]| {
            std::array::from_fn(|at| cost(keys[at], mean(runs.iter().map(|run| run[at]))))
        };
        let mut costs: Vec<Cost> = runs.chunks(worlds.len()).map(cost).collect();
        let own = costs.split_off(SIMPLE.len());
        let simple = SIMPLE.into_iter().zip(costs);
        let best_fit = simple.clone().find(|(name, _)| *name == "best-fit").expect("best-fit").1;
        let reference = simple.min_by(|a, b| a.1[0].total_cmp(&b.1[0])).expect("a policy");
        Self { regime, reference, best_fit, own }
    }

    fn is_still(&self) -> bool {
        is_still(self.regime)
    }

    /// How much more than `best-fit` a candidate costs.
    fn to_best_fit(&self, candidate: usize) -> f64 {
        self.own[candidate][0] - self.best_fit[0]
    }

    /// How much more than the reference a candidate costs, by figure.
    fn to_reference(&self, candidate: usize) -> Cost {
        std::array::from_fn(|at| self.own[candidate][at] - self.reference.1[at])
    }
}

/// The cost of a figure, in logarithms of waits.
fn cost(key: &str, figure: f64) -> f64 {
    match key == ALLOCATION {
        true => -figure * WAIT_PER_POINT,
        false => figure.max(WAIT_FLOOR_HOURS).ln(),
    }
}

pub(crate) fn print() {
    print_of(&|_| true);
}

/// The same of the regimes in which jobs end.
pub(crate) fn print_ends() {
    print_of(&|regime| !is_still(regime));
}

fn print_of(is_wanted: &dyn Fn(&Regime) -> bool) {
    let Some(data) = data() else { return };
    let start = Instant::now();
    let candidates = candidates();
    let all = regimes();
    let named = |name: &&str| all.iter().find(|regime| regime.name == **name).expect("a regime");
    let chosen = REGIMES.iter().map(named).filter(|regime| is_wanted(regime));
    let measured: Vec<Measured<'_>> =
        chosen.map(|regime| Measured::of(&data, regime, &candidates)).collect();
    print_regimes(&measured);
    print_weights(&measured, &candidates);
    print_folds(&measured, &candidates);
    println!("\nin {:.0} s", start.elapsed().as_secs_f64());
}

fn is_still(regime: &Regime) -> bool {
    regime.figure().key == ALLOCATION
}

/// Points of allocation and times the wait that the costs of some regimes come to on average.
fn figures(
    measured: &[&Measured<'_>],
    cost: &dyn Fn(&Measured<'_>) -> f64,
) -> (Option<f64>, Option<f64>) {
    let of = |still: bool| {
        let costs = measured.iter().filter(|one| one.is_still() == still).map(|one| cost(one));
        let costs: Vec<f64> = costs.collect();
        (!costs.is_empty()).then(|| mean(costs))
    };
    (of(true).map(points), of(false).map(f64::exp))
}

fn points(cost: f64) -> f64 {
    -cost / WAIT_PER_POINT
}

fn cells((points, times): (Option<f64>, Option<f64>)) -> String {
    let points = points.map_or_else(|| "-".to_owned(), |points| format!("{points:+.2}"));
    format!("{points} | {}", times_cell(times))
}

fn times_cell(times: Option<f64>) -> String {
    times.map_or_else(|| "-".to_owned(), |times| format!("{times:.3}"))
}

fn print_regimes(measured: &[Measured<'_>]) {
    println!("The default weights, relative to the reference of each regime:\n");
    println!("| regime | reference | points | wait | mean wait | p99 wait |");
    println!("|---|---|---|---|---|---|");
    for one in measured {
        let [first, mean, p99] = one.to_reference(0);
        let cells = match one.is_still() {
            true => format!("{:+.2} | - | - | -", points(first)),
            false => format!("- | {:.3} | {:.3} | {:.3}", first.exp(), mean.exp(), p99.exp()),
        };
        println!("| {} | {} | {cells} |", one.regime.name, one.reference.0);
    }
}

fn print_weights(measured: &[Measured<'_>], candidates: &[(String, Weights)]) {
    println!("\nPoints of allocation over best-fit; GPU-weighted wait over best-fit's:\n");
    println!("| weight | points over best-fit | wait over it | worst regime: points | ratio |");
    println!("|---|---|---|---|---|");
    let all: Vec<&Measured<'_>> = measured.iter().collect();
    for (at, (name, _)) in candidates.iter().enumerate() {
        let worst = |still: bool| {
            let rows = measured.iter().filter(|one| one.is_still() == still);
            rows.map(|one| one.to_best_fit(at)).max_by(f64::total_cmp)
        };
        let worst = (worst(true).map(points), worst(false).map(f64::exp));
        let mean = figures(&all, &|one| one.to_best_fit(at));
        println!("| {name} | {} | {} |", cells(mean), cells(worst));
    }
}

fn print_folds(measured: &[Measured<'_>], candidates: &[(String, Weights)]) {
    println!(
        "\n| left out | regimes left out | best weights on the rest | points over best-fit | ratio \
         | default: points | ratio | points over the reference | ratio | mean wait | p99 wait \
         | default: points | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut to_best_fit = (Vec::new(), Vec::new());
    let mut to_reference = (Vec::new(), Vec::new());
    for (name, parts) in FOLDS {
        let is_in = |one: &&Measured<'_>| {
            let name = format!("{}$", one.regime.name);
            parts.iter().any(|part| name.contains(part))
        };
        let (own, rest): (Vec<_>, Vec<_>) = measured.iter().partition(is_in);
        if own.is_empty() {
            continue;
        }
        let on_rest = |at: &usize| mean(rest.iter().map(|one| one.to_best_fit(*at)));
        let best = (0..candidates.len()).min_by(|a, b| on_rest(a).total_cmp(&on_rest(b)));
        let best = best.expect("candidates");
        let best_fit = figures(&own, &|one| one.to_best_fit(best));
        let reference = figures(&own, &|one| one.to_reference(best)[0]);
        let waits = [1, 2].map(|at| times_cell(figures(&own, &|one| one.to_reference(best)[at]).1));
        for (sum, (points, times)) in [(&mut to_best_fit, best_fit), (&mut to_reference, reference)]
        {
            sum.0.extend(points);
            sum.1.extend(times.map(f64::ln));
        }
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} |",
            own.len(),
            candidates[best].0,
            cells(best_fit),
            cells(figures(&own, &|one| one.to_best_fit(0))),
            cells(reference),
            waits.join(" | "),
            cells(figures(&own, &|one| one.to_reference(0)[0])),
        );
    }
    for (what, (points, times)) in [("best-fit", to_best_fit), ("the reference", to_reference)] {
        let mean_of = |values: Vec<f64>| (!values.is_empty()).then(|| mean(values));
        let both = (mean_of(points), mean_of(times).map(f64::exp));
        println!("\nmean over the folds, points and times against {what}: {}", cells(both));
    }
}

fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.into_iter().collect();
    values.iter().sum::<f64>() / values.len() as f64
}

//! What each weight of the default policy is worth, and how the default fares in kinds of worlds
//! that were left out when weights were chosen.
//!
//! Candidates are the default weights, and those in which one of them is nothing, half or twice as
//! much. For each fold the candidate that is best on all other regimes is judged on the fold.

use std::time::Instant;

use dovetail_plan::PolicySpec;
use dovetail_policy::weights::Weights;
use dovetail_sim::arena::{ALLOCATION, ArenaData, OPENB_LISTS, Regime, WAIT_FLOOR_HOURS, regimes};
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

/// How much worse than `best-fit` each candidate is in a regime: in logarithms of waits.
fn costs(data: &ArenaData, regime: &Regime, candidates: &[(String, Weights)]) -> Vec<f64> {
    let key = regime.figure().key;
    let worlds = SEEDS.map(|seed| regime.recipe.world(data, seed, 0).expect("a world"));
    let worlds: Vec<_> = worlds.collect();
    let mean_of = |spec: &PolicySpec| {
        let of = |world: &dovetail_sim::arena::RegimeInput| {
            world.run_with(spec.clone()).expect("a run").get(key).copied().unwrap_or(f64::NAN)
        };
        mean(&worlds.par_iter().map(of).collect::<Vec<_>>())
    };
    let base = mean_of(&PolicySpec::named("best-fit"));
    let cost = |(_, weights): &(String, Weights)| {
        let spec = PolicySpec { weights: Some(*weights), ..PolicySpec::named("dovetail") };
        let own = mean_of(&spec);
        match key == ALLOCATION {
            true => (base - own) * WAIT_PER_POINT,
            false => (own.max(WAIT_FLOOR_HOURS) / base.max(WAIT_FLOOR_HOURS)).ln(),
        }
    };
    candidates.iter().map(cost).collect()
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
    let chosen: Vec<&Regime> =
        REGIMES.iter().map(named).filter(|regime| is_wanted(regime)).collect();
    let costs: Vec<Vec<f64>> =
        chosen.iter().map(|regime| costs(&data, regime, &candidates)).collect();
    print_weights(&chosen, &candidates, &costs);
    print_folds(&chosen, &candidates, &costs);
    println!("\nin {:.0} s", start.elapsed().as_secs_f64());
}

fn is_still(regime: &Regime) -> bool {
    regime.figure().key == ALLOCATION
}

/// Points over `best-fit`, or waits over its waits, of a candidate in some regimes.
fn figures(
    regimes: &[&Regime],
    costs: &[Vec<f64>],
    candidate: usize,
) -> (Option<f64>, Option<f64>) {
    let of = |still: bool| {
        let rows = regimes.iter().zip(costs).filter(|(regime, _)| is_still(regime) == still);
        let own: Vec<f64> = rows.map(|(_, costs)| costs[candidate]).collect();
        (!own.is_empty()).then(|| mean(&own))
    };
    (of(true).map(|cost| -cost / WAIT_PER_POINT), of(false).map(f64::exp))
}

fn cells((points, times): (Option<f64>, Option<f64>)) -> String {
    let points = points.map_or_else(|| "-".to_owned(), |points| format!("{points:+.2}"));
    let times = times.map_or_else(|| "-".to_owned(), |times| format!("{times:.3}"));
    format!("{points} | {times}")
}

fn print_weights(regimes: &[&Regime], candidates: &[(String, Weights)], costs: &[Vec<f64>]) {
    println!("Points of allocation over best-fit; GPU-weighted wait over best-fit's:\n");
    println!("| weight | points over best-fit | wait over it | worst regime: points | ratio |");
    println!("|---|---|---|---|---|");
    for (at, (name, _)) in candidates.iter().enumerate() {
        let worst = |still: bool| {
            let rows = regimes.iter().zip(costs).filter(|(regime, _)| is_still(regime) == still);
            rows.map(|(_, costs)| costs[at]).max_by(f64::total_cmp)
        };
        let worst = (worst(true).map(|cost| -cost / WAIT_PER_POINT), worst(false).map(f64::exp));
        println!("| {name} | {} | {} |", cells(figures(regimes, costs, at)), cells(worst));
    }
}

fn print_folds(regimes: &[&Regime], candidates: &[(String, Weights)], costs: &[Vec<f64>]) {
    println!(
        "\n| left out | regimes left out | best weights on the rest | points | ratio | default \
         weights: points | ratio |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut all_left_out = (Vec::new(), Vec::new());
    for (name, parts) in FOLDS {
        let is_in = |regime: &Regime| {
            let name = format!("{}$", regime.name);
            parts.iter().any(|part| name.contains(part))
        };
        let rest: Vec<&Vec<f64>> = regimes
            .iter()
            .zip(costs)
            .filter(|(regime, _)| !is_in(regime))
            .map(|(_, costs)| costs)
            .collect();
        let on_rest = |at: &usize| mean(&rest.iter().map(|costs| costs[*at]).collect::<Vec<_>>());
        let best = (0..candidates.len()).min_by(|a, b| on_rest(a).total_cmp(&on_rest(b)));
        let best = best.expect("candidates");
        let (own, own_costs): (Vec<&Regime>, Vec<Vec<f64>>) = regimes
            .iter()
            .zip(costs)
            .filter(|(regime, _)| is_in(regime))
            .map(|(regime, costs)| (*regime, costs.clone()))
            .unzip();
        if own.is_empty() {
            continue;
        }
        let (points, times) = figures(&own, &own_costs, best);
        all_left_out.0.extend(points);
        all_left_out.1.extend(times.map(f64::ln));
        println!(
            "| {name} | {} | {} | {} | {} |",
            own.len(),
            candidates[best].0,
            cells((points, times)),
            cells(figures(&own, &own_costs, 0)),
        );
    }
    let (points, times) = all_left_out;
    let mean_of = |values: &[f64]| (!values.is_empty()).then(|| mean(values));
    let both = (mean_of(&points), mean_of(&times).map(f64::exp));
    println!("\nmean over the folds, points and times: {}", cells(both));
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

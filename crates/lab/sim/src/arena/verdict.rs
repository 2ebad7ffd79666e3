//! What the runs of a regime say: means, the reference, and how far each policy is behind it.
//!
//! The reference is one simple policy for the whole regime, never the best one of each seed. It is
//! chosen on every other seed and compared on the rest, so that luck in the choice is no advantage
//! of it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::arena::catalogue::{Regime, RegimeFigure};
use crate::arena::figures::{GPU_WEIGHTED_WAIT, RunFigures};
use crate::arena::recipe::Recipe;
use crate::arena::statistics::{Estimate, mean};

/// Policies that are built in and told nothing: the reference is one of them. `random` is none.
pub const SIMPLE: [&str; 8] = [
    "best-fit",
    "fgd-learnt",
    "dot-product",
    "gpu-packing",
    "gpu-clustering",
    "first-fit",
    "kube-default",
    "kube-most-allocated",
];
/// Told the mix in advance: shown beside the others, and neither reference nor winner.
pub const ORACLE: &str = "fgd";
/// Waits below this many hours, 6 minutes, count as this: nobody minds the difference.
pub const WAIT_FLOOR_HOURS: f64 = 0.1;
/// Policies this close to the best, in percent of the figure (or points of allocation), win too.
pub const TIE_PERCENT: f64 = 0.1;

/// Figures of one run with what was run.
#[derive(Clone, Debug, PartialEq)]
pub struct ArenaRun {
    /// Seed of the jobs.
    pub seed: u64,
    /// Order of the machines.
    pub order: u64,
    pub policy: String,
    pub figures: RunFigures,
}

/// The result of one regime.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegimeVerdict {
    pub name: String,
    pub family: &'static str,
    /// What it is judged by.
    pub figure: &'static str,
    /// Unit of the figure and of the regret.
    pub unit: &'static str,
    pub higher_is_better: bool,
    /// Every simple policy waits less than 6 minutes: it counts in no mean.
    pub easy: bool,
    /// The figure of each policy over all seeds.
    pub by_policy: BTreeMap<String, Estimate>,
    /// The simple policy that was best on the seeds at even places.
    pub reference: Option<String>,
    /// How much worse each policy is than the reference on the other seeds, in the unit.
    pub regret: BTreeMap<String, f64>,
    /// The same in percent of the reference, waits floored at 6 minutes; points for allocation.
    pub regret_percent: BTreeMap<String, f64>,
    /// The regret by seed, averaged, with its interval: paired, because all policies have the same
    /// worlds.
    pub paired_regret: BTreeMap<String, Estimate>,
    /// How far the orders of the machines are apart: within a seed the highest figure less the
    /// lowest, in percent of the mean, averaged over the seeds.
    pub order_spread_percent: BTreeMap<String, f64>,
    /// Every other figure of each policy.
    pub figures: BTreeMap<String, BTreeMap<String, Estimate>>,
    /// Seeds and orders of the machines that were run.
    pub seeds: usize,
    pub runs_per_policy: usize,
}

/// A policy over all regimes that are not easy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    pub mean_regret_percent: f64,
    /// Largest of them.
    pub worst_regret_percent: f64,
    /// Regimes in which no policy but the oracle was better by more than 0.1%.
    pub wins: usize,
    /// Regimes that count.
    pub regimes: usize,
}

/// Simple policies that were not run: a reference, and whether a regime is easy, is judged without
/// them.
pub fn simple_not_run(policies: &[String]) -> Vec<&'static str> {
    SIMPLE.into_iter().filter(|name| !policies.iter().any(|policy| policy == name)).collect()
}

/// Figures of a policy by seed, averaged over the orders of the machines.
pub(crate) type BySeed = BTreeMap<u64, f64>;

impl RegimeVerdict {
    /// Judges the runs of a regime.
    pub fn of(regime: &Regime, runs: &[ArenaRun]) -> Self {
        let figure = regime.figure();
        let by_policy = by_policy(runs, figure.key);
        let mut seeds: Vec<u64> = runs.iter().map(|run| run.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let reference = reference(&by_policy, &seeds, figure);
        let compared = other_half(&seeds);
        let mut verdict = Self {
            name: regime.name.clone(),
            family: regime.family,
            figure: figure.key,
            unit: figure.unit,
            higher_is_better: figure.higher_is_better,
            easy: is_easy(regime, runs),
            by_policy: BTreeMap::new(),
            reference: reference.clone(),
            regret: BTreeMap::new(),
            regret_percent: BTreeMap::new(),
            paired_regret: BTreeMap::new(),
            order_spread_percent: order_spread(runs, figure.key),
            figures: other_figures(runs, figure.key),
            seeds: seeds.len(),
            runs_per_policy: runs.len() / by_policy.len().max(1),
        };
        for (policy, values) in &by_policy {
            let all: Vec<f64> = values.values().copied().collect();
            let all = Estimate::of_amounts(&all, most(figure.key));
            verdict.by_policy.extend(all.map(|all| (policy.clone(), all)));
            let Some(base) = reference.as_ref().and_then(|name| by_policy.get(name)) else {
                continue;
            };
            verdict.add_regret(policy, values, base, &compared, figure);
        }
        verdict
    }

    fn add_regret(
        &mut self,
        policy: &str,
        own: &BySeed,
        base: &BySeed,
        seeds: &[u64],
        figure: RegimeFigure,
    ) {
        let sign = if figure.higher_is_better { -1.0 } else { 1.0 };
        let pairs: Vec<(f64, f64)> =
            seeds.iter().filter_map(|seed| Some((*own.get(seed)?, *base.get(seed)?))).collect();
        let differences: Vec<f64> = pairs.iter().map(|(own, base)| sign * (own - base)).collect();
        let own: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
        let base: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
        let (Some(own), Some(base)) = (mean(&own), mean(&base)) else { return };
        self.regret.insert(policy.to_owned(), sign * (own - base));
        self.regret_percent.insert(policy.to_owned(), percent(own, base, figure));
        let paired = Estimate::of(&differences);
        self.paired_regret.extend(paired.map(|paired| (policy.to_owned(), paired)));
    }

    /// Policies, the oracle aside, that nobody beats by more than a tie.
    pub fn winners(&self) -> Vec<&str> {
        let known = || self.regret_percent.iter().filter(|(policy, _)| *policy != ORACLE);
        let best = known().map(|(_, regret)| *regret).fold(f64::INFINITY, f64::min);
        let close = known().filter(|(_, regret)| **regret <= best + TIE_PERCENT);
        close.map(|(policy, _)| policy.as_str()).collect()
    }
}

/// How much worse than the reference, in percent of it; percents are compared in points.
fn percent(own: f64, base: f64, figure: RegimeFigure) -> f64 {
    match (figure.unit, figure.higher_is_better) {
        ("percent", _) => base - own,
        (_, true) => 100.0 * (base - own) / base.abs().max(f64::MIN_POSITIVE),
        (_, false) => 100.0 * (own.max(WAIT_FLOOR_HOURS) / base.max(WAIT_FLOOR_HOURS) - 1.0),
    }
}

/// Every policy over the regimes that are not easy.
pub fn summary(verdicts: &[RegimeVerdict]) -> BTreeMap<String, Summary> {
    let mut sums: BTreeMap<String, (Vec<f64>, usize)> = BTreeMap::new();
    for verdict in verdicts.iter().filter(|verdict| !verdict.easy) {
        let winners = verdict.winners();
        for (policy, regret) in &verdict.regret_percent {
            let sum = sums.entry(policy.clone()).or_default();
            sum.0.push(*regret);
            sum.1 += usize::from(winners.contains(&policy.as_str()));
        }
    }
    let summed = sums.into_iter().map(|(policy, (regrets, wins))| {
        let summary = Summary {
            mean_regret_percent: mean(&regrets).unwrap_or(0.0),
            worst_regret_percent: regrets.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            wins,
            regimes: regrets.len(),
        };
        (policy, summary)
    });
    summed.collect()
}

/// The simple policy that is best on the seeds at even places.
fn reference(
    by_policy: &BTreeMap<String, BySeed>,
    seeds: &[u64],
    figure: RegimeFigure,
) -> Option<String> {
    let chosen_on = half(seeds);
    let mean_of = |values: &BySeed| {
        let values: Vec<f64> =
            chosen_on.iter().filter_map(|seed| values.get(seed).copied()).collect();
        mean(&values)
    };
    let simple = by_policy.iter().filter(|(name, _)| SIMPLE.contains(&name.as_str()));
    let means = simple.filter_map(|(name, values)| Some((name, mean_of(values)?)));
    let best = means.min_by(|(_, a), (_, b)| match figure.higher_is_better {
        true => b.total_cmp(a),
        false => a.total_cmp(b),
    });
    best.map(|(name, _)| name.clone())
}

/// Seeds at even places: on them the reference is chosen.
fn half(seeds: &[u64]) -> Vec<u64> {
    seeds.iter().copied().step_by(2).collect()
}

/// Seeds at odd places: on them policies are compared. One seed alone serves for both.
pub(crate) fn other_half(seeds: &[u64]) -> Vec<u64> {
    match seeds.len() {
        1 => seeds.to_vec(),
        _ => seeds.iter().copied().skip(1).step_by(2).collect(),
    }
}

/// Whether waits are asked for and every simple policy waits less than 6 minutes.
fn is_easy(regime: &Regime, runs: &[ArenaRun]) -> bool {
    if matches!(regime.recipe, Recipe::Arrivals(_)) || regime.figure().key != GPU_WEIGHTED_WAIT {
        return false;
    }
    let waits = by_policy(runs, GPU_WEIGHTED_WAIT);
    let simple = waits.iter().filter(|(name, _)| SIMPLE.contains(&name.as_str()));
    let of = |seeds: &BySeed| mean(&seeds.values().copied().collect::<Vec<_>>());
    let means: Vec<f64> = simple.filter_map(|(_, seeds)| of(seeds)).collect();
    !means.is_empty() && means.iter().all(|wait| *wait < WAIT_FLOOR_HOURS)
}

/// A figure of each policy by seed.
pub(crate) fn by_policy(runs: &[ArenaRun], key: &str) -> BTreeMap<String, BySeed> {
    by_policy_or(runs, key, None)
}

/// The same, with a value for runs that have no such figure.
pub(crate) fn by_policy_or(
    runs: &[ArenaRun],
    key: &str,
    absent: Option<f64>,
) -> BTreeMap<String, BySeed> {
    let mut lists: BTreeMap<(&str, u64), Vec<f64>> = BTreeMap::new();
    for run in runs {
        if let Some(value) = run.figures.get(key).copied().or(absent) {
            lists.entry((&run.policy, run.seed)).or_default().push(value);
        }
    }
    let mut found: BTreeMap<String, BySeed> = BTreeMap::new();
    for ((policy, seed), values) in lists {
        if let Some(mean) = mean(&values) {
            found.entry(policy.to_owned()).or_default().insert(seed, mean);
        }
    }
    found
}

fn order_spread(runs: &[ArenaRun], key: &str) -> BTreeMap<String, f64> {
    let mut lists: BTreeMap<(&str, u64), Vec<f64>> = BTreeMap::new();
    for run in runs {
        if let Some(value) = run.figures.get(key) {
            lists.entry((&run.policy, run.seed)).or_default().push(*value);
        }
    }
    let mut spreads: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for ((policy, _), values) in lists.into_iter().filter(|(_, values)| values.len() > 1) {
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let middle = mean(&values).filter(|mean| *mean > 0.0);
        let spread = middle.map_or(0.0, |mean| 100.0 * (high - low) / mean);
        spreads.entry(policy.to_owned()).or_default().push(spread);
    }
    let means = spreads.into_iter().filter_map(|(policy, spreads)| Some((policy, mean(&spreads)?)));
    means.collect()
}

/// What a figure cannot exceed.
fn most(key: &str) -> f64 {
    if key == "allocation_percent" { 100.0 } else { f64::INFINITY }
}

fn other_figures(runs: &[ArenaRun], primary: &str) -> BTreeMap<String, BTreeMap<String, Estimate>> {
    let mut keys: Vec<&str> =
        runs.iter().flat_map(|run| run.figures.keys()).map(String::as_str).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut found: BTreeMap<String, BTreeMap<String, Estimate>> = BTreeMap::new();
    for key in keys.into_iter().filter(|key| *key != primary) {
        for (policy, seeds) in by_policy(runs, key) {
            let values: Vec<f64> = seeds.values().copied().collect();
            let estimate = Estimate::of_amounts(&values, most(key));
            let of_policy = found.entry(policy).or_default();
            of_policy.extend(estimate.map(|estimate| (key.to_owned(), estimate)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::catalogue::regimes;

    fn regime(name: &str) -> Regime {
        regimes().into_iter().find(|regime| regime.name == name).expect("a regime")
    }

    /// Runs of policies with a wait for each seed, from seed 1 on.
    fn runs(key: &str, waits: &[(&str, &[f64])]) -> Vec<ArenaRun> {
        let of = |(policy, waits): &(&str, &[f64])| {
            let run = |(at, wait): (usize, &f64)| ArenaRun {
                seed: at as u64 + 1,
                order: 0,
                policy: (*policy).to_owned(),
                figures: RunFigures::from([(key.to_owned(), *wait)]),
            };
            waits.iter().enumerate().map(run).collect::<Vec<_>>()
        };
        waits.iter().flat_map(of).collect()
    }

    #[test]
    fn the_reference_is_chosen_on_one_half_and_compared_on_the_other() {
        let regime = regime("mixed/50-nodes/load-0.9/fifo-skip");
        // On seeds 1 and 3 best-fit waits 2 h and first-fit 3; on 2 and 4 best-fit waits 5,
        // first-fit 1.
        let runs = runs(
            GPU_WEIGHTED_WAIT,
            &[
                ("best-fit", &[2.0, 5.0, 2.0, 5.0]),
                ("first-fit", &[3.0, 1.0, 3.0, 1.0]),
                ("dovetail", &[0.0, 4.0, 0.0, 6.0]),
                ("fgd", &[0.0, 0.0, 0.0, 0.0]),
                ("random", &[0.5, 0.5, 0.5, 0.5]),
            ],
        );
        let verdict = RegimeVerdict::of(&regime, &runs);
        assert_eq!(verdict.reference.as_deref(), Some("best-fit"), "neither oracle nor random");
        assert_eq!(verdict.regret["dovetail"], 0.0);
        assert_eq!(verdict.regret["first-fit"], -4.0);
        assert_eq!(verdict.regret_percent["first-fit"], -80.0);
        assert_eq!(verdict.by_policy["first-fit"].mean, 2.0, "means are over all seeds");
        // Differences -1 and 1 on the two seeds: t(1) = 12.706, standard error 1.
        let paired = verdict.paired_regret["dovetail"];
        assert_eq!((paired.mean, paired.high), (0.0, Some(12.706)));
        assert_eq!(verdict.winners(), ["random"], "the oracle wins nothing");
        assert!(!verdict.easy);
    }

    #[test]
    fn orders_of_the_machines_are_averaged_within_a_seed() {
        let regime = regime("mixed/50-nodes/load-0.9/fifo-skip");
        let mut both = runs(GPU_WEIGHTED_WAIT, &[("best-fit", &[1.0, 5.0])]);
        let mut again = runs(GPU_WEIGHTED_WAIT, &[("best-fit", &[3.0, 7.0])]);
        again.iter_mut().for_each(|run| run.order = 1);
        both.extend(again);
        let verdict = RegimeVerdict::of(&regime, &both);
        // Seeds 2 and 6: mean 4, standard error 2; no wait is below 0.
        let estimate = verdict.by_policy["best-fit"];
        assert_eq!((estimate.low, estimate.high), (Some(0.0), Some(4.0 + 2.0 * 12.706)));
        assert_eq!((verdict.seeds, verdict.runs_per_policy), (2, 4));
    }

    #[test]
    fn a_regime_is_easy_where_every_simple_policy_waits_less_than_six_minutes() {
        let regime = regime("sharing/50-nodes/load-0.7/fifo-skip");
        let is_easy = |first_fit: f64, dovetail: f64| {
            let waits: [(&str, &[f64]); 3] = [
                ("best-fit", &[0.05, 0.0]),
                ("first-fit", &[first_fit, first_fit]),
                ("dovetail", &[dovetail, dovetail]),
            ];
            RegimeVerdict::of(&regime, &runs(GPU_WEIGHTED_WAIT, &waits))
        };
        assert!(is_easy(0.09, 3.0).easy, "the default waits long, and no simple policy does");
        assert!(!is_easy(0.11, 0.0).easy);
        let easy = is_easy(0.09, 3.0);
        assert_eq!(summary(&[easy]), BTreeMap::new(), "an easy regime is in no mean");
        let floored = is_easy(0.11, 0.0);
        assert_eq!(floored.regret_percent["dovetail"], 0.0, "waits below 6 minutes are alike");
    }

    #[test]
    fn more_allocation_is_better_and_is_compared_in_points() {
        let regime = regime("openb/default/plain");
        let runs = runs(
            regime.figure().key,
            &[
                ("best-fit", &[93.0, 93.0]),
                ("kube-default", &[90.0, 90.0]),
                ("dovetail", &[96.0, 95.95]),
                ("fgd-learnt", &[92.0, 96.0]),
            ],
        );
        let verdict = RegimeVerdict::of(&regime, &runs);
        assert_eq!(verdict.reference.as_deref(), Some("best-fit"));
        assert_eq!(verdict.regret_percent["kube-default"], 3.0);
        assert!((verdict.regret["dovetail"] + 2.95).abs() < 1e-9);
        assert_eq!(verdict.winners(), ["dovetail", "fgd-learnt"], "a tie within 0.1 points");
        let summary = summary(&[verdict]);
        assert_eq!((summary["dovetail"].wins, summary["best-fit"].wins), (1, 0));
        assert_eq!(summary["kube-default"].worst_regret_percent, 3.0);
    }
}

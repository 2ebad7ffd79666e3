//! What the regimes of one kind say together: one transform, one order of arrival, one family.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::arena::arrivals::ARRIVED_PERCENT;
use crate::arena::catalogue::Regime;
use crate::arena::figures::{ALLOCATION, GPU_WEIGHTED_WAIT, REFUSING_FROM};
use crate::arena::statistics::{Estimate, mean};
use crate::arena::verdict::{
    ArenaRun, BySeed, ORACLE, RegimeVerdict, WAIT_FLOOR_HOURS, by_policy, by_policy_or, other_half,
};

/// The simple policy that every other one is compared with as well, whether it is the reference or
/// not.
const BEST_FIT: &str = "best-fit";

/// A regime with its runs and what they say.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'r> {
    pub regime: &'r Regime,
    pub runs: &'r [ArenaRun],
    /// What they say.
    pub verdict: &'r RegimeVerdict,
}

/// Regimes that share a bound.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegimeGroup {
    pub family: &'static str,
    /// The transform, the order of arrival or the size where pods stay, else the family.
    pub name: String,
    /// Regimes that count.
    pub regimes: usize,
    /// Regimes that are easy and count in nothing.
    pub easy: usize,
    pub by_policy: BTreeMap<String, GroupRegret>,
}

/// A policy in a group of regimes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GroupRegret {
    /// Mean of its regrets in percent (points for allocation); `None` if there is no reference.
    pub mean_regret_percent: Option<f64>,
    /// Largest of them.
    pub worst_regret_percent: Option<f64>,
    /// Regimes in which nobody but the oracle was better by more than a tie, in percent of those
    /// with a reference.
    pub win_percent: Option<f64>,
    /// Waits over those of the reference by figure, where waits are judged.
    pub to_reference: BTreeMap<String, Ratio>,
    /// GPU-weighted waits over those of `best-fit`, over all seeds.
    pub to_best_fit: Option<Ratio>,
    /// The same of every wait, by figure.
    pub waits_to_best_fit: BTreeMap<String, Ratio>,
    /// Allocation over that of `best-fit`.
    pub over_best_fit: Option<Points>,
    /// Allocation over that of the oracle.
    pub over_oracle: Option<Points>,
    /// Arrived percent from which demand is refused, over that of the oracle.
    pub refusing_over_oracle: Option<Points>,
}

/// Waits over other waits, both at least 6 minutes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Geometric mean over the regimes.
    pub mean: f64,
    /// Of the regime in which it is largest.
    pub worst: f64,
    pub worst_regime: String,
    /// Regimes that count.
    pub regimes: usize,
}

/// Points of a percentage over that of another policy, paired by world.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Points {
    /// Mean over the regimes with its interval over the seeds.
    pub mean: Estimate,
    /// One world in ten is below this.
    pub tenth_percentile: f64,
    /// Mean of the regime in which it is least.
    pub least: f64,
    pub least_regime: String,
}

/// All groups, in the order of the regimes.
pub fn groups(judged: &[Judged<'_>]) -> Vec<RegimeGroup> {
    let mut keys: Vec<(&'static str, &str)> =
        judged.iter().map(|one| (one.regime.family, one.regime.group())).collect();
    let mut seen = std::collections::BTreeSet::new();
    keys.retain(|key| seen.insert(*key));
    let group = |(family, name): (&'static str, &str)| {
        let is_in = |one: &&Judged<'_>| (one.regime.family, one.regime.group()) == (family, name);
        let all: Vec<Judged<'_>> = judged.iter().filter(is_in).copied().collect();
        let count: Vec<Judged<'_>> = all.iter().filter(|one| !one.verdict.easy).copied().collect();
        let mut policies: Vec<&String> =
            count.iter().flat_map(|one| one.verdict.by_policy.keys()).collect();
        policies.sort_unstable();
        policies.dedup();
        let by_policy = policies.into_iter().map(|name| (name.clone(), standing(&count, name)));
        RegimeGroup {
            family,
            name: name.to_owned(),
            regimes: count.len(),
            easy: all.len() - count.len(),
            by_policy: by_policy.collect(),
        }
    };
    keys.into_iter().map(group).collect()
}

fn standing(judged: &[Judged<'_>], policy: &str) -> GroupRegret {
    let regrets: Vec<f64> =
        judged.iter().filter_map(|one| one.verdict.regret_percent.get(policy).copied()).collect();
    let compared = judged.iter().filter(|one| one.verdict.reference.is_some());
    let is_won = |one: &Judged<'_>| f64::from(one.verdict.winners().contains(&policy));
    let wins: Vec<f64> = compared.map(is_won).collect();
    let waits: Vec<Judged<'_>> =
        judged.iter().filter(|one| one.verdict.figure == GPU_WEIGHTED_WAIT).copied().collect();
    let mut keys: Vec<&String> = waits
        .iter()
        .flat_map(|one| one.runs.iter().flat_map(|run| run.figures.keys()))
        .filter(|key| key.contains("_wait_"))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let waits_to_best_fit = keys.iter().filter_map(|key| {
        let of = |one: &Judged<'_>| ratio(one.runs, key, policy, BEST_FIT, false);
        Some(((*key).clone(), Ratio::of(&waits, of)?))
    });
    let waits_to_best_fit: BTreeMap<String, Ratio> = waits_to_best_fit.collect();
    let to_reference = keys.into_iter().filter_map(|key| {
        let of = |one: &Judged<'_>| {
            let reference = one.verdict.reference.as_deref()?;
            ratio(one.runs, key, policy, reference, true)
        };
        Some((key.clone(), Ratio::of(&waits, of)?))
    });
    GroupRegret {
        mean_regret_percent: mean(&regrets),
        worst_regret_percent: regrets.iter().copied().reduce(f64::max),
        win_percent: mean(&wins).map(|share| 100.0 * share),
        to_reference: to_reference.collect(),
        to_best_fit: waits_to_best_fit.get(GPU_WEIGHTED_WAIT).cloned(),
        waits_to_best_fit,
        over_best_fit: Points::of(judged, policy, BEST_FIT, (ALLOCATION, None)),
        over_oracle: Points::of(judged, policy, ORACLE, (ALLOCATION, None)),
        refusing_over_oracle: Points::of(
            judged,
            policy,
            ORACLE,
            // What is never refused is refused at the end.
            (REFUSING_FROM, Some(ARRIVED_PERCENT as f64)),
        ),
    }
}

/// Mean waits of a policy over those of another, both at least 6 minutes: over the seeds on which
/// policies are compared, or over all.
fn ratio(runs: &[ArenaRun], key: &str, policy: &str, base: &str, is_compared: bool) -> Option<f64> {
    let values = by_policy(runs, key);
    let (own, base) = (values.get(policy)?, values.get(base)?);
    let all: Vec<u64> = own.keys().filter(|seed| base.contains_key(seed)).copied().collect();
    let seeds = if is_compared { other_half(&seeds_of(runs)) } else { all };
    let of = |values: &BySeed| {
        let values: Vec<f64> = seeds.iter().filter_map(|seed| values.get(seed).copied()).collect();
        mean(&values).map(|mean| mean.max(WAIT_FLOOR_HOURS))
    };
    Some(of(own)? / of(base)?)
}

fn seeds_of(runs: &[ArenaRun]) -> Vec<u64> {
    let mut seeds: Vec<u64> = runs.iter().map(|run| run.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    seeds
}

impl Ratio {
    fn of(judged: &[Judged<'_>], ratio: impl Fn(&Judged<'_>) -> Option<f64>) -> Option<Self> {
        let known: Vec<(f64, &str)> =
            judged.iter().filter_map(|one| Some((ratio(one)?, one.regime.name.as_str()))).collect();
        let logarithms: Vec<f64> = known.iter().map(|(ratio, _)| libm::log(*ratio)).collect();
        let (worst, regime) = known.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        let (worst, worst_regime) = (*worst, (*regime).to_owned());
        let regimes = known.len();
        Some(Self { mean: libm::exp(mean(&logarithms)?), worst, worst_regime, regimes })
    }
}

impl Points {
    /// `figure` is a key, and the value of runs without it.
    fn of(
        judged: &[Judged<'_>],
        policy: &str,
        base: &str,
        figure: (&str, Option<f64>),
    ) -> Option<Self> {
        let mut by_seed: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        let mut by_regime: Vec<(f64, &str)> = Vec::new();
        for one in judged.iter().filter(|one| one.verdict.unit == "percent") {
            let values = by_policy_or(one.runs, figure.0, figure.1);
            let (Some(own), Some(base)) = (values.get(policy), values.get(base)) else {
                continue;
            };
            let over = |(seed, own): (&u64, &f64)| Some((*seed, own - base.get(seed)?));
            let over: Vec<(u64, f64)> = own.iter().filter_map(over).collect();
            let points: Vec<f64> = over.iter().map(|(_, points)| *points).collect();
            by_regime.extend(mean(&points).map(|mean| (mean, one.regime.name.as_str())));
            over.into_iter()
                .for_each(|(seed, points)| by_seed.entry(seed).or_default().push(points));
        }
        let pooled: Vec<f64> = by_seed.values().filter_map(|points| mean(points)).collect();
        let mut all: Vec<f64> = by_seed.into_values().flatten().collect();
        all.sort_unstable_by(f64::total_cmp);
        let (least, regime) = by_regime.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(Self {
            mean: Estimate::of(&pooled)?,
            tenth_percentile: all[all.len() / 10],
            least: *least,
            least_regime: (*regime).to_owned(),
        })
    }
}

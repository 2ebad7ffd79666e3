//! What a policy that is on by default must reach in each group of regimes.

use serde::Serialize;

use crate::arena::catalogue::OPENB_LISTS;
use crate::arena::figures::{GPU_WEIGHTED_WAIT, size_in_words};
use crate::arena::groups::{GroupRegret, Ratio, RegimeGroup};
use crate::arena::verdict::RegimeVerdict;

/// One thing that must hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// Group of regimes.
    pub group: String,
    /// What is measured.
    pub what: String,
    /// Unit: points, percent, or times another policy's figure.
    pub unit: &'static str,
    /// What it must be.
    pub target: f64,
    /// Whether the target is the most that it may be; else the least.
    pub at_most: bool,
    pub measured: f64,
    /// `None`: not judged, because it covers lists of openb that were not run.
    pub met: Option<bool>,
    /// The regime in which it is measured, where it is the worst of several.
    pub regime: Option<String>,
    /// How many of these lists were run, if not all.
    #[serde(skip)]
    pub lists_run: Option<usize>,
}

impl Bound {
    fn at_most(group: &str, what: &str, unit: &'static str, target: f64, measured: f64) -> Self {
        let met = Some(measured <= target);
        let (group, what) = (group.to_owned(), what.to_owned());
        let (at_most, regime, lists_run) = (true, None, None);
        Self { group, what, unit, target, at_most, measured, met, regime, lists_run }
    }

    fn at_least(group: &str, what: &str, unit: &'static str, target: f64, measured: f64) -> Self {
        let met = Some(measured >= target);
        Self { at_most: false, met, ..Self::at_most(group, what, unit, target, measured) }
    }

    /// What was measured, with as many decimals as tell it from a target that is missed.
    pub fn shown(&self) -> String {
        let decimals = (2..6).find(|decimals| {
            let rounded = format!("{:.*}", *decimals, self.measured).parse::<f64>();
            self.met != Some(false) || rounded != Ok(self.target)
        });
        format!("{:.*}", decimals.unwrap_or(6), self.measured)
    }

    /// Whether it is met, in words.
    pub fn judged(&self) -> String {
        match (self.met, self.lists_run) {
            (Some(true), _) => "met".to_owned(),
            (Some(false), _) => "missed".to_owned(),
            (None, run) => {
                format!("not judged: {} of {} lists", run.unwrap_or(0), OPENB_LISTS.len())
            }
        }
    }

    fn in_regime(self, regime: &str) -> Self {
        Self { regime: Some(regime.to_owned()), ..self }
    }

    /// One that covers all lists of openb, of which so many were run.
    fn over_lists(self, run: usize) -> Self {
        match run < OPENB_LISTS.len() {
            true => Self { met: None, lists_run: Some(run), ..self },
            false => self,
        }
    }
}

/// Families of which each group has a regime of every list of openb.
const OF_ALL_LISTS: [&str; 5] = ["plain", "transformed", "adversarial", "small", "early"];

/// All bounds of a policy that these groups say something about.
pub fn bounds(groups: &[RegimeGroup], verdicts: &[RegimeVerdict], policy: &str) -> Vec<Bound> {
    let mut all = Vec::new();
    for group in groups {
        let Some(standing) = group.by_policy.get(policy) else { continue };
        let first = all.len();
        match group.family {
            "plain" => all.extend(plain(&group.name, standing)),
            "demo-month" => all.extend(month(&group.name, standing)),
            "transformed" => all.extend(transformed(&group.name, standing)),
            "adversarial" => all.extend(over_best_fit(&group.name, standing, -0.5, -2.0)),
            "small" => all.extend(small(&group.name, standing)),
            "early" => all.extend(over_best_fit(&group.name, standing, -0.3, -0.3)),
            "mix-change" => all.extend(over_best_fit(&group.name, standing, -0.5, -0.5)),
            "early-jobs" => all.extend(early(&group.name, standing)),
            _ => all.extend(waits(&group.name, standing)),
        }
        if OF_ALL_LISTS.contains(&group.family) {
            let of_group = all.split_off(first).into_iter();
            all.extend(of_group.map(|bound| bound.over_lists(group.regimes)));
        }
    }
    all.extend(all_transformed(groups, policy));
    all.extend(estimates(verdicts, policy));
    all.extend(geometric(groups, policy));
    all
}

/// Over the oracle, that is `fgd` as published: on each list, and on average.
fn plain(name: &str, standing: &GroupRegret) -> Vec<Bound> {
    let (Some(points), Some(refusing)) = (&standing.over_oracle, &standing.refusing_over_oracle)
    else {
        return Vec::new();
    };
    vec![
        Bound::at_least(name, "least over fgd", "points", 0.0, points.least)
            .in_regime(&points.least_regime),
        Bound::at_least(name, "first rejection, least over fgd", "points", -0.5, refusing.least)
            .in_regime(&refusing.least_regime),
        Bound::at_least(name, "mean over fgd", "points", 0.6, points.mean.mean),
    ]
}

/// No wait of the demonstration is longer than that of `best-fit`.
fn month(group: &str, standing: &GroupRegret) -> Vec<Bound> {
    let mut all = against_reference(group, standing);
    for (key, what) in [
        (GPU_WEIGHTED_WAIT, "GPU-weighted wait vs. best-fit"),
        ("mean_wait_hours", "mean wait vs. best-fit"),
        ("p99_wait_hours", "p99 wait vs. best-fit"),
    ] {
        let ratio = standing.waits_to_best_fit.get(key);
        all.extend(ratio.map(|ratio| Bound::at_most(group, what, "times", 1.0, ratio.mean)));
    }
    all
}

/// Best or tied over all transforms together, and the mean regret.
fn all_transformed(groups: &[RegimeGroup], policy: &str) -> Vec<Bound> {
    let transformed = || groups.iter().filter(|group| group.family == "transformed");
    let compared: Vec<(f64, f64, f64)> = transformed()
        .filter_map(|group| {
            let standing = group.by_policy.get(policy)?;
            let (regret, wins) = (standing.mean_regret_percent?, standing.win_percent?);
            Some((group.regimes as f64, regret, wins))
        })
        .collect();
    let regimes: f64 = compared.iter().map(|(regimes, ..)| regimes).sum();
    if regimes == 0.0 {
        return Vec::new();
    }
    let regret: f64 = compared.iter().map(|(regimes, regret, _)| regimes * regret).sum();
    let wins: f64 = compared.iter().map(|(regimes, _, wins)| regimes * wins).sum();
    let lists = transformed().map(|group| group.regimes).min().unwrap_or(0);
    let all = [
        Bound::at_most("transformed", "mean regret", "points", 0.15, regret / regimes),
        Bound::at_least("transformed", "best or tied", "percent", 60.0, wins / regimes),
    ];
    all.map(|bound| bound.over_lists(lists)).into()
}

/// Within half a point of the reference everywhere, and best or tied in many.
fn transformed(group: &str, standing: &GroupRegret) -> Vec<Bound> {
    let at_most = |what, bound, value: Option<f64>| {
        Some(Bound::at_most(group, what, "points", bound, value?))
    };
    let bounds = [
        at_most("worst regret", 0.5, standing.worst_regret_percent),
        at_most("mean regret", 0.15, standing.mean_regret_percent),
        standing
            .win_percent
            .map(|wins| Bound::at_least(group, "best or tied", "percent", 40.0, wins)),
    ];
    bounds.into_iter().flatten().collect()
}

/// Mean over the regimes, and the least regime, over `best-fit`.
fn over_best_fit(group: &str, standing: &GroupRegret, mean: f64, least: f64) -> Vec<Bound> {
    let Some(points) = &standing.over_best_fit else { return Vec::new() };
    vec![
        Bound::at_least(group, "mean over best-fit", "points", mean, points.mean.mean),
        Bound::at_least(group, "least over best-fit", "points", least, points.least)
            .in_regime(&points.least_regime),
    ]
}

fn small(group: &str, standing: &GroupRegret) -> Vec<Bound> {
    let Some(points) = &standing.over_best_fit else { return Vec::new() };
    let low = points.mean.low.unwrap_or(points.mean.mean);
    vec![
        Bound::at_least(group, "lower end over best-fit", "points", -0.3, low),
        Bound::at_least(group, "least over best-fit", "points", -1.0, points.least)
            .in_regime(&points.least_regime),
    ]
}

fn early(group: &str, standing: &GroupRegret) -> Option<Bound> {
    let ratio = standing.to_best_fit.as_ref()?;
    let what = "GPU-weighted wait vs. best-fit";
    Some(Bound::at_most(group, what, "times", 1.10, ratio.worst).in_regime(&ratio.worst_regime))
}

/// Waits of a family against the reference, and against `best-fit`.
fn waits(group: &str, standing: &GroupRegret) -> Vec<Bound> {
    let mut all = against_reference(group, standing);
    let what = "GPU-weighted wait vs. best-fit";
    let ratio = standing.to_best_fit.as_ref();
    all.extend(ratio.map(|ratio| Bound::at_most(group, what, "times", 1.05, ratio.mean)));
    all
}

fn against_reference(group: &str, standing: &GroupRegret) -> Vec<Bound> {
    let mut all = Vec::new();
    let mut add = |what: &str, target: f64, ratio: Option<&Ratio>| {
        all.extend(ratio.map(|ratio| Bound::at_most(group, what, "times", target, ratio.mean)));
    };
    let of = |key: &str| standing.to_reference.get(key);
    add("GPU-weighted wait vs. the reference", 1.10, of(GPU_WEIGHTED_WAIT));
    add("mean wait vs. the reference", 1.15, of("mean_wait_hours"));
    add("p99 wait vs. the reference", 1.25, of("p99_wait_hours"));
    let classes = standing.to_reference.iter();
    let classes = classes.filter_map(|(key, ratio)| Some((size_in_words(key)?, ratio)));
    if let Some((size, ratio)) = classes.max_by(|a, b| a.1.mean.total_cmp(&b.1.mean)) {
        let what = format!("p99 wait of the worst size ({size}) vs. the reference");
        add(&what, 1.5, Some(ratio));
    }
    let worst = of(GPU_WEIGHTED_WAIT).map(|ratio| {
        let what = "GPU-weighted wait of the worst regime vs. the reference";
        Bound::at_most(group, what, "times", 1.25, ratio.worst).in_regime(&ratio.worst_regime)
    });
    all.extend(worst);
    all
}

/// Estimates that are wrong must do no harm beside none.
fn estimates(verdicts: &[RegimeVerdict], policy: &str) -> Option<Bound> {
    let wait = |name: &str| {
        let of = verdicts.iter().find(|verdict| verdict.name.starts_with(name))?;
        Some(of.by_policy.get(policy)?.mean)
    };
    let ratio = wait("wrong-estimates/")? / wait("no-estimates/")?;
    let what = "GPU-weighted wait with wrong estimates vs. without estimates";
    Some(Bound::at_most("estimates", what, "times", 1.05, ratio))
}

/// The geometric mean over `best-fit` of all regimes whose waits are judged, early jobs aside.
fn geometric(groups: &[RegimeGroup], policy: &str) -> Option<Bound> {
    let ratios = groups.iter().filter(|group| group.family != "early-jobs").filter_map(|group| {
        let ratio = group.by_policy.get(policy)?.to_best_fit.as_ref()?;
        Some((ratio.regimes as f64, libm::log(ratio.mean)))
    });
    let (count, sum) = ratios.fold((0.0, 0.0), |(count, sum), (regimes, logarithm)| {
        (count + regimes, sum + regimes * logarithm)
    });
    let what = "GPU-weighted wait vs. best-fit";
    (count > 0.0).then(|| Bound::at_most("all", what, "times", 0.95, libm::exp(sum / count)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::arena::groups::Points;
    use crate::arena::statistics::Estimate;

    fn group(family: &'static str, standing: GroupRegret) -> RegimeGroup {
        let by_policy = BTreeMap::from([("dovetail".to_owned(), standing)]);
        RegimeGroup { family, name: family.to_owned(), regimes: 2, easy: 0, by_policy }
    }

    fn ratio(mean: f64, worst: f64, regimes: usize) -> Ratio {
        Ratio { mean, worst, worst_regime: "w".to_owned(), regimes }
    }

    #[test]
    fn waits_are_bounded_by_family_and_in_sum() {
        let standing = |best_fit: f64, regimes| GroupRegret {
            to_reference: BTreeMap::from([
                (GPU_WEIGHTED_WAIT.to_owned(), ratio(1.1, 1.3, regimes)),
                ("p99_wait_hours".to_owned(), ratio(1.26, 2.0, regimes)),
                ("p99_wait_gang_hours".to_owned(), ratio(1.4, 9.0, regimes)),
            ]),
            to_best_fit: Some(ratio(best_fit, 2.0, regimes)),
            ..GroupRegret::default()
        };
        let groups = [
            group("mixed", standing(0.5, 1)),
            group("training", standing(1.0, 3)),
            group("early-jobs", standing(1.2, 3)),
        ];
        let all = bounds(&groups, &[], "dovetail");
        let missed: Vec<String> = all
            .iter()
            .filter(|bound| bound.met == Some(false))
            .map(|bound| format!("{} {} {:?}", bound.group, bound.what, bound.regime))
            .collect();
        let worst = "GPU-weighted wait of the worst regime vs. the reference Some(\"w\")";
        let p99 = "p99 wait vs. the reference None";
        let expected = [
            format!("mixed {p99}"),
            format!("mixed {worst}"),
            format!("training {p99}"),
            format!("training {worst}"),
            "early-jobs GPU-weighted wait vs. best-fit Some(\"w\")".to_owned(),
        ];
        assert_eq!(missed, expected);
        let size = "p99 wait of the worst size (gangs) vs. the reference";
        assert!(all.iter().any(|bound| bound.what == size), "{all:?}");
        let sum = all.last().unwrap();
        // The fourth root of 1/2.
        assert!((sum.measured - 0.840_896).abs() < 1e-6 && sum.met == Some(true), "{sum:?}");
    }

    #[test]
    fn plain_traces_and_the_demonstration_have_bounds_of_their_own() {
        let points = |mean: f64, least: f64| {
            let mean = Estimate { mean, low: None, high: None };
            let least_regime = "w".to_owned();
            Some(Points { mean, tenth_percentile: 0.0, least, least_regime })
        };
        let plain = |mean, least, refusing| GroupRegret {
            over_oracle: points(mean, least),
            refusing_over_oracle: points(0.0, refusing),
            ..GroupRegret::default()
        };
        let month = |p99: f64| GroupRegret {
            waits_to_best_fit: BTreeMap::from([
                (GPU_WEIGHTED_WAIT.to_owned(), ratio(1.0, 1.0, 1)),
                ("p99_wait_hours".to_owned(), ratio(p99, p99, 1)),
            ]),
            ..GroupRegret::default()
        };
        let regret = |wins: f64, mean: f64| GroupRegret {
            win_percent: Some(wins),
            mean_regret_percent: Some(mean),
            worst_regret_percent: Some(0.0),
            ..GroupRegret::default()
        };
        let judged = |family, regimes, standing: GroupRegret| {
            let groups = [RegimeGroup { regimes, ..group(family, standing) }];
            bounds(&groups, &[], "dovetail")
        };
        let met = |family, regimes, standing: GroupRegret| -> Vec<(String, bool)> {
            let bounds = judged(family, regimes, standing).into_iter();
            bounds.filter_map(|bound| Some((bound.what, bound.met?))).collect()
        };
        let is = |what: &str, met: bool| (what.to_owned(), met);
        let [least, refuses, mean] =
            ["least over fgd", "first rejection, least over fgd", "mean over fgd"];
        let all = [is(least, true), is(refuses, true), is(mean, true)];
        assert_eq!(met("plain", 14, plain(0.6, 0.0, -0.5)), all);
        let none = [is(least, false), is(refuses, false), is(mean, false)];
        assert_eq!(met("plain", 14, plain(0.59, -0.01, -0.51)), none);
        for (lists, standing) in [(1, plain(0.1, 0.1, 0.0)), (13, plain(0.1, -0.1, 0.0))] {
            let some = judged("plain", lists, standing);
            let words = format!("not judged: {lists} of 14 lists");
            assert!(some.len() == 3 && some.iter().all(|bound| bound.judged() == words));
            assert!(some.iter().all(|bound| bound.met.is_none()), "{some:?}");
        }
        let [weighted, p99] = ["GPU-weighted wait vs. best-fit", "p99 wait vs. best-fit"];
        assert_eq!(met("demo-month", 1, month(1.01)), [is(weighted, true), is(p99, false)]);
        let (each, wins) = ("mean regret", "best or tied");
        let of_one = [is("worst regret", true), is(each, true), is(wins, true)];
        let in_all = [is(each, true), is(wins, false)];
        assert_eq!(met("transformed", 14, regret(59.0, 0.1)), [&of_one[..], &in_all].concat());
        assert_eq!(met("transformed", 2, regret(59.0, 0.1)), []);
    }

    #[test]
    fn a_miss_is_seen_in_the_digits() {
        let shown = |measured| Bound::at_most("g", "w", "times", 1.05, measured).shown();
        assert_eq!(
            [1.049_9, 1.050_4, 1.050_000_2, 1.2].map(shown),
            ["1.05", "1.0504", "1.050000", "1.20"]
        );
    }

    #[test]
    fn small_clusters_are_bounded_by_the_end_of_the_interval() {
        let points = |low: f64, least: f64| Points {
            mean: Estimate { mean: 0.0, low: Some(low), high: Some(1.0) },
            tenth_percentile: -3.0,
            least,
            least_regime: "w".to_owned(),
        };
        let met = |low: f64, least: f64| -> Vec<bool> {
            let standing =
                GroupRegret { over_best_fit: Some(points(low, least)), ..GroupRegret::default() };
            let small = RegimeGroup { regimes: 14, ..group("small", standing) };
            let bounds = bounds(&[small], &[], "dovetail");
            bounds.iter().filter_map(|bound| bound.met).collect()
        };
        assert_eq!(met(-0.3, -1.0), [true, true]);
        assert_eq!(met(-0.31, -0.9), [false, true]);
        assert_eq!(met(0.1, -1.1), [true, false]);
    }
}

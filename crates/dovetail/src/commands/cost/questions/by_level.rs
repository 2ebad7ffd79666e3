//! Answers from how busy devices were.

use std::collections::BTreeMap;

use dovetail_ledger::cost::{CostSum, add_up};
use dovetail_ledger::device_time::Span;
use dovetail_ledger::utilisation::{Level, LowRule, LowTime, Utilisation, low_time, mean_of};

use super::Name;
use super::answer::{Answer, Cell, Row};
use super::asked::{Asked, HeldLevels, Sampled};
use super::by_charge::{blind_reason, gpu_hours};
use crate::commands::cost::dimension::UNKNOWN;
use crate::commands::cost::document::share;
use crate::output::plain::plain;

/// So many pods are named.
const MOST_NAMED: usize = 50;

fn ratio(micro_percent: u32) -> f64 {
    f64::from(micro_percent) / 1e8
}

/// How busy each team's GPUs were, and how much of what it holds is active.
pub(super) fn teams(asked: &Asked) -> Answer {
    let team_of = |pod: u32| asked.account.pods[pod as usize].team.as_deref().unwrap_or(UNKNOWN);
    let mut busy: BTreeMap<&str, Utilisation> = BTreeMap::new();
    for HeldLevels { pod, gpu_milli, levels } in &asked.held {
        busy.entry(team_of(*pod)).or_default().add(*gpu_milli, levels);
    }
    let held =
        asked.charges.iter().filter_map(|(_, charge)| Some((team_of(charge.holder?), *charge)));
    let sums = add_up(held);
    let (mut all, mut all_busy) = (CostSum::default(), Utilisation::default());
    sums.values().for_each(|sum| all += sum);
    busy.values().for_each(|busy| all_busy += *busy);
    let row = |team: &str, sum: &CostSum, busy: Option<&Utilisation>| {
        let mean = busy.and_then(Utilisation::mean_micro_percent).map(ratio);
        let bounds = busy.and_then(Utilisation::bounds_micro_percent);
        Row(vec![
            ("team", Cell::Text(plain(team))),
            ("allocated_gpu_hours", gpu_hours(sum.allocated_gpu_milli_ms)),
            ("active_gpu_hours", gpu_hours(sum.active_gpu_milli_ms)),
            (
                "active_share",
                Cell::Share(Some(share(sum.active_gpu_milli_ms, sum.allocated_gpu_milli_ms))),
            ),
            ("utilisation", Cell::Share(mean)),
            ("utilisation_at_least", Cell::Share(bounds.map(|bounds| ratio(bounds.0)))),
            ("utilisation_at_most", Cell::Share(bounds.map(|bounds| ratio(bounds.1)))),
        ])
    };
    let mut order: Vec<(&&str, &CostSum)> =
        sums.iter().filter(|(_, sum)| sum.allocated_gpu_milli_ms > 0).collect();
    order.sort_by_key(|(team, sum)| (std::cmp::Reverse(sum.allocated_gpu_milli_ms), **team));
    let mut rows: Vec<Row> =
        order.into_iter().map(|(team, sum)| row(team, sum, busy.get(team))).collect();
    rows.push(row("total", &all, Some(&all_busy)));
    let known = share(all_busy.known_gpu_milli_ms, all_busy.held_gpu_milli_ms);
    Answer {
        name: Name::Teams.text(),
        question: Name::Teams.words(),
        how: "active is time with more than 1 % by the best signal there is; utilisation is the mean of that signal, \
              weighted by what is held of each GPU and how long",
        uncertainty: format!(
            "{:.0} % of the time that was held was measured; the bounds take the rest as nothing and as all",
            100.0 * known
        ),
        unknown_because: all_busy.mean_micro_percent().is_none().then(|| blind_reason(asked)),
        rows,
    }
}

/// Pods that were hardly busy for hours.
pub(super) fn low(asked: &Asked) -> Answer {
    let rule = LowRule::default();
    let mut by_pod: BTreeMap<u32, Vec<&HeldLevels>> = BTreeMap::new();
    for held in &asked.held {
        by_pod.entry(held.pod).or_default().push(held);
    }
    let mut found: Vec<(u32, i64, LowTime)> = Vec::new();
    let mut short = 0;
    for (pod, held) in by_pod {
        let levels: Vec<Vec<Level>> = held.iter().map(|held| held.levels.clone()).collect();
        let gpu_milli = held.iter().map(|held| held.gpu_milli).sum();
        let mean = mean_of(&levels);
        let longest_ms = longest_known_ms(&mean);
        short += usize::from(longest_ms < rule.window_ms);
        found.extend(low_time(&mean, &rule).map(|low| (pod, gpu_milli, low)));
    }
    let time =
        |(_, gpu_milli, low): &(u32, i64, LowTime)| i128::from(*gpu_milli) * i128::from(low.low_ms);
    found.sort_by_key(|low| (std::cmp::Reverse(time(low)), low.0));
    let count = found.len();
    let row = |low: &(u32, i64, LowTime)| {
        let (number, gpu_milli, LowTime { lowest_micro_percent, low_ms }) = *low;
        let pod = &asked.account.pods[number as usize];
        Row(vec![
            ("pod", Cell::Text(plain(&format!("{}/{}", pod.namespace, pod.name)))),
            ("job", Cell::Text(plain(&pod.job))),
            ("gpus", Cell::Hours(Some(gpu_milli as f64 / 1e3))),
            ("lowest_6h_mean", Cell::Share(Some(ratio(lowest_micro_percent)))),
            ("low_hours", Cell::Hours(Some(low_ms as f64 / 3.6e6))),
            ("low_gpu_hours", gpu_hours(time(low))),
        ])
    };
    let is_short = asked.sampled.is_none_or(|Sampled { span: Span { from_ms, to_ms }, .. }| {
        to_ms - from_ms < rule.window_ms
    });
    let because = match asked.sampled {
        None => blind_reason(asked),
        Some(_) => "less than 6 hours were read: ask for a longer --period".to_owned(),
    };
    let more = count.saturating_sub(MOST_NAMED);
    Answer {
        name: Name::Low.text(),
        question: Name::Low.words(),
        how: "any 6 hours, measured throughout, in which the mean over a pod's GPUs was below 30 %; hours are all \
              that lie in such a window, of the period that was read",
        uncertainty: format!(
            "{short} of the pods that hold GPUs were not measured for 6 hours on end, and are not judged{}",
            if more > 0 { format!("; {more} more pods are not listed") } else { String::new() }
        ),
        unknown_because: is_short.then_some(because),
        rows: found.iter().take(MOST_NAMED).map(row).collect(),
    }
}

/// The longest time without a gap of which the level is known.
fn longest_known_ms(levels: &[Level]) -> u64 {
    let (mut longest_ms, mut since_ms, mut end_ms) = (0, None, 0);
    for Level { span, micro_percent } in levels {
        if micro_percent.is_none() {
            since_ms = None;
            continue;
        }
        let begin_ms = match since_ms {
            Some(begin_ms) if end_ms == span.from_ms => begin_ms,
            _ => span.from_ms,
        };
        since_ms = Some(begin_ms);
        end_ms = span.to_ms;
        longest_ms = longest_ms.max(end_ms - begin_ms);
    }
    longest_ms
}

//! Answers from how busy devices were.

use std::collections::BTreeMap;

use dovetail_account::cost::{CostSum, add_up};
use dovetail_account::device_time::Span;
use dovetail_account::utilisation::{BusyLevel, LowRule, LowTime, Utilisation, low_time, mean_of};
use dovetail_console::plain::plain;
use dovetail_console::table::{counted, plural};
use dovetail_units::amount::rounded_percent;

use super::answer::{AnswerCell, AnswerRow, CostAnswer};
use super::asked::{HeldLevels, QuestionInput, Sampled};
use super::by_charge::{blind_reason, gpu_hours, nobody_held};
use super::name::QuestionName;
use crate::dimension::UNKNOWN;
use crate::document::{hours, share, share_of_any};
use crate::known;

/// So many pods are named.
const MOST_NAMED: usize = 50;

fn ratio(micro_percent: u32) -> f64 {
    f64::from(micro_percent) / 1e8
}

/// How busy each team's GPUs were, and how much of what it holds is active.
pub fn teams(asked: &QuestionInput) -> CostAnswer {
    let team_of = |pod: u32| asked.account.pods[pod as usize].team.as_deref().unwrap_or(UNKNOWN);
    let mut busy: BTreeMap<&str, Utilisation> = BTreeMap::new();
    // Those of which a mean says something of all their time.
    let mut fair: BTreeMap<&str, Utilisation> = BTreeMap::new();
    for HeldLevels { pod, gpu_milli, levels, is_known_idle_alone } in &asked.held {
        busy.entry(team_of(*pod)).or_default().add(*gpu_milli, levels);
        if !is_known_idle_alone {
            fair.entry(team_of(*pod)).or_default().add(*gpu_milli, levels);
        }
    }
    let held =
        asked.charges.iter().filter_map(|(_, charge)| Some((team_of(charge.holder?), *charge)));
    let sums = add_up(held);
    let (mut all, mut all_busy) = (CostSum::default(), Utilisation::default());
    sums.values().for_each(|sum| all += sum);
    let mut all_fair = Utilisation::default();
    busy.values().for_each(|busy| all_busy += *busy);
    fair.values().for_each(|fair| all_fair += *fair);
    let row =
        |team: &str, sum: &CostSum, busy: Option<&Utilisation>, fair: Option<&Utilisation>| {
            let mean = fair.and_then(Utilisation::mean_micro_percent).map(ratio);
            let bounds = busy.and_then(Utilisation::bounds_micro_percent);
            let active = known::is_any_measured(sum).then_some(sum.active_gpu_milli_ms);
            let active_share = active.and_then(|ms| share_of_any(ms, sum.allocated_gpu_milli_ms));
            AnswerRow(vec![
                ("team", AnswerCell::Text(plain(team))),
                ("allocated_gpu_hours", gpu_hours(sum.allocated_gpu_milli_ms)),
                ("active_gpu_hours", AnswerCell::Hours(active.map(hours))),
                ("active_share", AnswerCell::Share(active_share)),
                ("utilisation", AnswerCell::Share(mean)),
                ("utilisation_at_least", AnswerCell::Share(bounds.map(|bounds| ratio(bounds.0)))),
                ("utilisation_at_most", AnswerCell::Share(bounds.map(|bounds| ratio(bounds.1)))),
            ])
        };
    let mut order: Vec<(&&str, &CostSum)> =
        sums.iter().filter(|(_, sum)| sum.allocated_gpu_milli_ms > 0).collect();
    order.sort_by_key(|(team, sum)| (std::cmp::Reverse(sum.allocated_gpu_milli_ms), **team));
    let mut rows: Vec<AnswerRow> = order
        .into_iter()
        .map(|(team, sum)| row(team, sum, busy.get(*team), fair.get(*team)))
        .collect();
    rows.push(row("total", &all, Some(&all_busy), Some(&all_fair)));
    let is_held = all.allocated_gpu_milli_ms > 0;
    let known = share(all_busy.known_gpu_milli_ms, all_busy.held_gpu_milli_ms);
    CostAnswer {
        name: QuestionName::Teams.text(),
        question: QuestionName::Teams.words(),
        how: "active is time above 1% according to the best available signal; utilization is the mean of that signal, \
              weighted by how much of each GPU is allocated and for how long"
            .to_owned(),
        uncertainty: format!(
            "{} of the allocated time was measured; the bounds assume 0% and 100% for the rest; \
             the active share assumes 0%",
            rounded_percent(known)
        ),
        unknown_because: (is_held && all_fair.mean_micro_percent().is_none()).then(|| {
            match all_busy.mean_micro_percent() {
                None => blind_reason(asked),
                Some(_) => "shared GPUs were active, but it is unknown for which of their pods".to_owned(),
            }
        }),
        none_because: (!is_held).then(|| nobody_held(asked)),
        rows,
    }
}

/// Pods that were hardly busy for hours.
pub fn low(asked: &QuestionInput) -> CostAnswer {
    let rule = LowRule::default();
    let mut by_pod: BTreeMap<u32, Vec<&HeldLevels>> = BTreeMap::new();
    for held in &asked.held {
        by_pod.entry(held.pod).or_default().push(held);
    }
    let mut found: Vec<(u32, i64, LowTime)> = Vec::new();
    let (pods, mut short, mut shared) = (by_pod.len(), 0, 0);
    for (pod, held) in by_pod {
        let shares = held.iter().any(|held| held.is_known_idle_alone);
        let levels: Vec<Vec<BusyLevel>> = held.iter().map(|held| held.levels.clone()).collect();
        let gpu_milli = held.iter().map(|held| held.gpu_milli).sum();
        let mean = mean_of(&levels);
        let longest_ms = longest_known_ms(&mean);
        let is_short = longest_ms < rule.window_ms;
        short += usize::from(is_short);
        shared += usize::from(is_short && shares);
        found.extend(low_time(&mean, &rule).map(|low| (pod, gpu_milli, low)));
    }
    let time =
        |(_, gpu_milli, low): &(u32, i64, LowTime)| i128::from(*gpu_milli) * i128::from(low.low_ms);
    found.sort_by_key(|low| (std::cmp::Reverse(time(low)), low.0));
    let count = found.len();
    let row = |low: &(u32, i64, LowTime)| {
        let (number, gpu_milli, LowTime { lowest_micro_percent, low_ms }) = *low;
        let pod = &asked.account.pods[number as usize];
        AnswerRow(vec![
            ("pod", AnswerCell::Text(plain(&format!("{}/{}", pod.namespace, pod.name)))),
            ("job", AnswerCell::Text(plain(&pod.job))),
            ("gpus", AnswerCell::Hours(Some(gpu_milli as f64 / 1e3))),
            ("lowest_6h_mean", AnswerCell::Share(Some(ratio(lowest_micro_percent)))),
            ("low_hours", AnswerCell::Hours(Some(low_ms as f64 / 3.6e6))),
            ("low_gpu_hours", gpu_hours(time(low))),
        ])
    };
    let because = why_unknown(asked, pods, short, &rule);
    let none = match pods - short {
        0 => nobody_held(asked),
        judged => format!(
            "none of {} had less than 30% utilization in any 6 hours",
            counted(judged, "pod")
        ),
    };
    let more = match count.saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!("; {} not listed", plural(more, "more pod is", "more pods are")),
    };
    CostAnswer {
        name: QuestionName::Low.text(),
        question: QuestionName::Low.words(),
        how: "a pod is listed if the mean utilization of its GPUs was below 30% in any 6 hours \
             that were measured without a gap; hours are all hours in such windows within the \
             sampled period, not a run rate"
            .to_owned(),
        uncertainty: judged(pods, short, shared) + &more,
        none_because: (found.is_empty() && because.is_none()).then_some(none),
        unknown_because: because,
        rows: found.iter().take(MOST_NAMED).map(row).collect(),
    }
}

/// Why nobody can say which pods were hardly busy; `short` of the pods were not measured for long
/// enough.
fn why_unknown(asked: &QuestionInput, pods: usize, short: usize, rule: &LowRule) -> Option<String> {
    if !asked.has_holders() {
        return None;
    }
    let Some(Sampled { span: Span { from_ms, to_ms }, .. }) = asked.sampled else {
        return Some(blind_reason(asked));
    };
    if to_ms - from_ms < rule.window_ms {
        return Some("fewer than 6 hours were measured: use a longer --period".to_owned());
    }
    (pods > 0 && short == pods)
        .then(|| format!("none of {} was measured for 6 hours without a gap", counted(pods, "pod")))
}

/// How many pods could be judged; of those that could not, some share a GPU.
fn judged(pods: usize, short: usize, shared: usize) -> String {
    if short == 0 {
        return match pods {
            1 => "the one pod with GPUs was measured long enough".to_owned(),
            _ => format!("all {} with GPUs were measured long enough", counted(pods, "pod")),
        };
    }
    let mut why = Vec::new();
    if short > shared {
        let were = plural(short - shared, "was", "were");
        why.push(format!("{were} not measured for 6 hours without a gap"));
    }
    if shared > 0 {
        let share = plural(shared, "shares", "share");
        why.push(format!("{share} GPUs, and which pod used them is unknown"));
    }
    let pods = counted(pods, "pod");
    format!("of {pods} with GPUs, {}; these are omitted", why.join(", "))
}

/// The longest time without a gap of which the level is known.
fn longest_known_ms(levels: &[BusyLevel]) -> u64 {
    let (mut longest_ms, mut since_ms, mut end_ms) = (0, None, 0);
    for BusyLevel { span, micro_percent } in levels {
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

//! What runs cost, with the attempts that failed.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use dovetail_account::cost::CostSum;
use dovetail_console::plain::plain;
use dovetail_console::table::{counted, plural};
use dovetail_model::Money;
use dovetail_phases::runs::{Run, RunAmount, RunAttempt, RunPod, runs};

use super::answer::{AnswerCell, AnswerRow, CostAnswer};
use super::asked::QuestionInput;
use super::attempts::RunPods;
use super::by_charge::{gpu_hours, micros, no_training};
use super::name::QuestionName;
use crate::dimension::UNKNOWN;
use crate::statement::NodeCharges;

/// So many runs are named, and of each so many attempts that failed.
const MOST_NAMED: usize = 20;
const MOST_LOST: usize = 20;

/// Cost per run, failed attempts named.
pub fn answer(asked: &QuestionInput) -> CostAnswer {
    let known = &asked.run_pods;
    let all = runs(&known.pods);
    let mut held: Vec<&Run> = all.iter().filter(|run| run.total.gpu_milli_ms > 0).collect();
    held.sort_by_key(|run| {
        (Reverse((run.total.cost(), run.total.gpu_milli_ms)), &run.namespace, &run.name)
    });
    let mut rows: Vec<AnswerRow> =
        held.iter().take(MOST_NAMED).map(|run| row(known, run)).collect();
    if !held.is_empty() {
        rows.push(total(&held));
    }
    CostAnswer {
        name: QuestionName::Runs.text(),
        question: QuestionName::Runs.words(),
        how: how(asked),
        uncertainty: uncertainty(known, &held),
        unknown_because: (held.is_empty() && known.left_out > 0).then(|| {
            format!(
                "it is unknown how long {} whole GPUs: add --prometheus URL",
                plural(known.left_out, "training pod has used", "training pods have used")
            )
        }),
        none_because: (held.is_empty() && known.left_out == 0).then(|| no_training(asked)),
        rows,
    }
}

/// What all runs with GPUs cost by charges, where their costs are those of the bill.
pub fn cost(asked: &QuestionInput, charges: &NodeCharges) -> Option<Money> {
    let known = &asked.run_pods;
    if !known.is_of_bill {
        return None;
    }
    let all = runs(&known.pods);
    let held = all.iter().filter(|run| run.total.gpu_milli_ms > 0);
    let pods = held.flat_map(|run| &run.attempts).flat_map(|attempt| &attempt.pods);
    let pods = pods.filter_map(|place| known.pods.get(*place));
    let pods: BTreeSet<(&str, &str)> = pods.map(|pod| (&*pod.namespace, &*pod.name)).collect();
    let mut sum = CostSum::default();
    for (_, charge) in charges {
        let pod = charge.holder.and_then(|pod| asked.account.pods.get(pod as usize));
        if pod.is_some_and(|pod| pods.contains(&(&*pod.namespace, &*pod.name))) {
            sum.add(charge);
        }
    }
    sum.cost()
}

fn how(asked: &QuestionInput) -> String {
    let costs = match asked.run_pods.is_of_bill {
        true => "costs are from the bill, with CPU and memory where the bill has them",
        false => {
            "a pod counts from its scheduling until it finished or until this snapshot, at the \
             price of the node's GPUs; this is not a run rate"
        }
    };
    format!(
        "dovetail groups attempts into a run by the first of these that they have: the label \
         dovetail.dev/run, the owner, the experiment label of the settings, the namespace with the \
         owner's name without its generated suffix. Attempts that are grouped by name belong to \
         one run if each starts within 24 hours after the previous one finished; {costs}; {}",
        asked.training.definition()
    )
}

fn uncertainty(known: &RunPods, held: &[&Run]) -> String {
    let inferred = held.iter().filter(|run| run.join.is_inferred()).count();
    let of_unknown = held.iter().flat_map(|run| &run.attempts);
    let of_unknown = of_unknown.filter(|attempt| attempt.end.name() == "unknown").count();
    let mut told = vec!["a container restart within its pod is not an attempt".to_owned()];
    if inferred > 0 {
        told.push(format!("{inferred} of {} identified by inference", counted(held.len(), "run")));
    }
    if of_unknown > 0 {
        told.push(format!("how {} ended is unknown", counted(of_unknown, "attempt")));
    }
    if !known.is_of_bill {
        told.push("deleted pods are missing: add --prometheus URL to include them".to_owned());
    }
    if known.left_out > 0 && !held.is_empty() {
        let left_out = plural(known.left_out, "pod is omitted", "pods are omitted");
        told.push(format!("{left_out}: whole GPUs and start are unknown"));
    }
    let more = held.len().saturating_sub(MOST_NAMED);
    if more > 0 {
        told.push(format!("{} only in the total", plural(more, "more run is", "more runs are")));
    }
    told.join("; ")
}

fn row(known: &RunPods, run: &Run) -> AnswerRow {
    let first = run.attempts.first().and_then(|attempt| attempt.pods.first());
    let team = first.and_then(|place| known.teams.get(*place)?.as_deref());
    let path = plain(&format!("{}/{}", run.namespace, run.name));
    let mut cells = vec![
        ("run", AnswerCell::Text(path)),
        ("team", AnswerCell::Text(plain(team.unwrap_or(UNKNOWN)))),
        ("attempts", AnswerCell::Count(run.attempts.len() as u64)),
    ];
    cells.extend(amounts(&run.total, &run.lost));
    let failed = lost(&known.pods, run);
    cells.push(("failed_attempts", AnswerCell::Count(failed.len() as u64)));
    cells.push(("joined_by", AnswerCell::Text(run.join.name().to_owned())));
    cells.push(("failed", AnswerCell::List(failed.into_iter().take(MOST_LOST).collect())));
    AnswerRow(cells)
}

fn amounts(total: &RunAmount, lost: &RunAmount) -> [(&'static str, AnswerCell); 4] {
    [
        ("gpu_hours", gpu_hours(total.gpu_milli_ms)),
        ("cost_usd_micros", micros(total.cost())),
        ("failed_gpu_hours", gpu_hours(lost.gpu_milli_ms)),
        // Of a run without a price nobody knows what its failures cost.
        ("failed_usd_micros", micros(total.cost().and(lost.cost()))),
    ]
}

fn total(held: &[&Run]) -> AnswerRow {
    let (mut all, mut lost) = (RunAmount::default(), RunAmount::default());
    let (mut attempts, mut failed) = (0, 0);
    for run in held {
        failed += run.attempts.iter().map(lost_of).sum::<usize>();
        all += run.total;
        lost += run.lost;
        attempts += run.attempts.len() as u64;
    }
    let mut cells = vec![
        ("run", AnswerCell::Text("total".to_owned())),
        ("team", AnswerCell::Text(String::new())),
        ("attempts", AnswerCell::Count(attempts)),
    ];
    cells.extend(amounts(&all, &lost));
    cells.push(("failed_attempts", AnswerCell::Count(failed as u64)));
    cells.push(("joined_by", AnswerCell::Text(String::new())));
    cells.push(("failed", AnswerCell::List(Vec::new())));
    AnswerRow(cells)
}

/// How much of an attempt is told as failed.
fn lost_of(attempt: &RunAttempt) -> usize {
    if attempt.end.is_lost() { 1 } else { attempt.failed_pods.len() }
}

/// Attempts that failed or were replaced, and pods that failed alone; dearest first.
fn lost(pods: &[RunPod], run: &Run) -> Vec<AnswerRow> {
    let mut found: Vec<(RunAmount, String, &'static str)> = Vec::new();
    for (number, attempt) in run.attempts.iter().enumerate() {
        if attempt.end.is_lost() {
            found.push((attempt.total, name_of(pods, attempt, number), attempt.end.name()));
            continue;
        }
        found.extend(attempt.failed_pods.iter().filter_map(|place| {
            let pod = pods.get(*place)?;
            Some((RunAmount::of([pod]), plain(&pod.name), "failed alone"))
        }));
    }
    found.sort_by(|(one, a, _), (other, b, _)| {
        let key = |amount: &RunAmount| Reverse((amount.cost(), amount.gpu_milli_ms));
        key(one).cmp(&key(other)).then_with(|| a.cmp(b))
    });
    let row = |(amount, name, ended): (RunAmount, String, &'static str)| {
        AnswerRow(vec![
            ("attempt", AnswerCell::Text(name)),
            ("ended", AnswerCell::Text(ended.to_owned())),
            ("gpu_hours", gpu_hours(amount.gpu_milli_ms)),
            ("cost_usd_micros", micros(amount.cost())),
        ])
    };
    found.into_iter().map(row).collect()
}

/// An attempt by its number and owner; one pod by its own name.
fn name_of(pods: &[RunPod], attempt: &RunAttempt, number: usize) -> String {
    let name = match attempt.pods.as_slice() {
        [one] => pods.get(*one).map_or("", |pod| &pod.name),
        _ => &attempt.owner.name,
    };
    format!("attempt {} ({})", number + 1, plain(name))
}

//! How long teams wait for the first and for the last member of what they start, and what stood
//! free meanwhile.

use std::collections::BTreeMap;

use dovetail_account::device_time::Span;
use dovetail_console::plain::plain;
use dovetail_console::table::plural;
use dovetail_phases::queue_wait::{Start, common_ms, spread, starts, union};

use super::answer::{AnswerCell, AnswerRow, CostAnswer};
use super::asked::QuestionInput;
use super::name::QuestionName;
use super::waits::{FreeTime, QueuedPods};
use crate::dimension::UNKNOWN;

/// Waits by team.
pub fn answer(asked: &QuestionInput) -> CostAnswer {
    let waits = &asked.waits;
    let all = starts(&waits.pods);
    let mut by_team: BTreeMap<&str, Vec<&Start>> = BTreeMap::new();
    for start in &all {
        let team = start.pods.first().and_then(|place| waits.teams.get(*place)?.as_deref());
        by_team.entry(team.unwrap_or(UNKNOWN)).or_default().push(start);
    }
    let mut rows: Vec<AnswerRow> =
        by_team.iter().map(|(team, starts)| row(waits, &plain(team), starts)).collect();
    if !all.is_empty() {
        rows.push(row(waits, "total", &all.iter().collect::<Vec<_>>()));
    }
    let meanwhile = match waits.free {
        FreeTime::Now(_) => {
            "free GPUs by cause are shown for jobs that are pending now; what was free while earlier jobs waited is \
             unknown"
        }
        FreeTime::Over(_) => {
            "free GPUs meanwhile are the mean over the time in which any start of the team waited, of all \
             models; why they were free is unknown: --from without --prometheus shows it for now"
        }
    };
    let left_out = match waits.left_out {
        0 => String::new(),
        some => format!(
            "; {} omitted: creation or scheduling time unknown",
            plural(some, "pod is", "pods are")
        ),
    };
    CostAnswer {
        name: QuestionName::Wait.text(),
        question: QuestionName::Wait.words(),
        how: "pods of one owner created within a minute of each other start together; they wait \
              from the creation of their Job, or of the first pod, until the first and the last \
              pod got a node; half, or nine in ten, of the starts waited at most this long \
              (nearest rank); this is not a run rate"
            .to_owned(),
        uncertainty: format!(
            "starts that are still waiting are counted separately and in no percentile, so true waits are longer; \
             time before an object was created is unknown{left_out}; {meanwhile}"
        ),
        unknown_because: match waits.free {
            FreeTime::Now(_) if waits.left_out > 0 => Some(
                "creation and scheduling times of pods with GPUs are unknown: add --prometheus URL".to_owned(),
            ),
            FreeTime::Now(_) => None,
            FreeTime::Over(_) => Some(
                "kube-state-metrics has no pods with GPUs that were created in this period (kube_pod_created, \
                 kube_pod_status_scheduled_time, kube_pod_container_resource_requests)"
                    .to_owned(),
            ),
        }
        .filter(|_| all.is_empty()),
        none_because: (all.is_empty()
            && waits.left_out == 0
            && matches!(waits.free, FreeTime::Now(_)))
            .then(|| "no existing pod requested GPUs".to_owned()),
        rows,
    }
}

fn row(waits: &QueuedPods, team: &str, starts: &[&Start]) -> AnswerRow {
    let first = spread(starts.iter().filter_map(|start| start.first_wait_ms()).collect());
    let last = spread(starts.iter().filter_map(|start| start.last_wait_ms()).collect());
    let still = starts.iter().filter(|start| start.last_ms.is_none()).count();
    let seconds = |ms: Option<u64>| AnswerCell::Seconds(ms.map(|ms| ms as f64 / 1e3));
    let (free, by_cause) = meanwhile(waits, starts);
    AnswerRow(vec![
        ("team", AnswerCell::Text(team.to_owned())),
        ("starts", AnswerCell::Count(starts.len() as u64)),
        ("still_waiting", AnswerCell::Count(still as u64)),
        ("first_samples", AnswerCell::Count(first.map_or(0, |spread| spread.samples as u64))),
        ("first_p50_s", seconds(first.map(|spread| spread.p50_ms))),
        ("first_p90_s", seconds(first.map(|spread| spread.p90_ms))),
        ("last_samples", AnswerCell::Count(last.map_or(0, |spread| spread.samples as u64))),
        ("last_p50_s", seconds(last.map(|spread| spread.p50_ms))),
        ("last_p90_s", seconds(last.map(|spread| spread.p90_ms))),
        ("free_gpus_meanwhile", AnswerCell::Hours(free)),
        ("free_meanwhile", AnswerCell::List(by_cause)),
    ])
}

/// GPUs that stood free while any of the starts waited, on average, and by cause; `None` if nobody
/// knows.
fn meanwhile(waits: &QueuedPods, starts: &[&Start]) -> (Option<f64>, Vec<AnswerRow>) {
    let cause = |name: &str, gpus: f64| {
        AnswerRow(vec![
            ("cause", AnswerCell::Text(name.to_owned())),
            ("gpus", AnswerCell::Hours(Some(gpus))),
        ])
    };
    match &waits.free {
        FreeTime::Now(by_cause) => {
            if starts.iter().all(|start| start.last_ms.is_some()) {
                return (None, Vec::new());
            }
            let gpus = |gpu_milli: &i64| *gpu_milli as f64 / 1e3;
            let rows = by_cause.iter().map(|(by, gpu_milli)| cause(by.name(), gpus(gpu_milli)));
            (Some(by_cause.values().map(gpus).sum()), rows.collect())
        }
        FreeTime::Over(free) => {
            let waiting = union(starts.iter().map(|start| start.waiting(waits.now_ms)).collect());
            let length_ms: u64 =
                waiting.iter().map(|Span { from_ms, to_ms }| to_ms - from_ms).sum();
            if length_ms == 0 {
                return (None, Vec::new());
            }
            let time = free.iter().map(|(span, gpu_milli)| {
                i128::from(*gpu_milli) * i128::from(common_ms(*span, &waiting))
            });
            let gpus = time.sum::<i128>() as f64 / 1e3 / length_ms as f64;
            (Some(gpus), vec![cause("unknown", gpus)])
        }
    }
}

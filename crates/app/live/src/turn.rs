//! What `dovetail why` prints of whose turn it is: what is compared with other pending jobs, first
//! to last.

use dovetail_console::table::wrapped;
use dovetail_control::ask::{QueueTurn, QueueTurnTerms, Score, TurnLine};
use dovetail_objects::harmless;
use dovetail_order::Order;
use dovetail_units::amount::{figure, gpus};
use dovetail_units::duration::duration;

/// Line by line, below a heading.
pub(crate) fn text(turn: &TurnLine) -> String {
    let priority = format!("priority {}, highest first", turn.priority);
    let queues = turn.queues.iter().map(queue);
    let mut lines: Vec<String> = match turn.compares_queues_first {
        true => queues.chain([priority]).collect(),
        false => [priority].into_iter().chain(queues).collect(),
    };
    lines.push(match (&turn.score, turn.order) {
        (Some(score), _) => of_score(score),
        (None, Order::ShortestFirst) => "expected run time (median), shortest first".to_owned(),
        (None, _) => "submission time, oldest first".to_owned(),
    });
    let lines: String = lines.iter().map(|line| wrapped(&harmless(line), 2)).collect();
    format!("\nscheduling order ({}), in the order of comparison\n{lines}", turn.order.name())
}

fn queue(turn: &QueueTurn) -> String {
    let QueueTurn { queue, own_jobs, terms } = turn;
    let which =
        if *own_jobs { format!("jobs of queue {queue} itself") } else { format!("queue {queue}") };
    let terms = match terms {
        QueueTurnTerms::DominantShare { share_percent, weight } => {
            format!("dominant share {} % / weight {weight}, smallest first", figure(*share_percent))
        }
        QueueTurnTerms::FairTree {
            below_quota,
            used_cluster_hours,
            entry_cluster_hours,
            weight,
        } => {
            let quota = match (own_jobs, below_quota) {
                (true, _) => "",
                (false, true) => "below its quota (such queues go first), then ",
                (false, false) => "not below a quota, then ",
            };
            format!(
                "{quota}usage ({} + {} for an hour of what it holds) / weight {weight}, in hours of \
                 the whole cluster, smallest first",
                figure(*used_cluster_hours),
                figure(*entry_cluster_hours)
            )
        }
        QueueTurnTerms::Kai {
            above_fair_share,
            above_quota_with_job,
            queue_priority,
            fair_share_percent_with_job,
            fair_share_percent,
        } => {
            let side = |above: &bool| if *above { "above" } else { "within" };
            format!(
                "{} its fair share, {} its quota with the job, queue priority {queue_priority}, {} % \
                 of its fair share with the job, {} % without",
                side(above_fair_share),
                side(above_quota_with_job),
                figure(*fair_share_percent_with_job),
                figure(*fair_share_percent)
            )
        }
    };
    format!("{which}: {terms}")
}

fn of_score(score: &Score) -> String {
    let expected = match score.expected_run_ms {
        None => "unknown".to_owned(),
        Some(ms) if score.is_estimate => format!("{}, its estimate", duration(ms)),
        Some(ms) => format!("{}, learned from jobs that ended", duration(ms)),
    };
    let terms = [
        (score.size_gpu_hours, "for its expected GPU time"),
        (score.run_time_gpu_hours, "for its expected run time"),
        (score.age_gpu_hours, "for the time since its submission"),
    ];
    let terms = terms.iter().filter(|(hours, _)| *hours != 0.0);
    let terms: Vec<String> =
        terms.map(|(hours, why)| format!("{} {why}", figure(*hours))).collect();
    let terms = if terms.is_empty() { String::new() } else { format!(" = {}", terms.join(", ")) };
    let gpus = gpus(score.gpu_milli);
    format!(
        "score {}{terms}, in GPU-hours, lowest first (expected run time: {expected}; {gpus})",
        figure(score.gpu_hours)
    )
}

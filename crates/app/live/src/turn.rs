//! What `dovetail why` prints of whose turn it is: what is compared with other pending jobs, first
//! to last.

use dovetail_console::table::wrapped;
use dovetail_control::ask::{QueueTurn, QueueTurnTerms, Score, TurnLine};
use dovetail_objects::harmless;
use dovetail_order::Order;
use dovetail_units::amount::{figure, gpus};
use dovetail_units::duration::duration;

/// Criterion by criterion, below a heading.
pub(crate) fn text(turn: &TurnLine) -> String {
    let priority = format!("priority {} (highest first)", turn.priority);
    let queues = turn.queues.iter().map(queue);
    let mut criteria: Vec<String> = match turn.compares_queues_first {
        true => queues.chain([priority]).collect(),
        false => [priority].into_iter().chain(queues).collect(),
    };
    criteria.push(match (&turn.score, turn.order) {
        (Some(score), _) => of_score(score),
        (None, Order::ShortestFirst) => "median of the run time (shortest first)".to_owned(),
        (None, _) => "submission time (oldest first)".to_owned(),
    });
    let numbered = criteria.iter().zip(1..);
    let line = |(criterion, number)| wrapped(&harmless(&format!("{number}. {criterion}")), 2);
    let lines: String = numbered.map(line).collect();
    format!("\nscheduling order ({})\n{lines}", turn.order.name())
}

fn queue(turn: &QueueTurn) -> String {
    let QueueTurn { queue, own_jobs, terms } = turn;
    let which =
        if *own_jobs { format!("jobs of queue {queue} itself") } else { format!("queue {queue}") };
    let terms = match terms {
        QueueTurnTerms::DominantShare { share_percent, weight } => {
            format!("dominant share {}% / weight {weight} (smallest first)", figure(*share_percent))
        }
        QueueTurnTerms::FairTree {
            below_quota,
            used_cluster_hours,
            entry_cluster_hours,
            weight,
        } => {
            let quota = match (own_jobs, below_quota) {
                (true, _) => "",
                (false, true) => "below its quota (such queues first), then ",
                (false, false) => "not below its quota, then ",
            };
            format!(
                "{quota}usage {} + {} for its running jobs, in cluster-hours / weight {weight} \
                 (smallest first)",
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
                "{} its fair share; {} its quota with the job; queue priority {queue_priority}; \
                 {}% of its fair share with the job, {}% without it",
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
        Some(ms) if score.is_estimate => format!("{}, declared", duration(ms)),
        Some(ms) => format!("{}, estimated without a declared run time", duration(ms)),
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
        "score {} GPU-hours{terms} (lowest first); remaining run time: {expected}; {gpus}",
        figure(score.gpu_hours)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(order: Order, terms: QueueTurnTerms, score: Score) -> TurnLine {
        let queue = QueueTurn { queue: "vision".to_owned(), own_jobs: false, terms };
        let (priority, queues, score) = (3, vec![queue], Some(score));
        TurnLine { order, priority, compares_queues_first: true, queues, score }
    }

    #[test]
    fn criteria_are_numbered_in_the_order_of_comparison() {
        let score = Score {
            gpu_hours: -1.84,
            size_gpu_hours: 0.16,
            run_time_gpu_hours: 0.0,
            age_gpu_hours: -2.0,
            expected_run_ms: Some(7_200_000),
            is_estimate: true,
            gpu_milli: 8_000,
        };
        let fair = QueueTurnTerms::FairTree {
            below_quota: false,
            used_cluster_hours: 0.25,
            entry_cluster_hours: 0.5,
            weight: 2,
        };
        let told = text(&line(Order::Dovetail, fair, score.clone()));
        let flat = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            flat,
            "scheduling order (dovetail) 1. queue vision: not below its quota, then usage 0.25 + \
             0.50 for its running jobs, in cluster-hours / weight 2 (smallest first) 2. priority 3 \
             (highest first) 3. score -1.84 GPU-hours = 0.16 for its expected GPU time, -2.00 for \
             the time since its submission (lowest first); remaining run time: 2 h, declared; 8 \
             GPUs"
        );
        let kai = QueueTurnTerms::Kai {
            above_fair_share: false,
            above_quota_with_job: true,
            queue_priority: 7,
            fair_share_percent_with_job: 150.0,
            fair_share_percent: 50.0,
        };
        let unknown = Score { expected_run_ms: None, ..score };
        let told = text(&line(Order::Dovetail, kai, unknown));
        let flat = told.split_whitespace().collect::<Vec<_>>().join(" ");
        for expected in [
            "1. queue vision: within its fair share; above its quota with the job; queue priority \
             7; 150.0% of its fair share with the job, 50.0% without it",
            "remaining run time: unknown; 8 GPUs",
        ] {
            assert!(flat.contains(expected), "{flat}");
        }
    }
}

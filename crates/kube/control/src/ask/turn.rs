//! What decides how soon it is the turn of a pending job, in the units that people read.

use dovetail_cluster::queues::shown_name;
use dovetail_model::JobId;
use dovetail_order::Order;
use dovetail_order::queues::quota::UsageScope;
use dovetail_order::turn_terms::{LevelTerms, QueueTerms, StandingTerms, TurnTerms};
use serde::Serialize;

use crate::schedule::Scheduler;

const HOUR_MS: f64 = 3.6e6;

/// Parts of a billion of a second of the whole cluster in an hour of it.
const CLUSTER_HOUR: f64 = 3.6e12;

/// What is compared with other pending jobs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TurnLine {
    pub order: Order,
    /// The highest goes first.
    pub priority: i32,
    /// Whether queues are compared before priorities.
    pub compares_queues_first: bool,
    /// Its queue and those above, the uppermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueTurn>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
}

/// What is compared between queues with the same parent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueTurn {
    pub queue: String,
    /// Whether the queue's own jobs are compared with the queues below it.
    pub own_jobs: bool,
    #[serde(flatten)]
    pub terms: QueueTurnTerms,
}

/// The terms, in the order in which they are compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum QueueTurnTerms {
    /// The smallest share for the weight goes first.
    DominantShare { share_percent: f64, weight: u32 },
    /// Queues below their quota go first, then the smallest usage for the weight.
    FairTree { below_quota: bool, used_cluster_hours: f64, entry_cluster_hours: f64, weight: u32 },
    /// Queues within their fair share, then those within their quota with the job, then those of
    /// higher priority, then those with the smallest part of their fair share.
    Kai {
        above_fair_share: bool,
        above_quota_with_job: bool,
        queue_priority: i32,
        fair_share_percent_with_job: f64,
        fair_share_percent: f64,
    },
}

/// The score of order `dovetail`, in GPU-hours: the lowest goes first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// The sum of the terms.
    pub gpu_hours: f64,
    /// For the GPU time that it is expected to take until it ends.
    pub size_gpu_hours: f64,
    /// For its expected run time, whatever its GPUs.
    pub run_time_gpu_hours: f64,
    /// For the time since its submission; never above zero.
    pub age_gpu_hours: f64,
    /// The run time that is expected until it ends; `None` if nothing is known.
    pub expected_run_ms: Option<u64>,
    /// Whether that is the estimate of the job, and not what all jobs suggest that ran.
    pub is_estimate: bool,
    pub gpu_milli: i64,
}

/// Of a pending job at this time; `None` if it is not pending.
pub(super) fn turn(job: JobId, now_ms: u64, scheduler: &mut Scheduler) -> Option<TurnLine> {
    let TurnTerms { order, priority, is_by_queue_first, queues, standing } =
        scheduler.ask().turn(job, now_ms)?;
    Some(TurnLine {
        order,
        priority,
        compares_queues_first: is_by_queue_first,
        queues: queues.into_iter().map(of_level).collect(),
        score: standing.map(|standing| score(&standing)),
    })
}

fn of_level(level: LevelTerms) -> QueueTurn {
    let terms = match level.terms {
        QueueTerms::DominantShare(terms) => QueueTurnTerms::DominantShare {
            share_percent: terms.share as f64 / 1e7,
            weight: terms.weight,
        },
        QueueTerms::FairTree(terms) => QueueTurnTerms::FairTree {
            below_quota: terms.is_below_quota,
            used_cluster_hours: terms.used as f64 / CLUSTER_HOUR,
            entry_cluster_hours: terms.entry as f64 / CLUSTER_HOUR,
            weight: terms.weight,
        },
        QueueTerms::Kai(terms) => QueueTurnTerms::Kai {
            above_fair_share: terms.is_over_share,
            above_quota_with_job: terms.is_beyond_quota,
            queue_priority: terms.priority,
            fair_share_percent_with_job: terms.part_with_job as f64 / 1e4,
            fair_share_percent: terms.part as f64 / 1e4,
        },
    };
    let own_jobs = level.scope == UsageScope::Own;
    QueueTurn { queue: shown_name(&level.queue).to_owned(), own_jobs, terms }
}

fn score(terms: &StandingTerms) -> Score {
    let hours = |gpu_ms: u128| gpu_ms as f64 / HOUR_MS;
    let (size, run_time) = (hours(terms.size), hours(terms.run_time));
    // A submission in the future, by a clock that is ahead, is one now.
    let age = -hours(terms.waited.saturating_sub(terms.submitted));
    Score {
        gpu_hours: size + run_time + age,
        size_gpu_hours: size,
        run_time_gpu_hours: run_time,
        age_gpu_hours: age,
        expected_run_ms: terms.expected_ms,
        is_estimate: terms.is_estimated,
        gpu_milli: terms.gpu_milli,
    }
}

//! When pending jobs are expected to start.

use std::collections::BTreeMap;

use dovetail_model::JobId;
use dovetail_plan::Foresight;
use serde::Serialize;

use crate::schedule::{Scheduler, start_corrections};

/// When a pending job is expected to start, if nothing new goes first and no node fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StartLine {
    /// Time from now by which it starts with a chance of one in two; null is unknown.
    pub within_p50_ms: Option<u64>,
    /// Time from now by which it starts with a chance of nine in ten; null is unknown.
    pub within_p90_ms: Option<u64>,
    /// Jobs that leave its nodes before it starts, the last first.
    pub after: Vec<String>,
    /// The narrowest topology domain that has all of these nodes, if any has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<DomainLine>,
    /// The nodes it would then be given.
    pub nodes: Vec<String>,
}

/// A topology domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DomainLine {
    /// Its level, such as `rack`.
    pub level: String,
    /// The value of the level's label.
    pub name: String,
}

/// Of every pending job, by the engine's own forecast, corrected by what came of the forecasts of
/// the leader. The time of the engine is that of the last event.
pub(super) fn starts(now_ms: u64, scheduler: &Scheduler) -> BTreeMap<JobId, StartLine> {
    let Some(engine) = scheduler.engine() else { return BTreeMap::new() };
    let corrections = start_corrections(scheduler);
    let name = |job: JobId| engine.job(job).map(|job| job.name.clone());
    let line = |start: dovetail_plan::ExpectedStart| {
        let within = |ms: Option<u64>| Some(ms?.saturating_sub(now_ms));
        let played_ms = [start.p50_ms, start.p90_ms].map(within);
        let [within_p50_ms, within_p90_ms] = corrections.corrected(played_ms);
        let line = StartLine {
            within_p50_ms,
            within_p90_ms,
            after: start.after.into_iter().filter_map(name).collect(),
            domain: engine
                .list()
                .domain_of(&start.nodes)
                .map(|(level, name)| DomainLine { level: level.to_owned(), name: name.to_owned() }),
            nodes: start.nodes.iter().map(|node| node.to_string()).collect(),
        };
        (start.job, line)
    };
    Foresight { by_name: true, ..Foresight::default() }
        .expected_starts(engine)
        .into_iter()
        .map(line)
        .collect()
}

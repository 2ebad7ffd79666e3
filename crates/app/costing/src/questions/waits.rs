//! Pods as they were asked for and placed, with what stood free meanwhile.

use std::collections::BTreeMap;

use dovetail_account::device_time::{DeviceState, Span, device_intervals};
use dovetail_inventory::facts::Gathered;
use dovetail_metrics::kube_state::{KubeTimes, PodTimes, TimeSeries};
use dovetail_model::FreeCause;
use dovetail_phases::queue_wait::QueuedPod;
use dovetail_sources::prometheus::Asker;

use super::training::may_end;
use crate::from_objects::{Parts, words};
use crate::from_prometheus::{BillInputs, Look, Pods};
use crate::teams::{Labels, Teams};

/// Pods that asked for GPUs.
pub struct QueuedPods {
    pub pods: Vec<QueuedPod>,
    pub teams: Vec<Option<String>>,
    /// Pods of which nobody says when they were made or placed.
    pub left_out: usize,
    pub now_ms: u64,
    pub free: FreeTime,
}

/// What was held by nobody.
pub enum FreeTime {
    /// Now, in milli-GPU by cause.
    Now(BTreeMap<FreeCause, i64>),
    /// Over a period, with how much; causes are not known.
    Over(Vec<(Span, i64)>),
}

/// From objects: pods that are still there.
pub fn of_objects(gathered: &Gathered, parts: &Parts<'_>, teams: &Teams) -> QueuedPods {
    let spaces: BTreeMap<&str, &Labels> =
        gathered.facts.namespaces.iter().map(|space| (&*space.name, &space.labels)).collect();
    let none = Labels::new();
    let now_ms = gathered.facts.now_ms;
    let span = Span { from_ms: now_ms, to_ms: now_ms + 1 };
    let mut now: BTreeMap<FreeCause, i64> = BTreeMap::new();
    for part in parts.iter().flatten() {
        for (state, _) in part.over(span) {
            if let DeviceState::Free(Some(cause)) = state {
                *now.entry(cause).or_default() += part.gpu_milli;
            }
        }
    }
    let mut found = QueuedPods {
        pods: Vec::new(),
        teams: Vec::new(),
        left_out: 0,
        now_ms,
        free: FreeTime::Now(now),
    };
    for life in gathered.lives.iter().chain(&gathered.not_yet_created) {
        let is_placed = life.node.is_some();
        let Some(created_ms) =
            life.created_ms.filter(|_| !is_placed || life.scheduled_ms.is_some())
        else {
            found.left_out += 1;
            continue;
        };
        let is_over = life.has_succeeded.is_some();
        let space = spaces.get(&*life.namespace).copied().unwrap_or(&none);
        found.teams.push(teams.team(&life.namespace, space, &life.labels));
        found.pods.push(QueuedPod {
            owner: format!("{} {}", words(&life.owner), life.owner_uid.as_deref().unwrap_or("")),
            submitted_ms: life.owner_created_ms.filter(|_| may_end(&life.owner.kind)),
            created_ms,
            placed_ms: life.scheduled_ms,
            given_up_ms: (!is_placed && is_over).then(|| life.ended_ms.unwrap_or(now_ms)),
        });
    }
    found
}

/// From kube-state-metrics: pods that were made within the period. Nothing, and a note, where it
/// does not answer.
pub fn over_time(
    asker: &mut Asker,
    look: &Look,
    sources: &BillInputs<'_>,
    notes: &mut Vec<String>,
) -> QueuedPods {
    let Span { from_ms, to_ms } = asker.period;
    let mut times = KubeTimes::default();
    for kind in TimeSeries::ALL {
        match asker.instant(&kind.query(to_ms - from_ms), to_ms.saturating_sub(1)) {
            Ok(series) => times.take(kind, series),
            Err(error) => notes.push(format!("{} could not be read: {error}", kind.series())),
        }
    }
    let mut pods = Pods::new(sources, &look.kube);
    let mut found = QueuedPods {
        pods: Vec::new(),
        teams: Vec::new(),
        left_out: 0,
        now_ms: to_ms,
        free: FreeTime::Over(free_over(look, asker.period)),
    };
    for ((namespace, name), PodTimes { created_ms, placed_ms }) in &times.pods {
        let Some(created_ms) = *created_ms else {
            found.left_out += 1;
            continue;
        };
        if created_ms < from_ms {
            continue;
        }
        let turn = look.kube.last_turn(namespace, name);
        let number = pods.number(namespace, name, turn);
        let owner = look.kube.run_owner(namespace, name, turn);
        let submitted_ms =
            owner.as_ref().filter(|((kind, _), _)| kind == "Job").and_then(|owner| {
                times.jobs_created_ms.get(&(namespace.clone(), owner.0.1.clone())).copied()
            });
        let named = owner.map_or_else(
            || pods.list[number as usize].job.clone(),
            |((kind, name), _)| format!("{kind} {namespace}/{name}"),
        );
        let still_waits = times.waiting.contains(&(namespace.clone(), name.clone()));
        found.teams.push(pods.list[number as usize].team.clone());
        found.pods.push(QueuedPod {
            owner: named,
            submitted_ms,
            created_ms,
            placed_ms: *placed_ms,
            given_up_ms: (placed_ms.is_none() && !still_waits).then_some(to_ms),
        });
    }
    found
}

/// When how much of any device was held by nobody.
fn free_over(look: &Look, period: Span) -> Vec<(Span, i64)> {
    let devices = look.seen.time.devices.iter();
    // The bill was made from the same histories, so none of them is wrong.
    let intervals = devices.filter_map(|device| device_intervals(&device.history, period).ok());
    let free = intervals.flatten().filter(|one| matches!(one.state, DeviceState::Free(_)));
    free.map(|one| (one.span, one.gpu_milli)).collect()
}

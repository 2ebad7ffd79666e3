//! Whether engine and world agree on what is allocated and what is pending.
//!
//! The world reports to the engine what changes, so the two should never differ. Where they do,
//! that is a bug that would show only when a pod is placed wrongly.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{Holding, HoldingId, HoldingPhase, JobId, Owner, PodId, Snapshot};
use dovetail_plan::Engine;

/// Between two comparisons: each copies both worlds.
const EVERY_MS: u64 = 600_000;

/// When engine and world are compared next.
#[derive(Debug, Default)]
pub(super) struct Comparisons {
    due_ms: Option<u64>,
}

impl Comparisons {
    pub(super) fn is_due(&mut self, now_ms: u64) -> bool {
        let due_ms = *self.due_ms.get_or_insert(now_ms.saturating_add(EVERY_MS));
        if now_ms < due_ms {
            return false;
        }
        self.due_ms = Some(now_ms.saturating_add(EVERY_MS));
        true
    }

    pub(super) fn due_ms(&self) -> Option<u64> {
        self.due_ms
    }
}

/// Differences between what the engine knows and what the world says, in words. Pods that go are
/// about to be evicted: the objects may not say so yet.
pub(super) fn differences(
    engine: &Engine,
    world: &Snapshot,
    goes: impl Fn(PodId) -> bool,
) -> Vec<String> {
    let engine = engine.snapshot();
    let mut found = Vec::new();
    let (known, said) = (waiting(&engine), waiting(world));
    let only = |these: &BTreeSet<JobId>, those: &BTreeSet<JobId>| {
        these.difference(those).map(|job| job.0).collect::<Vec<_>>()
    };
    found.extend(
        only(&known, &said)
            .iter()
            .map(|job| format!("job {job} is pending according to the engine")),
    );
    found.extend(
        only(&said, &known)
            .iter()
            .map(|job| format!("job {job} is pending according to the objects")),
    );
    let (known, said) = (held(&engine, &goes), held(world, &goes));
    for owner in known.keys().chain(said.keys()).collect::<BTreeSet<_>>() {
        let (known, said) = (known.get(owner), said.get(owner));
        if known != said {
            let (known, said) = (shown(known), shown(said));
            found.push(format!("{owner} has {said} allocated; the engine has {known}"));
        }
    }
    found
}

fn waiting(snapshot: &Snapshot) -> BTreeSet<JobId> {
    let waits = snapshot.jobs.iter().filter(|job| job.start_ms.is_none());
    waits.map(|job| job.id).collect()
}

/// Holdings of pods by owner, in what the two can agree in; reservations are the engine's own.
fn held(snapshot: &Snapshot, goes: &dyn Fn(PodId) -> bool) -> BTreeMap<String, Holding> {
    let holdings = snapshot.holdings.iter().filter_map(|holding| {
        let owner = match &holding.owner {
            Owner::Pod(pod) => format!("pod {} {} {}", pod.job.0, pod.pod_set, pod.ordinal),
            Owner::Foreign(name) => name.clone(),
            Owner::Reservation => return None,
        };
        let goes = matches!(holding.owner, Owner::Pod(pod) if goes(pod));
        Some((owner, comparable(holding, goes)))
    });
    holdings.collect()
}

/// Without numbers that each gives for itself. Which device it is, the engine decides; when a pod
/// is expected to be gone counts from when its deletion is first seen, and the engine moves ends
/// that have passed. That a pod is bound, the engine may know from the answer, before the watch
/// shows it.
fn comparable(holding: &Holding, goes: bool) -> Holding {
    let mut holding = holding.clone();
    holding.id = HoldingId(0);
    holding.owner = Owner::Reservation;
    holding.reservation = None;
    holding.devices.iter_mut().for_each(|(index, _)| *index = 0);
    holding.resources.extended.retain(|_, amount| *amount != 0);
    if goes || matches!(holding.phase, HoldingPhase::Releasing { .. }) {
        holding.phase = HoldingPhase::Releasing { expected_end_ms: None };
    }
    if matches!(holding.phase, HoldingPhase::Held { .. } | HoldingPhase::Assumed) {
        holding.phase = HoldingPhase::Held { expected_end_ms: None };
    }
    holding
}

fn shown(holding: Option<&Holding>) -> String {
    holding.map_or("nothing".to_owned(), |it| {
        format!("{:?} {:?} on {} ({:?})", it.resources, it.devices, it.node, it.phase)
    })
}

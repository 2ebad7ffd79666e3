//! GPU models of which a queue may not hold more: pods that may have several get another, and count
//! for the one they get.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{Bounds, JobId, Requirement};

use super::books::Books;
use super::charge::is_open;
use crate::gang::Gang;
use dovetail_state::State;

/// Which models a gang may have within the limits of its queues.
#[derive(Debug)]
pub(crate) enum Models {
    /// As it says itself.
    AsAsked,
    /// Fewer: the gang that asks for those alone, at its smallest size.
    Fewer(Gang),
    /// None.
    Nothing,
}

/// Which models a gang may have. Of each it needs room for all of its pods.
pub(crate) fn within_limits(gang: &Gang, job: JobId, books: &mut Books) -> Models {
    match headroom_by_model(job, books) {
        None => Models::AsAsked,
        Some(headroom) => within(gang, &headroom, books),
    }
}

/// The same, where its queues may get so much more.
pub(crate) fn within(gang: &Gang, headroom: &Bounds, books: &mut Books) -> Models {
    let state = &mut books.placement.state;
    let closed = closed(gang, headroom, state);
    if closed.is_empty() {
        return Models::AsAsked;
    }
    let present = present_models(state);
    let fewer = narrowed(gang, state, &present, |model| !closed.contains(model));
    fewer.map_or(Models::Nothing, Models::Fewer)
}

/// The gangs for which victims of a job are searched, at its smallest size: of the models that its
/// queues may hold more of, and of each other model alone. Of that one others may have to leave
/// first that count for the same limit.
pub(crate) fn for_search(job: JobId, books: &mut Books) -> Vec<Gang> {
    let gang = Arc::clone(&books.jobs.records[&job].gang);
    let headroom = headroom_by_model(job, books);
    let state = &mut books.placement.state;
    let closed = headroom.map(|headroom| closed(&gang, &headroom, state)).unwrap_or_default();
    if closed.is_empty() {
        return vec![gang.at_smallest()];
    }
    let present = present_models(state);
    let mut gangs: Vec<Gang> = Vec::new();
    gangs.extend(narrowed(&gang, state, &present, |model| !closed.contains(model)));
    for model in closed.intersection(&present) {
        gangs.extend(narrowed(&gang, state, &present, |other| other == model));
    }
    gangs
}

/// How much more the queues of a job may hold, if they limit GPU models.
fn headroom_by_model(job: JobId, books: &Books) -> Option<Bounds> {
    let queue = &books.jobs.records[&job].job.queue;
    let is_limited = books.quota.way_up(queue).any(|queue| !queue.limit.by_model.is_empty());
    is_limited.then(|| books.quota.headroom(queue, &books.bounded().quota_kept(job)))
}

/// Models of which there is too little left for the pods of a gang that may have several.
fn closed(gang: &Gang, headroom: &Bounds, state: &State) -> BTreeSet<String> {
    let fixed = gang.smallest(state);
    let open = gang.sets.iter().filter(|set| is_open(&state.shapes.get(set.shape).requirement));
    let asks: i64 =
        open.map(|set| state.shapes.get(set.shape).gpu_milli * i64::from(set.min)).sum();
    let is_closed = |(model, left): &(&String, &i64)| {
        let fixed = fixed.by_model.get(*model).copied().unwrap_or(0);
        asks != 0 && left.saturating_sub(fixed) < asks
    };
    let closed = headroom.by_model.iter().filter(is_closed);
    closed.map(|(model, _)| model.clone()).collect()
}

/// The gang at its smallest size with only these of the models that its pods may have; `None` if
/// one of several models has none of them. Pods that name no model may have those that are
/// `present`.
fn narrowed(
    gang: &Gang,
    state: &mut State,
    present: &BTreeSet<String>,
    may_have: impl Fn(&String) -> bool,
) -> Option<Gang> {
    let mut fewer = gang.at_smallest();
    for set in &mut fewer.sets {
        let requirement = Arc::clone(&state.shapes.get(set.shape).requirement);
        if !is_open(&requirement) || state.shapes.get(set.shape).gpu_milli == 0 {
            continue;
        }
        let allowed = match requirement.gpu_models.is_empty() {
            true => present,
            false => &requirement.gpu_models,
        };
        let gpu_models: BTreeSet<String> =
            allowed.iter().filter(|model| may_have(model)).cloned().collect();
        if gpu_models.is_empty() {
            return None;
        }
        let narrowed = Requirement { gpu_models, ..(*requirement).clone() };
        set.shape = state.intern_shape(&Arc::new(narrowed));
    }
    Some(fewer)
}

/// Models of the nodes that are there.
fn present_models(state: &State) -> BTreeSet<String> {
    let mut models: BTreeSet<String> = BTreeSet::new();
    for device in state.nodes.present().filter_map(|(_, node)| node.devices.first()) {
        // Nodes are many, and their models few.
        if !models.contains(&device.model) {
            models.insert(device.model.clone());
        }
    }
    models
}

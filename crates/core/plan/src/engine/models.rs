//! GPU models of which a queue may not hold more: pods that may have several get another, and count
//! for the one they get.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{Bounds, JobId, Requirement};

use super::books::Books;
use super::charge::is_open;
use crate::gang::Gang;

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
    let queue = &books.jobs.records[&job].job.queue;
    if !books.quota.way_up(queue).any(|queue| !queue.limit.by_model.is_empty()) {
        return Models::AsAsked;
    }
    let headroom = books.quota.headroom(queue, &books.bounded().quota_kept(job));
    within(gang, &headroom, books)
}

/// The same, where its queues may get so much more.
pub(crate) fn within(gang: &Gang, headroom: &Bounds, books: &mut Books) -> Models {
    let fixed = gang.smallest(&books.placement.state);
    let state = &mut books.placement.state;
    let asks: i64 = gang
        .sets
        .iter()
        .filter(|set| is_open(&state.shapes.get(set.shape).requirement))
        .map(|set| state.shapes.get(set.shape).gpu_milli * i64::from(set.min))
        .sum();
    let left_of = |(model, left): &(&String, &i64)| {
        let fixed = fixed.by_model.get(*model).copied().unwrap_or(0);
        left.saturating_sub(fixed)
    };
    let closed = headroom.by_model.iter().filter(|of| left_of(of) < asks);
    let closed: BTreeSet<String> = closed.map(|(model, _)| model.clone()).collect();
    if asks == 0 || closed.is_empty() {
        return Models::AsAsked;
    }
    let nodes = state.nodes.present();
    let present: BTreeSet<String> =
        nodes.filter_map(|(_, node)| Some(node.devices.first()?.model.clone())).collect();
    let mut fewer = gang.at_smallest();
    for set in &mut fewer.sets {
        let requirement = Arc::clone(&state.shapes.get(set.shape).requirement);
        if !is_open(&requirement) || state.shapes.get(set.shape).gpu_milli == 0 {
            continue;
        }
        let allowed = match requirement.gpu_models.is_empty() {
            true => &present,
            false => &requirement.gpu_models,
        };
        let gpu_models: BTreeSet<String> = allowed.difference(&closed).cloned().collect();
        if gpu_models.is_empty() {
            return Models::Nothing;
        }
        let narrowed = Requirement { gpu_models, ..(*requirement).clone() };
        set.shape = state.intern_shape(&Arc::new(narrowed));
    }
    Models::Fewer(fewer)
}

//! What the engine starts in a made-up world: checks try on it what they would advise.

use std::collections::BTreeMap;

use dovetail_model::{Action, JobId, Snapshot};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Batch, Engine};

/// Jobs of one pod that the engine starts in a world, with their nodes.
pub(super) fn placed(world: &Snapshot) -> BTreeMap<JobId, String> {
    binds(world).into_iter().collect()
}

/// Pods that the engine starts in a world: their jobs and nodes.
pub(super) fn binds(world: &Snapshot) -> Vec<(JobId, String)> {
    // A world that the engine does not take has no room that anybody knows of.
    let Ok(mut engine) = Engine::new(EngineConfig::default(), world) else {
        return Vec::new();
    };
    // A world without anything new is one that it takes.
    let plan = engine.step(Batch::decision(), 0).unwrap_or_default();
    let bound = plan.actions.into_iter().filter_map(|action| match action {
        Action::Bind { pod, node, .. } => Some((pod.job, node.to_string())),
        _ => None,
    });
    bound.collect()
}

//! Whether a replacement would find room if it need not be near the others of its gang.

use std::sync::Arc;

use dovetail_model::{Job, Requirement};

use super::near::domain;

/// A job without the conditions that keep its pods near others of their gang; `None` if it has
/// none.
pub(crate) fn away_from_its_gang(job: &Job) -> Option<Job> {
    let mut away = job.clone();
    for set in &mut away.pod_sets {
        let mut requirement = Requirement::clone(&set.requirement);
        requirement.node_conditions.retain(|condition| domain(condition).is_none());
        set.requirement = Arc::new(requirement);
    }
    (away != *job).then_some(away)
}

//! What is reserved from one time to another.

use dovetail_cluster::reservations;
use dovetail_model::JobId;
use serde::Serialize;

use crate::schedule::Scheduler;

/// A reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReservationLine {
    pub name: String,
    /// Whose jobs may use it; neither a queue nor a job is nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    pub pods: u32,
    /// Of these, for how many there is room.
    pub reserved_pods: u64,
    /// As written.
    pub from: String,
    pub to: String,
    /// `Admitted`, `Refused`, `Active` or `Ended`; empty before anything was decided.
    pub phase: String,
    /// Why, for people.
    pub message: String,
    /// Of one that was refused, the earliest start with room, if one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earliest: Option<String>,
    pub nodes: Vec<String>,
}

/// The reservations that there are, by name. What the scheduler wrote of one holds; else it is as
/// it would be decided now.
pub(super) fn lines(scheduler: &mut Scheduler) -> Vec<ReservationLine> {
    let decided = scheduler.ask().reservation_statuses();
    let world = scheduler.world();
    let line = |object: &dovetail_objects::Reservation| {
        let would = decided.iter().find(|(name, _)| *name == *object.meta.name);
        let status = match reservations::phase(object) {
            "" => would.map(|(_, status)| status.clone()).unwrap_or_default(),
            _ => object.status.clone(),
        };
        let text = |field: &str| status[field].as_str().map(str::to_owned);
        let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        let nodes = status["nodes"].as_array().into_iter().flatten();
        ReservationLine {
            name: object.meta.name.to_string(),
            queue: named(&object.queue),
            job: named(&object.job),
            pods: object.count,
            reserved_pods: status["pods"].as_u64().unwrap_or(0),
            from: object.from.to_string(),
            to: object.to.to_string(),
            phase: text("phase").unwrap_or_default(),
            message: text("message").unwrap_or_default(),
            earliest: text("earliestTime"),
            nodes: nodes.filter_map(|node| node.as_str().map(str::to_owned)).collect(),
        }
    };
    world.queues().reservations().all().map(|(object, _)| line(object)).collect()
}

/// Reservations that a job may use, or will.
pub(super) fn of_job(job: JobId, scheduler: &mut Scheduler) -> Vec<ReservationLine> {
    let job = scheduler.engine().and_then(|engine| engine.job(job));
    let Some(job) = job.cloned() else { return Vec::new() };
    let shown = dovetail_cluster::queues::shown_name(&job.queue).to_owned();
    let is_for = |line: &ReservationLine| {
        let of_job = line.job.as_ref().is_some_and(|of| job.name.ends_with(of.as_str()));
        of_job || line.queue.as_ref() == Some(&shown)
    };
    let mut lines = lines(scheduler);
    lines.retain(|line| ["Admitted", "Active"].contains(&&*line.phase) && is_for(line));
    lines
}

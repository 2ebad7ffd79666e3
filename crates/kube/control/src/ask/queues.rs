//! What each queue is given and holds.

use std::collections::BTreeMap;

use dovetail_cluster::queues::{self, amounts, engine_name};
use dovetail_cluster::world::MissingQueue;
use dovetail_model::QueueUsage;
use dovetail_objects as object;
use serde::Serialize;

use super::line::InLine;
use crate::schedule::Scheduler;

/// A queue.
#[derive(Clone, Debug, Serialize)]
pub struct QueueLine {
    pub name: String,
    /// Whether it is there; else pods that run name it.
    pub exists: bool,
    /// The queue above it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Null, as the next three, of a queue that is not there: what it was given is not known here.
    pub weight: Option<u32>,
    /// Whether it may hold more than it is guaranteed.
    pub borrows: Option<bool>,
    /// What it and all below it are guaranteed, by resource.
    pub guaranteed: Option<BTreeMap<String, String>>,
    /// What they never hold more of.
    pub limit: Option<BTreeMap<String, String>>,
    /// The GPUs of which they never hold more, by model.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limit_by_model: BTreeMap<String, String>,
    /// What they hold.
    pub used: BTreeMap<String, String>,
    /// What of that is beyond what they are guaranteed.
    pub borrowed: Option<BTreeMap<String, String>>,
    /// What they have used beyond it while others wanted it, older use counting less: hours of the
    /// whole cluster. Only where the order counts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_cluster_hours: Option<f64>,
    /// The greatest part that this is of anything the cluster has, in percent.
    pub share_percent: f64,
    /// The same in parts of a billion.
    #[serde(skip)]
    pub share: u64,
    /// GPUs that they hold, in thousandths.
    pub gpu_milli: i64,
    /// Jobs that wait in the queue itself.
    pub waiting_jobs: usize,
    /// Why it takes no pods, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The queues that there are as objects, and those that pods run in without an object, by name.
pub(super) fn lines(waiting: &[InLine], scheduler: &mut Scheduler) -> Vec<QueueLine> {
    let rules = scheduler.world().rules().clone();
    let objects: Vec<(object::Queue, Option<String>)> = scheduler
        .world()
        .queues()
        .all()
        .map(|(queue, problem)| (queue.clone(), problem.map(ToString::to_string)))
        .collect();
    let used = scheduler.ask().queue_usage();
    let hours = |name: &str| {
        let used = used.as_ref()?;
        let of = |one: &&QueueUsage| !one.is_own && one.queue == engine_name(name);
        Some(used.iter().find(of).map_or(0.0, |one| one.used as f64 / 3.6e12))
    };
    let line = |(object, problem): (object::Queue, Option<String>)| {
        let name = object.meta.name.to_string();
        let usage = scheduler.ask().queue_use(&name)?;
        Some(QueueLine {
            exists: true,
            parent: Some(object.parent.to_string()).filter(|parent| !parent.is_empty()),
            weight: Some(object.weight),
            borrows: Some(object.borrows.unwrap_or(rules.queues_borrow)),
            guaranteed: Some(amounts::as_written(&object.guaranteed)),
            limit: Some(amounts::as_written(&object.limit)),
            limit_by_model: amounts::as_written(&object.limit_by_model),
            used: amounts::held(&usage.used, &rules),
            borrowed: Some(queues::borrowed(&object, &usage.used, &rules)),
            used_cluster_hours: hours(&name),
            share_percent: usage.share as f64 / 10_000_000.0,
            share: usage.share,
            gpu_milli: usage.used.gpu_milli,
            waiting_jobs: waiting.iter().filter(|job| job.queue == name).count(),
            problem,
            name,
        })
    };
    let mut lines: Vec<QueueLine> = objects.into_iter().filter_map(line).collect();
    let deleted = scheduler.world().queues().missing();
    lines.extend(missing(deleted, scheduler));
    lines.sort_by(|one, other| one.name.cmp(&other.name));
    lines
}

/// The queues that pods run in and that are not there.
fn missing(missing: Vec<MissingQueue>, scheduler: &mut Scheduler) -> Vec<QueueLine> {
    let rules = scheduler.world().rules().clone();
    let line = |queue: MissingQueue| {
        let usage = scheduler.ask().queue_use(&queue.name)?;
        Some(QueueLine {
            exists: false,
            parent: None,
            weight: None,
            borrows: None,
            guaranteed: None,
            limit: None,
            limit_by_model: BTreeMap::new(),
            used: amounts::held(&usage.used, &rules),
            borrowed: None,
            used_cluster_hours: None,
            share_percent: usage.share as f64 / 10_000_000.0,
            share: usage.share,
            gpu_milli: usage.used.gpu_milli,
            waiting_jobs: 0,
            problem: Some(queue.to_who_asks()),
            name: queue.name,
        })
    };
    missing.into_iter().filter_map(line).collect()
}

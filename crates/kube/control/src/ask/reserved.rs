//! GPUs that are reserved and not in use, and for what.

use std::collections::BTreeMap;

use dovetail_cluster::queues::shown_name;
use dovetail_plan::{Engine, ReservedFor};
use serde::Serialize;

use crate::schedule::Scheduler;

/// GPUs that are reserved for one pending job, or by one Reservation, and that no pod uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReservedLine {
    /// The pending job, if they are reserved for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Name of the object, if it reserves them for a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// The queue of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    pub nodes: Vec<ReservedNode>,
}

/// Reserved GPUs of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReservedNode {
    pub node: String,
    /// In thousandths.
    pub gpu_milli: i64,
    /// Model of its GPUs; null if it does not say.
    pub gpu_model: Option<String>,
    /// What decides the node's price.
    #[serde(skip)]
    pub labels: BTreeMap<String, String>,
    #[serde(skip)]
    pub provider_id: String,
}

/// By job, then by Reservation.
pub(super) fn lines(scheduler: &Scheduler) -> Vec<ReservedLine> {
    let Some(engine) = scheduler.engine() else { return Vec::new() };
    let mut lines: Vec<(ReservedFor<'_>, ReservedLine)> = Vec::new();
    for unused in engine.list().reserved_unused() {
        let node = node(scheduler, &unused.node, unused.gpu_milli);
        match lines.last_mut().filter(|(last, _)| *last == unused.reserved_for) {
            Some((_, line)) => line.nodes.push(node),
            None => lines.push((unused.reserved_for, line(engine, unused.reserved_for, node))),
        }
    }
    lines.into_iter().map(|(_, line)| line).collect()
}

fn line(engine: &Engine, reserved_for: ReservedFor<'_>, node: ReservedNode) -> ReservedLine {
    let mut line = ReservedLine { job: None, reservation: None, queue: None, nodes: vec![node] };
    match reserved_for {
        ReservedFor::Window(name) => line.reservation = Some(name.to_owned()),
        ReservedFor::Job(job) => {
            let job = engine.job(job);
            line.job = job.map(|job| job.name.clone());
            line.queue = job.map(|job| shown_name(&job.queue).to_owned());
        }
    }
    line
}

fn node(scheduler: &Scheduler, name: &str, gpu_milli: i64) -> ReservedNode {
    let nodes = scheduler.world().nodes();
    let (labels, provider_id) = nodes.price_facts(name);
    let model = nodes.gpu_model(name);
    ReservedNode {
        node: name.to_owned(),
        gpu_milli,
        gpu_model: (!model.is_empty()).then(|| model.to_owned()),
        labels,
        provider_id,
    }
}

//! What queues may hold, counted by the judge: no bind brings one beyond it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::ApiServer;
use crate::books::{holders, pods};
use crate::objects::QUEUE;
use crate::scene::QueueSpec;

/// What nobody may know yet: a candidate may be that late, and then goes by what was before.
const LATE_MS: u64 = 60_000;

/// Queues as they are, and since when.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    queues: BTreeMap<String, QueueSpec>,
    /// When a queue or a node changed last.
    changed_ms: Option<u64>,
}

impl Quotas {
    pub(crate) fn set(&mut self, queue: &QueueSpec, now_ms: u64) {
        self.queues.insert(queue.name.clone(), queue.clone());
        self.changed(now_ms);
    }

    /// What counts for queues may be seen late.
    pub(crate) fn changed(&mut self, now_ms: u64) {
        self.changed_ms = Some(now_ms);
    }

    /// A pod was bound: which queue holds more than it may.
    pub(crate) fn broken_by(&self, server: &ApiServer, uid: &str, now_ms: u64) -> Option<String> {
        if self.changed_ms.is_some_and(|changed_ms| now_ms < changed_ms + LATE_MS) {
            return None;
        }
        let pod = pods(server).find(|pod| pod["metadata"]["uid"] == uid)?;
        let short = self.headroom(server, pod, |_| true)?;
        let name = &pod["metadata"]["name"];
        (short < 0).then(|| format!("queues of {name} hold {} GPUs more than they may", -short))
    }

    /// How many GPUs more the queues of a pod may hold, if of those that hold something these
    /// count; `None`: nothing bounds them.
    pub(crate) fn headroom(
        &self,
        server: &ApiServer,
        pod: &Value,
        counts: impl Fn(&Value) -> bool,
    ) -> Option<i64> {
        let left = self.way_up(pod).filter_map(|queue| {
            let limit = queue.limit.unwrap_or(u64::MAX);
            let most = if queue.borrows { limit } else { limit.min(queue.guaranteed) };
            let most = i64::try_from(most).ok().filter(|_| most < u64::MAX)?;
            let held = holders(server).map(|seen| seen.pod).filter(|pod| counts(pod));
            let held = held.filter(|pod| self.way_up(pod).any(|other| other.name == queue.name));
            Some(most - held.map(gpus_of).sum::<i64>())
        });
        left.min()
    }

    /// The queue that a pod names, and those above it.
    fn way_up(&self, pod: &Value) -> impl Iterator<Item = &QueueSpec> {
        let name = pod["metadata"]["labels"][QUEUE].as_str();
        let first = name.and_then(|name| self.queues.get(name));
        std::iter::successors(first, |queue| self.queues.get(queue.parent.as_deref()?))
    }
}

fn gpus_of(pod: &Value) -> i64 {
    let limit = &pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"];
    limit.as_str().and_then(|gpus| gpus.parse().ok()).unwrap_or_default()
}

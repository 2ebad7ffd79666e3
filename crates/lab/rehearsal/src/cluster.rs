//! Controllers, administrators and another scheduler: everybody who writes to the server besides
//! kubelets and the scheduler.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::api::{ApiReply, ApiServer, Call, Query, Route, Verb};
use crate::books::{PodBooks, is_over, pods};
use crate::objects::{
    NAMESPACE, ORDINAL, OWNER, budget, foreign, group, node, node_name, pod, queue,
};
use crate::quotas::Quotas;
use crate::scene::{NodeSpec, QueueSpec, SceneWorkload};

/// Pods of a node that is gone are deleted after this time.
const COLLECTED_AFTER_MS: u64 = 2_000;

/// Writes something directly: the way there is nobody's business.
pub(crate) fn direct(
    server: &mut ApiServer,
    verb: Verb,
    (plural, name, subresource): (&str, &str, &str),
    body: &Value,
) -> Option<ApiReply> {
    let kind = server.kind(plural)?;
    let namespace = kind.namespaced.then(|| NAMESPACE.to_owned());
    let (name, subresource) = (name.to_owned(), subresource.to_owned());
    let call = Call { verb, kind, namespace, name, subresource, query: Query::default() };
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    server.perform(&call, "application/merge-patch+json", &body).ok()
}

/// One request to the server, from its line to its answer.
pub(crate) fn serve(
    server: &mut ApiServer,
    method: &str,
    path: &str,
    media_type: &str,
    body: &[u8],
) -> ApiReply {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let reply = match server.route(method, path, query) {
        Some(Ok(Route::Call(call))) => server.perform(&call, media_type, body),
        Some(Ok(other)) => Ok(server.describe(&other)),
        Some(Err(failure)) => Err(failure),
        None => return ApiReply::text(404, "404 page not found\n"),
    };
    reply.unwrap_or_else(|failure| ApiReply::failure(&failure))
}

/// Deletes a pod; `grace_s` instead of its own time to stop.
pub(crate) fn delete_pod(server: &mut ApiServer, name: &str, grace_s: Option<u64>) {
    let options = grace_s.map_or(json!({}), |grace_s| json!({"gracePeriodSeconds": grace_s}));
    // It may be gone.
    _ = direct(server, Verb::Delete, ("pods", name, ""), &options);
}

/// Owners of pods, and the nodes.
#[derive(Debug, Default)]
pub(crate) struct ClusterControllers {
    owners: BTreeMap<String, SceneWorkload>,
    made: BTreeMap<(String, u64), u64>,
    gone_since_ms: BTreeMap<String, u64>,
    foreign: u64,
    /// Pods of these workloads may not be deleted by the scheduler, with the code that says so.
    pub(crate) refused: BTreeMap<String, u16>,
    pub(crate) quotas: Quotas,
}

impl ClusterControllers {
    pub(crate) fn submit(&mut self, server: &mut ApiServer, workload: &SceneWorkload) {
        if workload.min > 0 && workload.is_native {
            let place = ("podgroups", "", "");
            _ = direct(server, Verb::Create, place, &group(workload));
        }
        if workload.available.is_some() {
            let place = ("poddisruptionbudgets", "", "");
            _ = direct(server, Verb::Create, place, &budget(workload));
        }
        self.owners.insert(workload.name.clone(), workload.clone());
    }

    pub(crate) fn withdraw(&mut self, server: &mut ApiServer, workload: &str) {
        let Some(gone) = self.owners.remove(workload) else { return };
        if gone.min > 0 && gone.is_native {
            _ = direct(server, Verb::Delete, ("podgroups", workload, ""), &Value::Null);
        }
        if gone.available.is_some() {
            let place = ("poddisruptionbudgets", workload, "");
            _ = direct(server, Verb::Delete, place, &Value::Null);
        }
        for name in names_of(server, workload) {
            delete_pod(server, &name, None);
        }
    }

    /// A queue is there, or is given something else.
    pub(crate) fn set_queue(&mut self, server: &mut ApiServer, spec: &QueueSpec, now_ms: u64) {
        if direct(server, Verb::Create, ("queues", "", ""), &queue(spec)).is_none() {
            _ = direct(server, Verb::Patch, ("queues", &spec.name, ""), &queue(spec));
        }
        self.quotas.set(spec, now_ms);
    }

    pub(crate) fn owners(&self) -> impl Iterator<Item = &SceneWorkload> {
        self.owners.values()
    }

    /// Whether a disruption budget counts a pod.
    pub(crate) fn has_budget(&self, pod: &Value) -> bool {
        let owner = pod["metadata"]["labels"][OWNER].as_str();
        let owner = owner.and_then(|owner| self.owners.get(owner));
        owner.is_some_and(|owner| owner.available.is_some())
    }

    /// A user deletes one pod of a workload.
    pub(crate) fn delete_one(&mut self, server: &mut ApiServer, workload: &str, at: u64) {
        let names = names_of(server, workload);
        if !names.is_empty() {
            delete_pod(server, &names[at as usize % names.len()], None);
        }
    }

    pub(crate) fn add_node(&mut self, server: &mut ApiServer, at: usize, spec: NodeSpec) {
        self.gone_since_ms.remove(&node_name(at));
        _ = direct(server, Verb::Create, ("nodes", "", ""), &node(at, spec));
        // A node controller takes it away when the node is ready.
        let ready = json!({"spec": {"taints": null}});
        _ = direct(server, Verb::Patch, ("nodes", &node_name(at), ""), &ready);
    }

    pub(crate) fn remove_node(&mut self, server: &mut ApiServer, at: usize, now_ms: u64) {
        _ = direct(server, Verb::Delete, ("nodes", &node_name(at), ""), &Value::Null);
        self.gone_since_ms.insert(node_name(at), now_ms);
    }

    pub(crate) fn cordon(&mut self, server: &mut ApiServer, at: usize, is_cordoned: bool) {
        let patch = json!({"spec": {"unschedulable": is_cordoned.then_some(true)}});
        _ = direct(server, Verb::Patch, ("nodes", &node_name(at), ""), &patch);
    }

    /// Another scheduler binds a pod of its own, if there is room by what it sees.
    pub(crate) fn bind_foreign(
        &mut self,
        server: &mut ApiServer,
        books: &mut PodBooks,
        gpus: u64,
        at: usize,
    ) {
        let target = node_name(at);
        let free = books.free_on(server, &target, |_| true);
        let left = free.and_then(|free| free.get("nvidia.com/gpu").copied()).unwrap_or_default();
        if left < i64::try_from(gpus).unwrap_or(i64::MAX) {
            return;
        }
        self.foreign += 1;
        let name = format!("foreign-{}", self.foreign);
        _ = direct(server, Verb::Create, ("pods", "", ""), &foreign(&name, gpus));
        let binding =
            json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": target}});
        _ = direct(server, Verb::Create, ("pods", &name, "binding"), &binding);
    }

    /// Owners make what they lack, and pods of nodes that are gone are deleted. When to look again.
    pub(crate) fn look(&mut self, server: &mut ApiServer, now_ms: u64) -> Option<u64> {
        let workloads: Vec<SceneWorkload> = self.owners.values().cloned().collect();
        for workload in &workloads {
            for ordinal in 0..workload.pods {
                self.keep_up(server, workload, ordinal);
            }
            if let Some(available) = workload.available {
                count_disruptions(server, workload, available);
            }
        }
        self.collect(server, now_ms)
    }

    fn keep_up(&mut self, server: &mut ApiServer, workload: &SceneWorkload, ordinal: u64) {
        let mut of_ordinal = Vec::new();
        for pod in pods(server) {
            let labels = &pod["metadata"]["labels"];
            if labels[OWNER] == *workload.name && labels[ORDINAL] == *ordinal.to_string() {
                let is_lost = pod["status"]["phase"] == "Failed"
                    || !is_over(pod) && !pod["metadata"]["deletionTimestamp"].is_null();
                let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                of_ordinal.push((name, is_lost, is_over(pod)));
            }
        }
        if of_ordinal.iter().any(|(_, is_lost, _)| !is_lost) {
            return;
        }
        if workload.keeps_names && !of_ordinal.is_empty() {
            for (name, _, is_over) in of_ordinal {
                if is_over {
                    delete_pod(server, &name, Some(0));
                }
            }
            return;
        }
        let made = self.made.entry((workload.name.clone(), ordinal)).or_default();
        *made += 1;
        let name = match workload.keeps_names {
            true => format!("{}-{ordinal}", workload.name),
            false => format!("{}-{ordinal}-{made}", workload.name),
        };
        _ = direct(server, Verb::Create, ("pods", "", ""), &pod(workload, ordinal, &name));
    }

    fn collect(&mut self, server: &mut ApiServer, now_ms: u64) -> Option<u64> {
        let is_gone = |since_ms: &u64| now_ms >= since_ms + COLLECTED_AFTER_MS;
        let gone = self.gone_since_ms.iter().filter(|(_, since_ms)| is_gone(since_ms));
        let gone: BTreeSet<&str> = gone.map(|(node, _)| node.as_str()).collect();
        let on_gone: Vec<String> = pods(server)
            .filter(|pod| pod["spec"]["nodeName"].as_str().is_some_and(|node| gone.contains(node)))
            .map(|pod| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned())
            .collect();
        on_gone.iter().for_each(|name| delete_pod(server, name, Some(0)));
        let open = self.gone_since_ms.values().filter(|since_ms| !is_gone(since_ms));
        open.map(|since_ms| since_ms + COLLECTED_AFTER_MS).min()
    }
}

/// A budget says how many of its pods may be disrupted, as its controller counts.
fn count_disruptions(server: &mut ApiServer, workload: &SceneWorkload, available: u64) {
    let runs = |pod: &&Value| {
        pod["metadata"]["labels"][OWNER] == *workload.name
            && pod["status"]["phase"] == "Running"
            && pod["metadata"]["deletionTimestamp"].is_null()
    };
    let running = pods(server).filter(runs).count() as u64;
    let allowed = running.saturating_sub(available);
    let Some(kind) = server.kind("poddisruptionbudgets") else { return };
    let is_it = |budget: &&Value| budget["metadata"]["name"] == *workload.name;
    let Some(budget) = server.all(&kind).find(is_it) else { return };
    // The server lets nobody go by a budget that nobody has counted since it changed.
    let counted = json!({"disruptionsAllowed": allowed, "currentHealthy": running,
        "desiredHealthy": available, "observedGeneration": budget["metadata"]["generation"]});
    let said = |(field, value): (&String, &Value)| budget["status"][field] == *value;
    if !counted.as_object().is_some_and(|counted| counted.iter().all(said)) {
        let status = json!({"status": counted});
        let place = ("poddisruptionbudgets", workload.name.as_str(), "status");
        _ = direct(server, Verb::Patch, place, &status);
    }
}

/// Names of the pods of a workload.
fn names_of(server: &ApiServer, workload: &str) -> Vec<String> {
    let is_one = |pod: &&Value| pod["metadata"]["labels"][OWNER] == *workload;
    let names = pods(server).filter(is_one);
    names.map(|pod| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

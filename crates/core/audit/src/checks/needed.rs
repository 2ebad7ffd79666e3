//! Which nodes that could be removed are needed by pods that wait, or come later: a pod that starts
//! on no node that stays, and that has no more GPUs than the node. The taints of that node, its CPU
//! and memory do not count, nor do GPUs that no node offers now, but one has: what other findings
//! mend must not make a removal wrong. A pod that is larger than every node needs none. A pod
//! without GPUs needs each of the nodes that it could run on.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_facts::{Node, Pod, Workload};
use dovetail_model::{Job, JobId};

use super::View;
use super::oversize::fits_no_node;
use super::resource_cluster::RunningPod;
use super::taints::{keeping_away, tolerates};
use crate::example::Example;
use crate::finding::{Evidence, Finding};
use crate::trial::placed;

/// What to do instead of a removal, where no pool removes and adds nodes by itself.
pub(super) const KEEP_FOR_PENDING: &str = "keep the node until the pending pods run or are deleted";

/// Waiting pods that are tried; more need more nodes than there are empty ones.
const MOST_WAITING: usize = 1000;

/// What needs an empty node.
#[derive(Default)]
pub(super) struct Needs {
    /// Pending pods, as `namespace/name`.
    pub(super) pods: BTreeSet<String>,
    /// Workloads without pods, as `Kind namespace/name`.
    pub(super) to_come: BTreeSet<String>,
    /// When the last of these made pods.
    pub(super) last_ms: Option<u64>,
}

/// A node on whose free GPUs a fix of another finding would start pending pods is not removed, and
/// not offered to other work. CAP-06 has left out what these take by SCH-14 and SHR-08: the rest
/// stays.
pub(super) fn keep_given(found: &mut Vec<Finding>) {
    let mut given: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for finding in found.iter() {
        for node in &finding.starts_on {
            given.entry(node.clone()).or_default().push(finding.check.id);
        }
    }
    let of_node = |finding: &Finding| {
        let mut named = finding.affected.iter().map(|object| &object.name);
        named.find_map(|name| given.get_key_value(name))
    };
    found.retain_mut(|finding| match (finding.check.id, of_node(finding)) {
        ("AUT-07", Some(_)) => false,
        ("CAP-06", Some((_, checks))) => {
            checks.iter().all(|check| ["SCH-14", "SHR-08"].contains(check))
        }
        ("AUT-03", Some((node, checks))) => {
            finding.claims.clear();
            finding.stays.insert(node.clone());
            let value = format!("those of {}", checks.last().copied().unwrap_or_default());
            finding.evidence.push(Evidence { what: "pending pods that may need it", value });
            finding.examples = vec![Example::new(KEEP_FOR_PENDING)];
            true
        }
        _ => true,
    });
}

/// A pod without a node.
struct Waiting<'f> {
    workload: &'f Workload,
    pod: &'f Pod,
    gpus: i64,
    /// Whether its workload has yet to make it.
    is_to_come: bool,
    /// When that last made pods, as far as known.
    last_ms: Option<u64>,
}

/// What needs each of these empty nodes, by name.
pub(super) fn needs<'f>(view: &View<'f>, empty: &BTreeSet<&'f str>) -> BTreeMap<&'f str, Needs> {
    let mut needs: BTreeMap<&str, Needs> = BTreeMap::new();
    if empty.is_empty() {
        return needs;
    }
    for (&resource, &most) in &view.most_gpus {
        let mut waiting = waiting(view, resource, most);
        // The largest first: what is left fits anywhere.
        waiting.sort_by_key(|of| Reverse(of.gpus));
        waiting.truncate(MOST_WAITING);
        if !waiting.is_empty() {
            share_out(view, resource, (&waiting[..], empty), &mut needs);
        }
    }
    keep_for_others(view, empty, &mut needs);
    needs
}

/// Pending pods without GPUs need every empty node that they could run on: they are pending, so
/// nothing shows that another node takes them.
fn keep_for_others<'f>(
    view: &View<'f>,
    empty: &BTreeSet<&'f str>,
    needs: &mut BTreeMap<&'f str, Needs>,
) {
    for workload in
        view.facts.workloads.iter().filter(|of| !of.has_gpus() && !of.belongs_to_nodes())
    {
        let pods: Vec<&Pod> = workload.pods.iter().filter(|pod| pod.is_pending()).collect();
        if pods.is_empty() {
            continue;
        }
        let nodes = view.facts.nodes.iter().filter(|node| empty.contains(&*node.node.name));
        for node in nodes.filter(|node| could_run(workload, node)) {
            for pod in &pods {
                let of = Waiting { workload, pod, gpus: 0, is_to_come: false, last_ms: None };
                needs.entry(&*node.node.name).or_default().add(&of);
            }
        }
    }
}

/// Whether a node that is empty could run a pod without GPUs.
fn could_run(workload: &Workload, node: &Node) -> bool {
    let (asked, has) = (&workload.template.requests, &node.node.allocatable);
    workload.accepts_labels(node)
        && keeping_away(node).all(|taint| tolerates(workload, taint))
        && asked.cpu_milli <= has.cpu_milli
        && asked.memory_bytes <= has.memory_bytes
}

fn waiting<'f>(view: &View<'f>, resource: &str, most: i64) -> Vec<Waiting<'f>> {
    let facts = view.facts;
    let there = facts.workloads.iter().map(|workload| (workload, false, None));
    let to_come = facts.to_come.iter().map(|of| (&of.workload, true, of.last_ms));
    let all = there.chain(to_come).filter(|(workload, ..)| !workload.belongs_to_nodes());
    let mut found = Vec::new();
    for (workload, is_to_come, last_ms) in all {
        // Others are broken or in MIG mode.
        let gpus = workload.gpus_per_pod().get(resource).copied().unwrap_or(0).min(most);
        let mut pods = workload.pods.iter().filter(|pod| pod.is_pending()).peekable();
        if gpus > 0 && pods.peek().is_some() && !fits_no_node(view, workload) {
            found.extend(pods.map(|pod| Waiting { workload, pod, gpus, is_to_come, last_ms }));
        }
    }
    found
}

/// Gives pods that start on no node that stays to the empty ones, as few of them as can be.
fn share_out<'f>(
    view: &View<'f>,
    resource: &'f str,
    (waiting, empty): (&[Waiting<'f>], &BTreeSet<&'f str>),
    needs: &mut BTreeMap<&'f str, Needs>,
) {
    let elsewhere = start_elsewhere(view, resource, waiting, empty);
    // In the order in which they came: names decide nothing.
    let nodes = view.facts.nodes.iter().filter(|node| empty.contains(&*node.node.name));
    let mut nodes: Vec<(&'f Node, i64)> =
        nodes.filter_map(|node| Some((node, node.gpus.get(resource)?.allocatable))).collect();
    for (place, of) in waiting.iter().enumerate() {
        if elsewhere.contains(&place) {
            continue;
        }
        let fitting = nodes.iter_mut().filter(|(node, free)| {
            *free >= of.gpus
                && of.workload.can_get(resource, &node.gpus[resource])
                && of.workload.accepts_labels(node)
        });
        // What is needed anyway comes first.
        let is_spared = |node: &Node| !needs.contains_key(&*node.node.name);
        let Some((node, free)) = fitting.min_by_key(|(node, free)| (is_spared(node), *free)) else {
            continue;
        };
        *free -= of.gpus;
        needs.entry(&*node.node.name).or_default().add(of);
    }
}

/// Places of the waiting pods that start on nodes that stay.
fn start_elsewhere(
    view: &View<'_>,
    resource: &str,
    waiting: &[Waiting<'_>],
    empty: &BTreeSet<&str>,
) -> BTreeSet<usize> {
    let cluster = view.cluster(resource);
    let standing = cluster.pod_count();
    // The pods of the empty nodes come first: they are to run on the nodes that stay.
    let mut world = cluster.world(empty);
    for (place, of) in waiting.iter().enumerate() {
        let pod = RunningPod::waiting(of.workload, of.pod, of.gpus);
        let requirement = Arc::new(cluster.requirement(&pod));
        let id = JobId((standing + place) as u64);
        world.jobs.push(Job::single(id, &of.pod.name, 1, requirement));
    }
    let places = placed(&world).into_keys().map(|job| job.0 as usize);
    places.filter_map(|place| place.checked_sub(standing)).collect()
}

impl Needs {
    fn add(&mut self, of: &Waiting<'_>) {
        let owner = &of.workload.owner;
        if of.is_to_come {
            self.last_ms = self.last_ms.max(of.last_ms);
            self.to_come.insert(owner.in_words());
        } else {
            self.pods.insert(format!("{}/{}", owner.namespace, of.pod.name));
        }
    }
}

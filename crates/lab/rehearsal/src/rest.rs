//! What must be true when nothing goes wrong any more and everything has come to rest.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::ApiServer;
use crate::books::{PodBooks, holders, is_over, pods};
use crate::ground::Ground;
use crate::kubelets::Amounts;
use crate::objects::{OWNER, QUEUE, SCHEDULER};
use crate::scene::{Options, SceneWorkload};

/// Pods of one workload at rest.
#[derive(Debug, Default)]
struct SettledPods<'a> {
    placed: u64,
    pending: Vec<&'a Value>,
    /// Succeeded or failed.
    over: u64,
}

/// What is wrong, if anything is.
pub(crate) fn problem(ground: &mut Ground, options: &Options, may_lose: bool) -> Option<String> {
    let Ground { server, cluster, books, .. } = ground;
    let free = free(server, books);
    for workload in cluster.owners() {
        let standing = standing(server, workload);
        let (placed, pending) = (standing.placed, standing.pending.len() as u64);
        let name = &workload.name;
        // What ran and lost a pod by somebody else may go on without it. A pod that succeeded was
        // there with the others.
        if !may_lose && workload.min > 0 && placed > 0 && placed + standing.over < workload.min {
            return Some(format!("gang {name} has {placed} pods of at least {}", workload.min));
        }
        let Some(first) = standing.pending.first() else { continue };
        let asked = books.asked(first).clone();
        let needed = match workload.min.saturating_sub(placed + standing.over) {
            0 => 1,
            short => short,
        };
        if needed > pending {
            continue;
        }
        let wanted = i64::try_from(needed * workload.gpus).unwrap_or(i64::MAX);
        let may_have = |counts: &dyn Fn(&Value) -> bool| {
            let left = cluster.quotas.headroom(server, first, counts);
            left.is_none_or(|left| wanted <= left)
        };
        let room = slots(&free, &asked, needed);
        if room >= needed && may_have(&|_| true) {
            return Some(format!("{needed} pods of {name} fit and wait: {room} find room"));
        }
        if options.preempts {
            let keeps_quotas = options.turns.is_some_and(|turns| turns.protects_guarantees);
            let queue = |pod: &Value| pod["metadata"]["labels"][QUEUE].as_str().map(str::to_owned);
            // What a queue holds within its quota is its own: of other queues none is counted on.
            let is_of_another = |pod: &Value| {
                queue(pod).is_some_and(|queue| workload.queue.as_ref() != Some(&queue))
            };
            let keeps = |pod: &Value| {
                options.respects_budgets && cluster.has_budget(pod)
                    || keeps_quotas && is_of_another(pod)
            };
            let may_go = |pod: &Value| may_go(pod, workload.priority) && !keeps(pod);
            let free = free_without(server, books, &may_go);
            let room = slots(&free, &asked, needed);
            if room >= needed && may_have(&|pod| !may_go(pod)) {
                return Some(format!(
                    "{needed} pods of {name} would fit in place of single pods of lower priority"
                ));
            }
        }
    }
    None
}

fn standing<'a>(server: &'a ApiServer, workload: &SceneWorkload) -> SettledPods<'a> {
    let mut standing = SettledPods::default();
    for pod in pods(server).filter(|pod| pod["metadata"]["labels"][OWNER] == *workload.name) {
        let has_node = pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
        match (is_over(pod), has_node) {
            (true, _) => standing.over += u64::from(pod["status"]["phase"] == "Succeeded"),
            (false, true) => standing.placed += 1,
            (false, false) if pod["metadata"]["deletionTimestamp"].is_null() => {
                standing.pending.push(pod);
            }
            (false, false) => {}
        }
    }
    standing
}

/// What is free, by node.
fn free(server: &ApiServer, books: &mut PodBooks) -> BTreeMap<String, Amounts> {
    let Some(kind) = server.kind("nodes") else { return BTreeMap::new() };
    let names = server.all(&kind).filter(|node| node["spec"]["unschedulable"] != true);
    let names = names.filter_map(|node| node["metadata"]["name"].as_str());
    names
        .filter_map(|name| Some((name.to_owned(), books.free_on(server, name, |_| true)?)))
        .collect()
}

/// Whether a pod is a single one of ours of a lower priority than this.
fn may_go(pod: &Value, priority: i64) -> bool {
    let is_lower = pod["spec"]["priority"].as_i64().is_some_and(|it| it < priority);
    let is_single = pod["metadata"]["labels"]["dovetail.dev/gang"].is_null()
        && pod["spec"]["schedulingGroup"].is_null();
    is_lower && is_single && pod["spec"]["schedulerName"] == SCHEDULER
}

/// What would be free if these pods went.
fn free_without(
    server: &ApiServer,
    books: &mut PodBooks,
    goes: &dyn Fn(&Value) -> bool,
) -> BTreeMap<String, Amounts> {
    let mut free = free(server, books);
    for seen in holders(server).filter(|seen| goes(seen.pod)) {
        let Some(free) = free.get_mut(seen.node) else { continue };
        for (name, amount) in books.asked(seen.pod) {
            *free.entry(name.clone()).or_default() += amount;
        }
    }
    free
}

/// How many pods that ask for the same find room, up to so many.
fn slots(free: &BTreeMap<String, Amounts>, asked: &Amounts, most: u64) -> u64 {
    let on_node = |free: &Amounts| {
        let fit = asked.iter().filter(|(_, amount)| **amount > 0).map(|(name, amount)| {
            let free = free.get(name).copied().unwrap_or_default();
            u64::try_from(free / amount).unwrap_or_default()
        });
        fit.min().unwrap_or(most).min(most)
    };
    free.values().map(on_node).sum()
}

//! What another scheduler does with its pods, beside what dovetail would have done.
//!
//! A dry run decides about the pods of the other scheduler as if they were its own. From its
//! decision until the pod has a node, the GPUs that the decision takes are free in truth: that is
//! GPU-time which stood idle while somebody waited for it. While a pod counts as placed no other
//! decision takes its GPUs, so nothing counts twice; what the other scheduler takes elsewhere is
//! seen on the watch and is free for nobody.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_cluster::world::{Change, PodKey, World};
use dovetail_objects::{Kind, Object, Pod};

use crate::bind::Bind;

/// The comparison so far.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    since_ms: Option<u64>,
    open: BTreeMap<(String, String), Open>,
    compared: Compared,
}

/// Pods by what became of them, and idle GPU-time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// For how long it was compared, in milliseconds.
    pub span_ms: u64,
    /// Pods that got the node which dovetail had decided.
    pub same_node: u64,
    /// Pods that got another node, after dovetail had decided.
    pub other_node: u64,
    /// Pods that got a node before dovetail had decided.
    pub before: u64,
    /// Pods for which dovetail had decided, and which went without a node.
    pub gone: u64,
    /// Pods for which dovetail has decided, and which have no node yet.
    pub open: u64,
    /// Longest time from dovetail's decision to the pod's node, or to now, in milliseconds.
    pub longest_ms: u64,
    /// GPU-time that stood free from dovetail's decision to the pod's node, its end, or now, in
    /// GPU-milliseconds by node.
    pub idle_gpu_ms: BTreeMap<IdleNode, u128>,
}

/// A node with GPUs that stood free, as far as it decides what they cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdleNode {
    /// Model of its GPUs; empty where it is not known.
    pub gpu_model: String,
    pub labels: BTreeMap<String, String>,
    /// Its `spec.providerID`.
    pub provider_id: String,
}

#[derive(Clone, Debug)]
struct Open {
    bind: Arc<Bind>,
    gpus: u128,
    node: IdleNode,
    decided_ms: u64,
}

impl Comparison {
    /// How they compare until now.
    pub fn until(&self, now_ms: u64) -> Compared {
        let mut all = self.clone();
        for (_, open) in std::mem::take(&mut all.open) {
            all.count(&open, now_ms);
            all.compared.open += 1;
        }
        let span_ms = self.since_ms.map_or(0, |since_ms| now_ms.saturating_sub(since_ms));
        Compared { span_ms, ..all.compared }
    }

    /// Dovetail has decided.
    pub fn decided(&mut self, bind: &Arc<Bind>, world: &World, now_ms: u64) {
        let Some(pod) = world.pods().pod(&bind.pod.namespace, &bind.pod.name) else { return };
        let gpus = pod.requests.extended.get(&world.rules().device_resource).copied();
        let gpu_model = world.nodes().gpu_model(&bind.node).to_owned();
        let (labels, provider_id) = world.nodes().price_facts(&bind.node);
        let open = Open {
            bind: Arc::clone(bind),
            gpus: gpus.and_then(|gpus| u128::try_from(gpus).ok()).unwrap_or(0),
            node: IdleNode { gpu_model, labels, provider_id },
            decided_ms: now_ms,
        };
        let PodKey { namespace, name, .. } = &bind.pod;
        self.open.insert((namespace.to_string(), name.to_string()), open);
    }

    /// Takes a change before the scheduler does.
    pub fn see(&mut self, change: &Change, world: &World, now_ms: u64) {
        match change {
            Change::Applied(Object::Pod(pod)) => self.see_pod(pod, world, now_ms),
            Change::Deleted(Kind::Pod, meta) => {
                self.settle(&meta.namespace, &meta.name, None, now_ms);
            }
            Change::Listed(_) => {
                self.since_ms.get_or_insert(now_ms);
            }
            _ => {}
        }
    }

    fn see_pod(&mut self, pod: &Pod, world: &World, now_ms: u64) {
        let (namespace, name) = (&pod.meta.namespace, &pod.meta.name);
        let key = (namespace.to_string(), name.to_string());
        let is_open = self.open.get(&key).map(|open| open.bind.pod.uid == pod.meta.uid);
        match is_open {
            Some(false) => self.settle(namespace, name, None, now_ms),
            Some(true) if pod.is_over() => self.settle(namespace, name, None, now_ms),
            Some(true) if !pod.node.is_empty() => {
                self.settle(namespace, name, Some(&pod.node), now_ms);
            }
            Some(true) => {}
            // It waited until now, and nothing was decided.
            None if !pod.node.is_empty() && world.pods().is_submitted(namespace, name) => {
                self.compared.before += 1;
            }
            None => {}
        }
    }

    fn settle(&mut self, namespace: &str, name: &str, node: Option<&str>, now_ms: u64) {
        let key = (namespace.to_owned(), name.to_owned());
        let Some(open) = self.open.remove(&key) else { return };
        self.count(&open, now_ms);
        let compared = &mut self.compared;
        match node {
            Some(node) if *node == *open.bind.node => compared.same_node += 1,
            Some(_) => compared.other_node += 1,
            None => compared.gone += 1,
        }
    }

    fn count(&mut self, open: &Open, now_ms: u64) {
        let span_ms = now_ms.saturating_sub(open.decided_ms);
        self.compared.longest_ms = self.compared.longest_ms.max(span_ms);
        if open.gpus > 0 {
            let idle = self.compared.idle_gpu_ms.entry(open.node.clone()).or_default();
            *idle += open.gpus * u128::from(span_ms);
        }
    }
}

//! What the judge knows for itself: who asks for what, and who was bound where.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::ApiServer;
use crate::kubelets::{Amounts, amounts, requests_of};
use crate::objects::SCHEDULER;

/// Amounts of pods by UID, read once.
#[derive(Debug, Default)]
pub(crate) struct PodBooks {
    asked: BTreeMap<String, Amounts>,
    bound: BTreeMap<String, String>,
}

/// A pod as the judge sees it.
#[derive(Debug)]
pub(crate) struct JudgedPod<'a> {
    pub(crate) pod: &'a Value,
    pub(crate) node: &'a str,
    pub(crate) is_ours: bool,
}

impl PodBooks {
    pub(crate) fn asked(&mut self, pod: &Value) -> &Amounts {
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
        if !self.asked.contains_key(uid) {
            let mut asked = requests_of(pod);
            asked.insert("pods".to_owned(), 1);
            self.asked.insert(uid.to_owned(), asked);
        }
        &self.asked[uid]
    }

    /// A bind of ours took effect: what is wrong with it. Pods of others count as far as
    /// `counts` says.
    pub(crate) fn bound(
        &mut self,
        server: &ApiServer,
        uid: &str,
        node: &str,
        counts: impl Fn(&Value) -> bool,
    ) -> Option<String> {
        if let Some(before) = self.bound.insert(uid.to_owned(), node.to_owned()) {
            return Some(format!("pod {uid} is bound twice: to {before} and to {node}"));
        }
        let free = self.free_on(server, node, counts)?;
        let (name, amount) = free.iter().find(|(_, amount)| **amount < 0)?;
        Some(format!("{node} has {amount} of {name} left after pod {uid}"))
    }

    /// What is free of a node; `None` if there is no such node.
    pub(crate) fn free_on(
        &mut self,
        server: &ApiServer,
        node: &str,
        counts: impl Fn(&Value) -> bool,
    ) -> Option<Amounts> {
        let nodes = server.kind("nodes")?;
        let there = server.all(&nodes).find(|there| there["metadata"]["name"] == node)?;
        let mut free = amounts(&there["status"]["allocatable"]);
        for seen in holders(server) {
            if seen.node == node && (seen.is_ours || counts(seen.pod)) {
                for (name, amount) in self.asked(seen.pod) {
                    *free.entry(name.clone()).or_default() -= amount;
                }
            }
        }
        Some(free)
    }
}

/// All pods that have a node and are not over.
pub(crate) fn holders(server: &ApiServer) -> impl Iterator<Item = JudgedPod<'_>> {
    pods(server).filter(|pod| !is_over(pod)).filter_map(|pod| {
        let node = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty())?;
        let is_ours = pod["spec"]["schedulerName"] == SCHEDULER;
        Some(JudgedPod { pod, node, is_ours })
    })
}

pub(crate) fn pods(server: &ApiServer) -> impl Iterator<Item = &Value> {
    let collection = (String::new(), "pods".to_owned());
    server.state.store.all(&collection).map(|object| &object.value)
}

/// Whether the containers of a pod have ended.
pub(crate) fn is_over(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

//! What keeps pods off the nodes of others, required anti-affinity and host ports, and what keeps
//! them beside others.

use std::collections::BTreeSet;

use dovetail_objects::labels::HOST_NAME;
use dovetail_objects::{HostPort, LabelSelector, Labels, Pod, PodTerm};

/// The address of a host port that takes every address of its node.
const EVERY_ADDRESS: &str = "0.0.0.0";

/// What keeps pods off the nodes of others, and beside others.
pub struct Apart {
    /// Required anti-affinity.
    terms: Box<[PodTerm]>,
    /// Required affinity.
    company: Box<[PodTerm]>,
    ports: Box<[HostPort]>,
    /// Labels that pods of other revisions have, too.
    labels: Labels,
    namespace: Box<str>,
}

impl Apart {
    /// What a pod says of others.
    pub fn of(pod: &Pod) -> Self {
        let between = pod.between_pods.as_deref().cloned().unwrap_or_default();
        let labels = pod.meta.labels.iter();
        let labels = labels.filter(|(key, _)| !key.ends_with("pod-template-hash"));
        Self {
            terms: between.anti_affinity,
            company: between.affinity,
            ports: pod.ports.clone(),
            labels: labels.collect(),
            namespace: pod.meta.namespace.clone(),
        }
    }

    /// Labels of nodes by whose values these pods keep off others.
    pub fn from(&self, other: &Self) -> BTreeSet<&str> {
        let terms = self.terms.iter().filter(|term| other.is_meant_by(term));
        let terms = terms.map(|term| &*term.topology_key);
        let is_taken = |port: &HostPort| other.ports.iter().any(|of| is_same(port, of));
        terms.chain(self.ports.iter().any(is_taken).then_some(HOST_NAME)).collect()
    }

    /// The namespace of these pods.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Whether these pods may keep others off their nodes.
    pub fn has_rules(&self) -> bool {
        !self.terms.is_empty() || !self.ports.is_empty()
    }

    /// Namespaces of the pods that required anti-affinity of these is about; `None` where it may be
    /// about any.
    pub fn namespaces_of_others(&self) -> Option<BTreeSet<&str>> {
        let named = self.terms.iter().map(|term| term.pods.only_namespaces());
        let named: Option<Vec<&[Box<str>]>> = named.collect();
        Some(named?.into_iter().flatten().map(|name| &**name).collect())
    }

    /// Whether these pods run only beside others.
    pub fn needs_company(&self) -> bool {
        !self.company.is_empty()
    }

    /// Labels of nodes whose values these pods need to share with others; none if they do not mean
    /// these.
    pub fn beside(&self, other: &Self) -> BTreeSet<&str> {
        match self.company.iter().all(|term| other.is_meant_by(term)) {
            true => self.company.iter().map(|term| &*term.topology_key).collect(),
            false => BTreeSet::new(),
        }
    }

    fn is_meant_by(&self, term: &PodTerm) -> bool {
        let pods = &term.pods;
        let is_named = pods.namespaces.iter().any(|name| **name == *self.namespace);
        (is_named || pods.namespace_selector != LabelSelector::Nothing)
            && pods.selector.matches(&self.labels)
    }
}

fn is_same(one: &HostPort, other: &HostPort) -> bool {
    let is_every = |port: &HostPort| &*port.address == EVERY_ADDRESS;
    let meets = one.address == other.address || is_every(one) || is_every(other);
    meets && one.port == other.port && one.protocol == other.protocol
}

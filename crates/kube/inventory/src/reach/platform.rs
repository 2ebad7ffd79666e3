//! Which machines a pod could run on at all: its images are made for the operating system and the
//! architecture of the nodes that it runs on, and nodes that are no machines take few pods.
//!
//! No template says so, and the scheduler does not know it either.

use std::collections::BTreeSet;

use dovetail_model::requirement::Operator;
use dovetail_model::{Node, SelectorTerm};
use dovetail_objects::{Pod, labels};

/// A label by which nodes differ so that a pod of one may not run on another.
struct PlatformLabel {
    key: &'static str,
    /// The value of a node that has none.
    usual: &'static str,
    /// The only value that is not usual; empty where every other value is one.
    only: &'static str,
}

const LABELS: [PlatformLabel; 4] = [
    PlatformLabel { key: labels::OPERATING_SYSTEM, usual: "linux", only: "" },
    PlatformLabel { key: labels::ARCHITECTURE, usual: "amd64", only: "" },
    PlatformLabel { key: "eks.amazonaws.com/compute-type", usual: "", only: "fargate" },
    PlatformLabel { key: "type", usual: "", only: "virtual-kubelet" },
];

impl PlatformLabel {
    fn of<'n>(&self, node: &'n Node) -> &'n str {
        let value = node.labels.get(self.key).map(String::as_str);
        let counts = |value: &&str| self.only.is_empty() || *value == self.only;
        value.filter(counts).unwrap_or(self.usual)
    }
}

/// The values of these labels that nodes of the cluster have.
#[derive(Default)]
pub(super) struct Platforms {
    values: [BTreeSet<String>; LABELS.len()],
}

impl Platforms {
    pub(super) fn add(&mut self, node: &Node) {
        for (label, values) in LABELS.iter().zip(&mut self.values) {
            let value = label.of(node);
            if !values.contains(value) {
                values.insert(value.to_owned());
            }
        }
    }

    /// Lets a pod use only nodes like those that pods of its kind run on.
    pub(super) fn keep(&self, pod: &mut Pod, own: &[&Node]) {
        let terms = self.terms(own);
        if terms.is_empty() {
            return;
        }
        let alternatives = pod.node_affinity.take();
        let mut alternatives =
            alternatives.map_or_else(|| vec![Vec::new()], |alternatives| alternatives.into_vec());
        alternatives.iter_mut().for_each(|all| all.extend(terms.iter().cloned()));
        pod.node_affinity = Some(alternatives.into());
    }

    /// What tells nodes like these from others; nothing where all nodes are alike.
    fn terms(&self, own: &[&Node]) -> Vec<SelectorTerm> {
        let term = |(label, all): (&PlatformLabel, &BTreeSet<String>)| {
            if own.is_empty() || all.len() < 2 {
                return None;
            }
            let own: BTreeSet<&str> = own.iter().map(|node| label.of(node)).collect();
            let others = all.iter().filter(|value| !own.contains(value.as_str()));
            let others: Vec<String> = others.cloned().collect();
            let (operator, values) = match own.contains(label.usual) {
                true => (Operator::NotIn, others),
                false => (Operator::In, own.into_iter().map(str::to_owned).collect()),
            };
            let key = label.key.to_owned();
            (!values.is_empty()).then_some(SelectorTerm { key, operator, values })
        };
        LABELS.iter().zip(&self.values).filter_map(term).collect()
    }
}

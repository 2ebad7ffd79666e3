//! Who shares GPUs with whom, by time-slicing or MPS.
//!
//! Time-slicing gives every pod a turn on the GPU, so that latency follows from the neighbors: a
//! node takes pods of one `dovetail.dev/class`, and inference only where a SharingPolicy names it.
//! MPS runs all clients of a GPU in one server, and a fatal fault of one can end all: a node takes
//! pods of one namespace.
//!
//! Plugins offer replicas under a name of their own, or under that of whole GPUs. Pods that request
//! the latter share GPUs on some nodes only, so each name has labels of nodes of its own, and pods
//! ask for nothing where no node offers replicas under it.

use std::fmt;

use dovetail_gpus::is_of_shares;
use dovetail_model::requirement::Operator;
use dovetail_model::{
    ConditionCause, CounterRule, CounterScope, NodeCondition, RuleCause, RuleKind, SelectorTerm,
};
use dovetail_objects::labels::{
    CLASS, GKE_SHARED_CLIENTS, GKE_STRATEGY, NVIDIA_GPU, NVIDIA_REPLICAS, NVIDIA_SHARED,
    NVIDIA_STRATEGY, SHARED_CLASSES,
};
use dovetail_objects::{Node, Pod};

use super::Rules;
use super::counting::CounterSelector;
use super::referred::ReferredObjects;

/// The class that shares time-sliced GPUs only where a policy names it.
const INFERENCE: &str = "inference";

/// What [`ReferredObjects::offers`] has where a node offers replicas under the name of whole GPUs;
/// no resource has a colon in its name.
pub const REPLICAS_AS_GPUS: &str = "nvidia.com/gpu:replicas";

/// Under which name pods request GPUs that others share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SharedAs {
    /// A name that only shared GPUs have.
    Replicas,
    /// That of whole GPUs.
    Gpus,
}

impl SharedAs {
    const ALL: [Self; 2] = [Self::Replicas, Self::Gpus];

    /// Whether a pod requests GPUs under the name.
    pub fn is_requested(self, pod: &Pod) -> bool {
        let mut requested = pod.holds().extended.iter().filter(|(_, count)| **count > 0);
        match self {
            Self::Replicas => requested.any(|(name, _)| is_of_shares(name)),
            Self::Gpus => requested.any(|(name, _)| *name == NVIDIA_GPU),
        }
    }

    /// Whether a node offers shared GPUs under the name.
    fn is_offered(self, node: &Node) -> bool {
        match self {
            Self::Replicas => {
                let mut offered = node.allocatable.extended.iter();
                offered.any(|(name, count)| is_of_shares(name) && *count > 0)
            }
            Self::Gpus => offers_replicas_as_gpus(node),
        }
    }

    /// The label of a node whose GPUs pods use in turns; its value is the name of the node.
    fn time_sliced(self) -> &'static str {
        match self {
            Self::Replicas => "dovetail.dev/shared-by:time-slicing",
            Self::Gpus => "dovetail.dev/gpus-shared-by:time-slicing",
        }
    }

    /// The same for clients of MPS servers.
    fn mps(self) -> &'static str {
        match self {
            Self::Replicas => "dovetail.dev/shared-by:mps",
            Self::Gpus => "dovetail.dev/gpus-shared-by:mps",
        }
    }

    /// The label of a node whose shared GPUs admit named classes alone.
    fn names_classes(self) -> &'static str {
        match self {
            Self::Replicas => "dovetail.dev/shared-by:named-classes",
            Self::Gpus => "dovetail.dev/gpus-shared-by:named-classes",
        }
    }

    /// The label of a node whose policy names a class.
    fn admits(self, class: &str) -> String {
        match self {
            Self::Replicas => format!("dovetail.dev/shared-class:{class}"),
            Self::Gpus => format!("dovetail.dev/gpus-shared-class:{class}"),
        }
    }
}

impl fmt::Display for SharedAs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Replicas => "sharing GPUs",
            Self::Gpus => "sharing whole GPUs",
        })
    }
}

/// Whether a node offers replicas under the name of whole GPUs, as GPU Feature Discovery or GKE
/// labels it.
pub fn offers_replicas_as_gpus(node: &Node) -> bool {
    let offers = |name: &str| node.allocatable.extended.get(name).is_some_and(|count| *count > 0);
    let several = |key: &&str| {
        let count = node.meta.labels.get(key).and_then(|text| text.parse::<u32>().ok());
        count.is_some_and(|count| count > 1)
    };
    // Where replicas have a name of their own, the label counts those.
    offers(NVIDIA_GPU)
        && !offers(NVIDIA_SHARED)
        && [NVIDIA_REPLICAS, GKE_SHARED_CLIENTS].iter().any(several)
}

/// What its owner says of it.
pub(super) fn class(pod: &Pod) -> Option<&str> {
    pod.meta.labels.get(CLASS)
}

/// What is asked of a node with shared GPUs, as labels.
pub(super) fn labels(node: &Node) -> Vec<(String, String)> {
    let of = |key: &str| node.meta.labels.get(key);
    let is_mps = [NVIDIA_STRATEGY, GKE_STRATEGY].iter().any(|key| of(key) == Some("mps"));
    let classes = node.meta.annotations.get(SHARED_CLASSES).unwrap_or_default();
    let named = || classes.split(',').map(str::trim).filter(|class| !class.is_empty());
    let mut labels = Vec::new();
    for name in SharedAs::ALL.into_iter().filter(|name| name.is_offered(node)) {
        let method = if is_mps { name.mps() } else { name.time_sliced() };
        labels.push((method.to_owned(), node.meta.name.to_string()));
        labels.extend(named().map(|class| (name.admits(class), String::new())));
        if named().next().is_some() {
            labels.push((name.names_classes().to_owned(), String::new()));
        }
    }
    labels
}

/// The names under which a pod requests GPUs that others may share.
fn names(pod: &Pod, facts: &ReferredObjects, rules: &Rules) -> impl Iterator<Item = SharedAs> {
    let keeps_apart = !rules.mixes_shared_gpus;
    let are_gpus_shared = facts.offers.has(REPLICAS_AS_GPUS);
    let is_there = move |name: &SharedAs| *name == SharedAs::Replicas || are_gpus_shared;
    let names = SharedAs::ALL.into_iter().filter(move |name| keeps_apart && is_there(name));
    names.filter(move |name| name.is_requested(pod))
}

/// Where the class of a pod may share GPUs.
pub(super) fn conditions(
    pod: &Pod,
    facts: &ReferredObjects,
    rules: &Rules,
) -> impl Iterator<Item = NodeCondition> {
    names(pod, facts, rules).filter_map(move |name| Some(condition(class(pod)?, name)))
}

fn condition(class: &str, name: SharedAs) -> NodeCondition {
    let term = |key: &str, operator| {
        let (key, values) = (key.to_owned(), Vec::new());
        vec![SelectorTerm { key, operator, values }]
    };
    let mut without_names = term(name.names_classes(), Operator::DoesNotExist);
    if class == INFERENCE {
        without_names.extend(term(name.time_sliced(), Operator::DoesNotExist));
    }
    let any_of = vec![term(&name.admits(class), Operator::Exists), without_names];
    NodeCondition { any_of, cause: ConditionCause::SharedGpus }
}

/// Which pods must not be where a pod shares GPUs.
pub(super) fn asked_by(
    pod: &Pod,
    facts: &ReferredObjects,
    rules: &Rules,
) -> impl Iterator<Item = CounterSelector> {
    kept_off(pod, facts, rules).map(|(selector, _)| selector)
}

/// That they are not there.
pub(super) fn rules(
    pod: &Pod,
    facts: &ReferredObjects,
    rules: &Rules,
) -> impl Iterator<Item = CounterRule> {
    kept_off(pod, facts, rules).map(|(selector, label)| CounterRule {
        selector: selector.to_string(),
        label: label.to_owned(),
        kind: RuleKind::AntiAffinity,
        scope: CounterScope::AllNodes,
        cause: RuleCause::SharedGpus,
    })
}

/// Pods that a pod must not share GPUs with, and the label of the nodes on which it would.
fn kept_off(
    pod: &Pod,
    facts: &ReferredObjects,
    rules: &Rules,
) -> impl Iterator<Item = (CounterSelector, &'static str)> {
    names(pod, facts, rules).flat_map(move |name| {
        let other_class =
            || Some((CounterSelector::OtherClass(name, class(pod)?.into()), name.time_sliced()));
        let namespace = CounterSelector::OtherNamespace(name, pod.meta.namespace.clone());
        other_class().into_iter().chain([(namespace, name.mps())])
    })
}

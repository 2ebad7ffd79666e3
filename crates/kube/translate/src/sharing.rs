//! Who shares GPUs with whom, by time-slicing or MPS.
//!
//! Time-slicing gives every pod a turn on the GPU, so that latency follows from the neighbors: a
//! node takes pods of one `dovetail.dev/class`, and inference only where a SharingPolicy names it.
//! MPS runs all clients of a GPU in one server, and a fatal fault of one can end all: a node takes
//! pods of one namespace.

use dovetail_gpus::is_of_shares;
use dovetail_model::requirement::Operator;
use dovetail_model::{
    ConditionCause, CounterRule, CounterScope, NodeCondition, RuleCause, RuleKind, SelectorTerm,
};
use dovetail_objects::labels::{CLASS, NVIDIA_STRATEGY, SHARED_CLASSES};
use dovetail_objects::{Node, Pod};

use super::counting::CounterSelector;

/// The class that shares time-sliced GPUs only where a policy names it.
const INFERENCE: &str = "inference";
/// The label of a node whose GPUs pods use in turns; its value is the name of the node.
const TIME_SLICED: &str = "dovetail.dev/shared-by:time-slicing";
/// The same for clients of MPS servers.
const MPS: &str = "dovetail.dev/shared-by:mps";
/// The label of a node whose shared GPUs admit named classes alone.
const NAMES_CLASSES: &str = "dovetail.dev/shared-by:named-classes";

/// Whether a pod requests GPUs that others share.
pub(super) fn shares_gpus(pod: &Pod) -> bool {
    pod.holds().extended.iter().any(|(name, count)| is_of_shares(name) && *count > 0)
}

/// What its owner says of it.
pub(super) fn class(pod: &Pod) -> Option<&str> {
    pod.meta.labels.get(CLASS)
}

/// What is asked of a node with shared GPUs, as labels.
pub(super) fn labels(node: &Node) -> Vec<(String, String)> {
    let offered = node.allocatable.extended.iter();
    if !offered.clone().any(|(name, count)| is_of_shares(name) && *count > 0) {
        return Vec::new();
    }
    let is_mps = node.meta.labels.get(NVIDIA_STRATEGY) == Some("mps");
    let method = if is_mps { MPS } else { TIME_SLICED };
    let mut labels = vec![(method.to_owned(), node.meta.name.to_string())];
    let classes = node.meta.annotations.get(SHARED_CLASSES).unwrap_or_default();
    let named = classes.split(',').map(str::trim).filter(|class| !class.is_empty());
    labels.extend(named.map(|class| (admits(class), String::new())));
    if labels.len() > 1 {
        labels.push((NAMES_CLASSES.to_owned(), String::new()));
    }
    labels
}

/// The label of a node whose policy names a class.
fn admits(class: &str) -> String {
    format!("dovetail.dev/shared-class:{class}")
}

/// Where the class of a pod may share GPUs.
pub(super) fn condition(pod: &Pod) -> Option<NodeCondition> {
    let class = class(pod).filter(|_| shares_gpus(pod))?;
    let term = |key: &str, operator| {
        let (key, values) = (key.to_owned(), Vec::new());
        vec![SelectorTerm { key, operator, values }]
    };
    let mut without_names = term(NAMES_CLASSES, Operator::DoesNotExist);
    if class == INFERENCE {
        without_names.extend(term(TIME_SLICED, Operator::DoesNotExist));
    }
    let any_of = vec![term(&admits(class), Operator::Exists), without_names];
    Some(NodeCondition { any_of, cause: ConditionCause::SharedGpus })
}

/// Which pods must not be where a pod shares GPUs.
pub(super) fn asked_by(pod: &Pod) -> impl Iterator<Item = CounterSelector> {
    kept_off(pod).map(|(selector, _)| selector)
}

/// That they are not there.
pub(super) fn rules(pod: &Pod) -> impl Iterator<Item = CounterRule> {
    kept_off(pod).map(|(selector, label)| CounterRule {
        selector: selector.to_string(),
        label: label.to_owned(),
        kind: RuleKind::AntiAffinity,
        scope: CounterScope::AllNodes,
        cause: RuleCause::SharedGpus,
    })
}

/// Pods that a pod must not share GPUs with, and the label of the nodes on which it would.
fn kept_off(pod: &Pod) -> impl Iterator<Item = (CounterSelector, &'static str)> {
    let other_class = || Some((CounterSelector::OtherClass(class(pod)?.into()), TIME_SLICED));
    let namespace = CounterSelector::OtherNamespace(pod.meta.namespace.clone());
    let kept_off = other_class().into_iter().chain([(namespace, MPS)]);
    kept_off.filter(|_| shares_gpus(pod))
}

//! Which pods a counter counts (`PodTopologySpread`, `InterPodAffinity`).

use std::fmt;

use super::Rules;
use super::referred::ReferredObjects;
use super::sharing::{self, SharedAs};
use dovetail_objects::{LabelSelector, Labels, Pod, PodSelection, PodTerm};

/// What a counter counts. Its text is its name in the engine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CounterSelector {
    /// Pods of a namespace that are not being deleted (topology spread). A selector of everything
    /// counts nothing, as in kube-scheduler.
    Spread { namespace: Box<str>, pods: LabelSelector },
    /// Pods that belong to each of these selections: all affinity terms of a pod, or one
    /// anti-affinity term. Ascending.
    Chosen(Box<[PodSelection]>),
    /// Pods of a namespace that a disruption budget is about. A selector of everything counts all.
    Budget {
        namespace: Box<str>,
        name: Box<str>,
        /// Which of the namespace's pods.
        pods: LabelSelector,
    },
    /// Pods that carry this anti-affinity term, and so keep away the pods it is about.
    Carriers(PodTerm),
    /// Pods of other classes that request shared GPUs under a name. A pod without a class is of
    /// none.
    OtherClass(SharedAs, Box<str>),
    /// Pods of other namespaces that request shared GPUs under a name.
    OtherNamespace(SharedAs, Box<str>),
}

impl CounterSelector {
    /// Whether it counts this pod, whose namespace has these labels (`None`: there is no such
    /// namespace).
    pub fn counts(&self, pod: &Pod, namespace: Option<&Labels>) -> bool {
        match self {
            Self::Spread { namespace, pods } => {
                *namespace == pod.meta.namespace
                    && !pod.meta.is_deleting()
                    && !pods.is_everything()
                    && pods.matches(&pod.meta.labels)
            }
            Self::Budget { namespace, pods, .. } => {
                *namespace == pod.meta.namespace && pods.matches(&pod.meta.labels)
            }
            Self::Chosen(selections) => selections.iter().all(|pods| chooses(pods, pod, namespace)),
            Self::Carriers(term) => anti_affinity_terms(pod).contains(term),
            Self::OtherClass(name, class) => {
                sharing::class(pod).is_some_and(|of| *of != **class) && name.is_requested(pod)
            }
            Self::OtherNamespace(name, namespace) => {
                pod.meta.namespace != *namespace && name.is_requested(pod)
            }
        }
    }

    /// The only namespaces whose pods it can count; `None` is any.
    pub fn namespaces(&self) -> Option<&[Box<str>]> {
        match self {
            Self::Spread { namespace, .. } | Self::Budget { namespace, .. } => {
                Some(std::slice::from_ref(namespace))
            }
            Self::Chosen(selections) => {
                let named = selections
                    .iter()
                    .find(|pods| pods.namespace_selector == LabelSelector::Nothing)?;
                Some(&named.namespaces)
            }
            Self::Carriers(_) | Self::OtherClass(..) | Self::OtherNamespace(..) => None,
        }
    }
}

/// Whether a pod that is to be placed belongs to the pods that somebody's term is about.
pub fn is_kept_away(term: &PodTerm, pod: &Pod, namespace: Option<&Labels>) -> bool {
    let none = Labels::default();
    let of_namespace = || term.pods.namespace_selector.matches(namespace.unwrap_or(&none));
    let named = term.pods.namespaces.contains(&pod.meta.namespace);
    (named || of_namespace()) && term.pods.selector.matches(&pod.meta.labels)
}

/// As kube-scheduler lists the namespaces of a pod's own terms: those that exist and match, or all.
fn chooses(pods: &PodSelection, pod: &Pod, namespace: Option<&Labels>) -> bool {
    let by_labels = pods.namespace_selector.is_everything()
        || namespace.is_some_and(|labels| pods.namespace_selector.matches(labels));
    let named = pods.namespaces.contains(&pod.meta.namespace);
    (named || by_labels) && pods.selector.matches(&pod.meta.labels)
}

/// The required anti-affinity terms of a pod.
pub fn anti_affinity_terms(pod: &Pod) -> &[PodTerm] {
    pod.between_pods.as_deref().map_or(&[], |terms| &terms.anti_affinity)
}

/// The counters that the pod's own rules and preferences ask, apart from those for ports, disks and
/// claims.
pub fn asked_by(pod: &Pod, facts: &ReferredObjects, rules: &Rules) -> Vec<CounterSelector> {
    let constraints = pod.spread.iter().chain(&pod.soft_spread);
    let mut asked: Vec<CounterSelector> =
        constraints.map(|constraint| spread(pod, &constraint.selector)).collect();
    if let Some(terms) = pod.between_pods.as_deref() {
        asked.extend(affinity(&terms.affinity));
        asked.extend(terms.anti_affinity.iter().map(anti_affinity));
    }
    asked.extend(sharing::asked_by(pod, facts, rules));
    asked.sort();
    asked.dedup();
    asked
}

pub(super) fn spread(pod: &Pod, pods: &LabelSelector) -> CounterSelector {
    CounterSelector::Spread { namespace: pod.meta.namespace.clone(), pods: pods.clone() }
}

/// One pod must satisfy all terms, so they share one counter.
pub(super) fn affinity(terms: &[PodTerm]) -> Option<CounterSelector> {
    if terms.is_empty() {
        return None;
    }
    let mut selections: Vec<PodSelection> = terms.iter().map(|term| term.pods.clone()).collect();
    selections.sort();
    selections.dedup();
    Some(CounterSelector::Chosen(selections.into()))
}

pub(super) fn anti_affinity(term: &PodTerm) -> CounterSelector {
    CounterSelector::Chosen([term.pods.clone()].into())
}

impl fmt::Display for CounterSelector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spread { namespace, pods } => write!(out, "staying in {namespace}: {pods}"),
            Self::Budget { namespace, name, pods } => {
                write!(out, "budget {namespace}/{name}: {pods}")
            }
            Self::Chosen(selections) => {
                for (place, pods) in selections.iter().enumerate() {
                    write!(out, "{}{}", if place == 0 { "" } else { " and " }, Selected(pods))?;
                }
                Ok(())
            }
            Self::Carriers(term) => {
                write!(out, "against {} per {}", Selected(&term.pods), term.topology_key)
            }
            Self::OtherClass(name, class) => write!(out, "{name}, not of class {class}"),
            Self::OtherNamespace(name, namespace) => write!(out, "{name}, not in {namespace}"),
        }
    }
}

struct Selected<'a>(&'a PodSelection);

impl fmt::Display for Selected<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PodSelection { namespaces, namespace_selector, selector } = self.0;
        write!(out, "in {}", namespaces.join(","))?;
        if *namespace_selector != LabelSelector::Nothing {
            write!(out, "[{namespace_selector}]")?;
        }
        write!(out, ": {selector}")
    }
}

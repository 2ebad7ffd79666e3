//! Pods: what one needs of its node, and what it holds there.

use std::collections::BTreeSet;

use dovetail_model::requirement::Operator;
use dovetail_model::{
    Attachment, ConditionCause, CounterRule, CounterScope, DeviceRequest, NodeCondition,
    Requirement, Resources, RuleCause, RuleKind, SelectorTerm, Selectors,
};
use dovetail_objects::{LabelSelector, Pod, is_vgpu_resource};

use super::counting::{CounterSelector, affinity, anti_affinity, anti_affinity_terms, spread};
use super::gang::{TERMS_OF_GANGS, gang_of};
use super::node::feature_label;
use super::not_yet::NotYet;
use super::preferences::preferences;
use super::referred::ReferredObjects;
use super::volumes::{attachments, conditions, exists};
use super::{Rules, disks, ports, sharing};
use dovetail_gpus::MOST_UNITS;

/// What a pod needs of its node. Two things depend on other pods and are left to the caller: which
/// counters of others count it, and whose anti-affinity keeps it away.
pub fn pod(pod: &Pod, facts: &ReferredObjects, rules: &Rules) -> Result<Requirement, NotYet> {
    refuse_devices(pod, facts)?;
    pod_with_devices(pod, facts, rules)
}

/// The same for callers that see to the devices of its claims, and to those by which it has
/// extended resources.
pub fn pod_with_devices(
    pod: &Pod,
    facts: &ReferredObjects,
    rules: &Rules,
) -> Result<Requirement, NotYet> {
    refuse(pod)?;
    let (resources, devices) = split(&pod.requests, rules);
    let device = match devices {
        0 => DeviceRequest::None,
        1..=MOST_UNITS => DeviceRequest::Whole { count: devices as u16, same_island: false },
        _ => {
            let resource = rules.device_resource.clone();
            return Err(NotYet::TooManyDevices { resource, asked: devices, most: MOST_UNITS });
        }
    };
    let mut node_conditions = node_conditions(pod);
    let ours = rules.node_selector.iter().map(|(key, value)| (&**key, &**value));
    node_conditions.extend(selected(ours));
    node_conditions.extend(conditions(pod, facts)?);
    let mut between: Vec<CounterRule> = pod_rules(pod).chain(ports::rules(pod)).collect();
    node_conditions.extend(sharing::conditions(pod, facts, rules));
    between.extend(sharing::rules(pod, facts, rules));
    Ok(Requirement {
        resources,
        device,
        node_conditions,
        tolerations: pod.tolerations.to_vec(),
        counts_into: counted_by(pod, facts),
        rules: between.into_iter().chain(disks::rules(pod, facts)).collect(),
        attachments: attachments(pod, facts),
        preferences: preferences(pod),
        ..Requirement::default()
    })
}

/// What a pod holds on the node it is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodHoldings {
    /// Amounts of the node.
    pub resources: Resources,
    /// Whole devices.
    pub devices: u16,
    pub attachments: BTreeSet<Attachment>,
    /// Counters that count it whoever asks: its ports, disks, claims and anti-affinity terms.
    pub counts_into: Selectors,
}

/// What a pod holds on the node it is on, or is to be on. Nothing it could ask for makes this fail:
/// what cannot be known, such as the volume of a claim that is gone, is not held.
pub fn held(pod: &Pod, facts: &ReferredObjects, rules: &Rules) -> PodHoldings {
    let amounts = if pod.node.is_empty() { &pod.requests } else { pod.holds() };
    let (resources, devices) = split(amounts, rules);
    PodHoldings {
        resources,
        devices: devices.clamp(0, MOST_UNITS) as u16,
        attachments: attachments(pod, facts),
        counts_into: counted_by(pod, facts),
    }
}

/// The devices asked for, apart from everything else.
fn split(requests: &Resources, rules: &Rules) -> (Resources, i64) {
    let mut resources = requests.clone();
    let devices = resources.extended.remove(&rules.device_resource).unwrap_or(0);
    (resources, devices)
}

/// Counters that count the pod because of what it has, not because somebody chose it.
fn counted_by(pod: &Pod, facts: &ReferredObjects) -> Selectors {
    let terms = anti_affinity_terms(pod).iter();
    let carried = terms.map(|term| CounterSelector::Carriers(term.clone()).to_string());
    carried.chain(ports::counted_by(pod)).chain(disks::counted_by(pod, facts)).collect()
}

/// That a node has all these labels; none if there are none.
fn selected<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> Option<NodeCondition> {
    let term = |(key, value): (&str, &str)| SelectorTerm {
        key: key.to_owned(),
        operator: Operator::In,
        values: vec![value.to_owned()],
    };
    let terms: Vec<SelectorTerm> = labels.map(term).collect();
    (!terms.is_empty()).then(|| NodeCondition::node_affinity(vec![terms]))
}

/// Node selector, node affinity, declared features.
fn node_conditions(pod: &Pod) -> Vec<NodeCondition> {
    let mut conditions: Vec<NodeCondition> =
        selected(pod.node_selector.iter()).into_iter().collect();
    let affinity = pod.node_affinity.as_ref();
    conditions.extend(affinity.map(|any_of| NodeCondition::node_affinity(any_of.to_vec())));
    if !pod.features.is_empty() {
        let features = pod.features.iter();
        let terms = features.map(|feature| exists(feature_label(feature.name()))).collect();
        let cause = ConditionCause::DeclaredFeatures;
        conditions.push(NodeCondition { any_of: vec![terms], cause });
    }
    conditions
}

/// Spread constraints and affinity between pods.
fn pod_rules(pod: &Pod) -> impl Iterator<Item = CounterRule> {
    let spread = pod.spread.iter().map(|constraint| CounterRule {
        selector: spread(pod, &constraint.selector).to_string(),
        label: constraint.topology_key.to_string(),
        kind: RuleKind::Spread {
            max_skew: constraint.max_skew,
            min_domains: constraint.min_domains,
        },
        scope: CounterScope::Eligible {
            honor_affinity: constraint.honor_affinity,
            honor_taints: constraint.honor_taints,
        },
        cause: RuleCause::Spread,
    });
    let terms = pod.between_pods.as_deref();
    let near = terms.map_or(&[] as &[_], |terms| &terms.affinity);
    let keys: BTreeSet<&str> = near.iter().map(|term| &*term.topology_key).collect();
    let together = affinity(near).map(|selector| selector.to_string()).unwrap_or_default();
    let between = |selector, label: &str, kind, cause| CounterRule {
        selector,
        label: label.to_owned(),
        kind,
        scope: CounterScope::AllNodes,
        cause,
    };
    let near = keys
        .into_iter()
        .map(move |key| between(together.clone(), key, RuleKind::Affinity, RuleCause::Affinity));
    let apart = anti_affinity_terms(pod).iter().map(move |term| {
        let selector = anti_affinity(term).to_string();
        between(selector, &term.topology_key, RuleKind::AntiAffinity, RuleCause::AntiAffinity)
    });
    spread.chain(near).chain(apart)
}

/// The rule by which the carriers of a term keep away the pods it is about.
pub fn kept_away_by(term: &dovetail_objects::PodTerm) -> CounterRule {
    CounterRule {
        selector: CounterSelector::Carriers(term.clone()).to_string(),
        label: term.topology_key.to_string(),
        kind: RuleKind::AntiAffinity,
        scope: CounterScope::AllNodes,
        cause: RuleCause::ExistingAntiAffinity,
    }
}

/// What needs devices of claims.
fn refuse_devices(pod: &Pod, facts: &ReferredObjects) -> Result<(), NotYet> {
    if pod.has_resource_claims {
        return Err(NotYet::ResourceClaims);
    }
    let by_class = pod.requests.extended.keys().find_map(|resource| {
        let class = facts.device_class_for(resource).filter(|_| !facts.offers.has(resource))?;
        Some((resource.clone(), class.meta.name.to_string()))
    });
    match by_class {
        Some((resource, class)) => Err(NotYet::ResourceByClass { resource, class }),
        None => Ok(()),
    }
}

/// What dovetail leaves alone.
fn refuse(pod: &Pod) -> Result<(), NotYet> {
    if gang_of(pod)?.is_none() {
        let said = |name: &&str| pod.meta.annotations.get(name).is_some_and(|value| value != "1");
        if let Some(annotation) = TERMS_OF_GANGS.into_iter().find(said) {
            return Err(NotYet::NoGang { annotation });
        }
    }
    let annotated =
        dovetail_objects::labels::FRACTION.iter().find(|a| pod.meta.annotations.get(a).is_some());
    if let Some(annotation) = annotated {
        return Err(NotYet::Fraction { by: format!("annotation {annotation}") });
    }
    for resource in pod.requests.extended.keys() {
        if is_vgpu_resource(resource) {
            return Err(NotYet::Fraction { by: format!("resource {resource}") });
        }
    }
    let unreadable = |selector: &LabelSelector| match selector {
        LabelSelector::Unreadable(problem) => Some(problem.to_string()),
        LabelSelector::Nothing | LabelSelector::Of(_) => None,
    };
    let spread = pod.spread.iter().find_map(|constraint| unreadable(&constraint.selector));
    if let Some(problem) = spread {
        return Err(NotYet::Unreadable { field: "topologySpreadConstraints", problem });
    }
    let terms = pod.between_pods.iter();
    let terms = terms.flat_map(|terms| terms.affinity.iter().chain(&terms.anti_affinity));
    let selectors = terms.flat_map(|term| [&term.pods.selector, &term.pods.namespace_selector]);
    match selectors.into_iter().find_map(unreadable) {
        Some(problem) => Err(NotYet::Unreadable { field: "affinity", problem }),
        None => Ok(()),
    }
}

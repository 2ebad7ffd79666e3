//! Required terms of affinity between pods, spread constraints, node affinity, tolerations.

use dovetail_model::node::TaintEffect;
use dovetail_model::requirement::Operator;
use dovetail_model::{SelectorTerm, Toleration};
use serde::Deserialize;

use super::json::nullable;
use super::label_selector::{Expression, LabelSelector, is_label_value};
use super::label_set::Labels;

/// A term of required affinity or anti-affinity between pods.
///
/// `matchLabelKeys` and `mismatchLabelKeys` are part of the selector here: the API server writes
/// them into it when the pod is created.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodTerm {
    /// Which pods it is about.
    pub pods: PodSelection,
    /// Node label that names the domain.
    pub topology_key: Box<str>,
}

/// Pods chosen by namespace and labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodSelection {
    /// Namespaces by name, ascending.
    pub namespaces: Box<[Box<str>]>,
    /// Namespaces by their labels, besides those named.
    pub namespace_selector: LabelSelector,
    /// Which pods of these namespaces.
    pub selector: LabelSelector,
}

impl PodSelection {
    /// The namespaces, if no other can be meant.
    pub fn only_namespaces(&self) -> Option<&[Box<str>]> {
        (self.namespace_selector == LabelSelector::Nothing).then_some(&*self.namespaces)
    }
}

/// Required affinity and anti-affinity between pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterPodAffinity {
    /// One pod that satisfies all of these must be in the domain of each.
    pub affinity: Box<[PodTerm]>,
    /// No pod that satisfies one of these may be in its domain.
    pub anti_affinity: Box<[PodTerm]>,
}

/// A topology spread constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpreadConstraint {
    /// Largest allowed difference, at least 1.
    pub max_skew: u32,
    /// With fewer domains than this the emptiest counts as having none.
    pub min_domains: Option<u32>,
    /// Node label that names the domain.
    pub topology_key: Box<str>,
    /// Which pods of the namespace are counted, `matchLabelKeys` included.
    pub selector: LabelSelector,
    /// Only nodes that the pod's node affinity and selector accept count.
    pub honor_affinity: bool,
    /// Only nodes whose taints the pod tolerates count.
    pub honor_taints: bool,
}

/// A term of preferred node affinity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreferredNode {
    /// From 1 to 100.
    pub weight: i32,
    /// They hold together.
    pub terms: Box<[SelectorTerm]>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AffinityJson {
    node_affinity: Option<NodeAffinityJson>,
    pod_affinity: Option<Required<Vec<PodTermJson>>>,
    pod_anti_affinity: Option<Required<Vec<PodTermJson>>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct Required<T> {
    #[serde(
        rename = "requiredDuringSchedulingIgnoredDuringExecution",
        default = "Option::default"
    )]
    required: Option<T>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeAffinityJson {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Option<NodeTermsJson>,
    #[serde(
        rename = "preferredDuringSchedulingIgnoredDuringExecution",
        deserialize_with = "nullable"
    )]
    preferred: Vec<PreferredJson>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PreferredJson {
    #[serde(deserialize_with = "nullable")]
    weight: i32,
    #[serde(deserialize_with = "nullable")]
    preference: NodeTermJson,
}

/// A node selector: alternatives of terms.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct NodeTermsJson {
    #[serde(deserialize_with = "nullable")]
    node_selector_terms: Vec<NodeTermJson>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct NodeTermJson {
    #[serde(deserialize_with = "nullable")]
    match_expressions: Vec<Expression>,
    #[serde(deserialize_with = "nullable")]
    match_fields: Vec<Expression>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodTermJson {
    label_selector: LabelSelector,
    namespace_selector: LabelSelector,
    #[serde(deserialize_with = "nullable")]
    namespaces: Vec<Box<str>>,
    #[serde(deserialize_with = "nullable")]
    topology_key: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SpreadJson {
    #[serde(deserialize_with = "nullable")]
    max_skew: i32,
    min_domains: Option<i32>,
    #[serde(deserialize_with = "nullable")]
    topology_key: Box<str>,
    #[serde(deserialize_with = "nullable")]
    when_unsatisfiable: Box<str>,
    label_selector: LabelSelector,
    #[serde(deserialize_with = "nullable")]
    match_label_keys: Vec<Box<str>>,
    node_affinity_policy: Option<Box<str>>,
    node_taints_policy: Option<Box<str>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct TolerationJson {
    #[serde(deserialize_with = "nullable")]
    key: String,
    #[serde(deserialize_with = "nullable")]
    operator: String,
    #[serde(deserialize_with = "nullable")]
    value: String,
    #[serde(deserialize_with = "nullable")]
    effect: String,
}

impl AffinityJson {
    /// The alternatives of the required node affinity, if there is one.
    pub(super) fn node_terms(&mut self) -> Option<Vec<Vec<SelectorTerm>>> {
        self.node_affinity.as_mut()?.required.take().map(NodeTermsJson::read)
    }

    /// The terms of its preferred node affinity. As for kube-scheduler, one that is empty or cannot
    /// be read prefers nothing.
    pub(super) fn preferred_nodes(&mut self) -> Box<[PreferredNode]> {
        let affinity = self.node_affinity.as_mut();
        let written = affinity.map(|a| std::mem::take(&mut a.preferred)).unwrap_or_default();
        let read = |term: PreferredJson| {
            let terms = term.preference.read()?.into();
            (term.weight > 0).then_some(PreferredNode { weight: term.weight.min(100), terms })
        };
        written.into_iter().filter_map(read).collect()
    }

    /// The terms between pods, for a pod of this namespace.
    pub(super) fn between_pods(self, namespace: &str) -> InterPodAffinity {
        let read = |written: Option<Required<Vec<PodTermJson>>>| {
            let terms = written.and_then(|affinity| affinity.required).unwrap_or_default();
            terms.into_iter().map(|term| term.read(namespace)).collect()
        };
        InterPodAffinity {
            affinity: read(self.pod_affinity),
            anti_affinity: read(self.pod_anti_affinity),
        }
    }
}

impl NodeTermsJson {
    /// The alternatives that some node could satisfy. As for kube-scheduler, an alternative without
    /// a term, or with one that cannot be read, is satisfied by no node.
    pub(super) fn read(self) -> Vec<Vec<SelectorTerm>> {
        self.node_selector_terms.into_iter().filter_map(NodeTermJson::read).collect()
    }
}

impl NodeTermJson {
    fn read(self) -> Option<Vec<SelectorTerm>> {
        let labels = self.match_expressions.into_iter().map(node_term);
        let fields = self.match_fields.into_iter().map(field_term);
        let terms: Vec<SelectorTerm> = labels.chain(fields).collect::<Option<_>>()?;
        (!terms.is_empty()).then_some(terms)
    }
}

fn node_term(written: Expression) -> Option<SelectorTerm> {
    let operator = Operator::by_name(&written.operator)?;
    let values = written.values;
    let readable = match operator {
        Operator::In | Operator::NotIn => !values.is_empty(),
        Operator::Exists | Operator::DoesNotExist => values.is_empty(),
        Operator::Gt | Operator::Lt => values.len() == 1 && values[0].parse::<i64>().is_ok(),
    };
    // A number below zero is no label value: kube-scheduler does not read `Gt -5`.
    let readable = readable && values.iter().all(|value| is_label_value(value));
    let values = values.into_iter().map(String::from).collect();
    readable.then(|| SelectorTerm { key: written.key.into(), operator, values })
}

/// `matchFields` knows one field, the node's name, and one value.
fn field_term(written: Expression) -> Option<SelectorTerm> {
    let operator = Operator::by_name(&written.operator)?;
    let readable = matches!(operator, Operator::In | Operator::NotIn)
        && written.values.len() == 1
        && &*written.key == dovetail_model::node::NAME_LABEL;
    let values = written.values.into_iter().map(String::from).collect();
    readable.then(|| SelectorTerm { key: written.key.into(), operator, values })
}

impl PodTermJson {
    fn read(self, namespace: &str) -> PodTerm {
        let mut namespaces = self.namespaces;
        if namespaces.is_empty() && self.namespace_selector == LabelSelector::Nothing {
            namespaces.push(namespace.into());
        }
        namespaces.sort();
        namespaces.dedup();
        let pods = PodSelection {
            namespaces: namespaces.into(),
            namespace_selector: self.namespace_selector,
            selector: self.label_selector,
        };
        PodTerm { pods, topology_key: self.topology_key }
    }
}

impl SpreadJson {
    pub(super) fn is_hard(&self) -> bool {
        &*self.when_unsatisfiable == "DoNotSchedule"
    }

    /// The constraint for a pod with these labels.
    pub(super) fn read(self, labels: &Labels) -> SpreadConstraint {
        let keys = self.match_label_keys.iter();
        let pairs = keys.filter_map(|key| Some((&**key, labels.get(key)?)));
        let honors = |policy: Option<Box<str>>, default| {
            policy.map_or(default, |policy| &*policy == "Honor")
        };
        SpreadConstraint {
            max_skew: self.max_skew.max(0).cast_unsigned(),
            min_domains: self.min_domains.map(|domains| domains.max(0).cast_unsigned()),
            topology_key: self.topology_key,
            selector: self.label_selector.and_labels(pairs),
            honor_affinity: honors(self.node_affinity_policy, true),
            honor_taints: honors(self.node_taints_policy, false),
        }
    }
}

impl TolerationJson {
    /// The toleration, if it can tolerate anything: comparisons of numbers and effects that are not
    /// known tolerate nothing.
    pub(super) fn read(self) -> Option<Toleration> {
        let any_value = match self.operator.as_str() {
            "" | "Equal" => false,
            "Exists" => true,
            _ => return None,
        };
        let effect = match self.effect.as_str() {
            "" => None,
            effect => Some(TaintEffect::by_name(effect)?),
        };
        Some(Toleration { key: self.key, any_value, value: self.value, effect })
    }
}

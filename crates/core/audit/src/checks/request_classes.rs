//! Pending pods that ask for the same, and nodes that are the same to them. What a pod may use, and
//! what a node has under which name, is judged once for each class of pods and kind of node.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{NodeCondition, Resources, Taint, Toleration, memory_label};
use rustc_hash::FxHashMap;

use super::cut_gpus::Places;
use super::instance_request::{InstanceRequest, profile_of};
use super::profile_names::ProfileNames;
use super::view::label_keys;
use crate::facts::{Gpus, Node};

/// The kinds of some nodes: labels, as far as pods ask for them, taints and GPUs are the same.
pub(super) struct NodeKinds<'f> {
    /// The kind of each node, in their order.
    of_nodes: Vec<usize>,
    /// The first node of each kind.
    first: Vec<&'f Node>,
}

type KindKey<'f> =
    (Vec<Option<&'f str>>, &'f [Taint], &'f BTreeMap<String, Gpus>, Option<&'f str>, usize);

impl<'f> NodeKinds<'f> {
    /// Those of nodes for pods with these requests.
    pub(super) fn of(
        nodes: impl Iterator<Item = &'f Node>,
        requests: &[InstanceRequest<'_>],
    ) -> Self {
        let keys: BTreeSet<&str> =
            requests.iter().flat_map(|request| label_keys(request.workload)).collect();
        let mut numbers: BTreeMap<KindKey<'f>, usize> = BTreeMap::new();
        let (mut of_nodes, mut first) = (Vec::new(), Vec::new());
        for node in nodes {
            let labels: Vec<Option<&str>> = keys.iter().map(|key| node.node.label(key)).collect();
            let memory = memory_label(|key| node.node.labels.get(key).map(String::as_str));
            let taints = node.node.taints.as_slice();
            let key: KindKey<'f> = (labels, taints, &node.gpus, memory, node.devices.len());
            let kind = *numbers.entry(key).or_insert_with(|| {
                first.push(node);
                first.len() - 1
            });
            of_nodes.push(kind);
        }
        Self { of_nodes, first }
    }

    /// The kind of the node at a place.
    pub(super) fn at(&self, place: usize) -> usize {
        self.of_nodes[place]
    }
}

/// What nodes of a kind have for one pod of a class.
pub(super) struct KindOffer {
    /// Where the table of their GPUs has the profiles, if they offer or would offer them under the
    /// requested names.
    pub(super) offered: Option<Places>,
    /// The same if a new layout has instances under these names.
    pub(super) created: Option<Places>,
}

/// Pending pods that are alike in all that decides where they start.
pub(super) struct RequestClass<'f> {
    pub(super) request: InstanceRequest<'f>,
    /// By kind of node; `None` where labels or taints keep the pods away.
    kinds: Vec<Option<KindOffer>>,
    /// Places of the nodes that they may use.
    pub(super) usable: Vec<usize>,
    /// How many of these, from the first one on, start no more of the pods as they are: nothing
    /// makes them start more.
    pub(super) passed: usize,
    /// Places of the nodes that serve pods with another layout, best first, and how many of these
    /// serve no more; `None` before anybody asked.
    pub(super) able: Option<(Vec<usize>, usize)>,
}

impl<'f> RequestClass<'f> {
    fn of(request: InstanceRequest<'f>, names: &ProfileNames<'f>, kinds: &NodeKinds<'f>) -> Self {
        let offers = kinds.first.iter().map(|node| {
            request.may_use(node).then(|| KindOffer {
                offered: places(&request, |name| names.offered_at(node, name)),
                created: places(&request, |name| names.created_at(node, name)),
            })
        });
        let offers: Vec<Option<KindOffer>> = offers.collect();
        let usable = (0..kinds.of_nodes.len()).filter(|place| offers[kinds.at(*place)].is_some());
        Self { usable: usable.collect(), request, kinds: offers, passed: 0, able: None }
    }

    /// What nodes of a kind have for one of its pods, if these may use them.
    pub(super) fn offer(&self, kind: usize) -> Option<&KindOffer> {
        self.kinds[kind].as_ref()
    }
}

/// The places of the profiles of a request in a table; `None` if it lacks one of them.
fn places(
    request: &InstanceRequest<'_>,
    place_of: impl Fn(&str) -> Option<usize>,
) -> Option<Places> {
    let place = |(resource, count): &(&str, i64)| Some((place_of(profile_of(resource)?)?, *count));
    request.instances.iter().map(place).collect()
}

/// All that decides where a pod starts.
#[derive(PartialEq, Eq, Hash)]
struct ClassKey<'f> {
    units: Vec<(&'f str, i64)>,
    others: Resources,
    claimed: &'f BTreeMap<String, i64>,
    tolerations: &'f [Toleration],
    conditions: &'f [NodeCondition],
}

impl<'f> ClassKey<'f> {
    fn of(request: &InstanceRequest<'f>) -> Self {
        let template = &request.workload.template;
        Self {
            units: request.instances.iter().chain(&request.beside).copied().collect(),
            others: request.others.clone(),
            claimed: &template.claimed_gpus,
            tolerations: &template.tolerations,
            conditions: &template.node_conditions,
        }
    }
}

/// The classes of some requests, and the place of each request's class among them.
pub(super) fn classes<'f>(
    requests: Vec<InstanceRequest<'f>>,
    names: &ProfileNames<'f>,
    kinds: &NodeKinds<'f>,
) -> (Vec<RequestClass<'f>>, Vec<usize>) {
    let mut numbers: FxHashMap<ClassKey<'f>, usize> = FxHashMap::default();
    let (mut classes, mut of_requests) = (Vec::new(), Vec::new());
    for request in requests {
        let next = classes.len();
        let number = *numbers.entry(ClassKey::of(&request)).or_insert(next);
        if number == next {
            classes.push(RequestClass::of(request, names, kinds));
        }
        of_requests.push(number);
    }
    (classes, of_requests)
}

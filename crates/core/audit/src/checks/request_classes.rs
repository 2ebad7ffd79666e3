//! Pending pods that ask for the same, and nodes that are the same to them. Whether pods may use a
//! node is judged once for each class of pods and each kind of labels and taints, and what a node
//! has under which name once for each class and kind of GPUs: of these there are few, even where
//! pods ask for nodes by name.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use dovetail_facts::{Gpus, Node};
use dovetail_model::{NodeCondition, Resources, Taint, Toleration, memory_label};
use rustc_hash::FxHashMap;

use super::cut_gpus::Places;
use super::instance_request::{InstanceRequest, profile_of};
use super::profile_names::ProfileNames;
use super::view::label_keys;

/// Nodes that pods cannot tell apart, numbered.
pub(super) struct NodeKinds<'f> {
    /// Those whose labels, as far as pods ask for them, and taints are the same.
    places: Kinds<'f>,
    /// Those whose GPUs are the same.
    gpus: Kinds<'f>,
}

struct Kinds<'f> {
    /// The kind of each node, in their order.
    of_nodes: Vec<usize>,
    /// The first node of each kind.
    first: Vec<&'f Node>,
}

impl<'f> Kinds<'f> {
    /// Nodes with the same key are of one kind.
    fn of<K: Ord>(nodes: &[&'f Node], key: impl Fn(&'f Node) -> K) -> Self {
        let mut numbers: BTreeMap<K, usize> = BTreeMap::new();
        let (mut of_nodes, mut first) = (Vec::new(), Vec::new());
        for node in nodes.iter().copied() {
            let next = numbers.len();
            let kind = *numbers.entry(key(node)).or_insert(next);
            if kind == next {
                first.push(node);
            }
            of_nodes.push(kind);
        }
        Self { of_nodes, first }
    }
}

/// Labels and taints.
type PlaceKey<'f> = (Vec<Option<&'f str>>, &'f [Taint]);

/// GPUs, their memory, and how many there are.
type GpuKey<'f> = (&'f BTreeMap<String, Gpus>, Option<&'f str>, usize);

impl<'f> NodeKinds<'f> {
    /// Those of nodes for pods with these requests.
    pub(super) fn of(
        nodes: impl Iterator<Item = &'f Node>,
        requests: &[InstanceRequest<'_>],
    ) -> Self {
        let keys: BTreeSet<&str> =
            requests.iter().flat_map(|request| label_keys(request.workload)).collect();
        let nodes: Vec<&'f Node> = nodes.collect();
        let place = |node: &'f Node| -> PlaceKey<'f> {
            let labels = keys.iter().map(|key| node.node.label(key)).collect();
            (labels, node.node.taints.as_slice())
        };
        let gpus = |node: &'f Node| -> GpuKey<'f> {
            let label = |key: &str| node.node.labels.get(key).map(String::as_str);
            (&node.gpus, memory_label(label), node.devices.len())
        };
        Self { places: Kinds::of(&nodes, place), gpus: Kinds::of(&nodes, gpus) }
    }

    /// The kind of the GPUs of the node at a place.
    pub(super) fn at(&self, place: usize) -> usize {
        self.gpus.of_nodes[place]
    }
}

/// What nodes with GPUs of a kind have for one pod of a class.
pub(super) struct KindOffer {
    /// Where the table of their GPUs has the profiles, if they offer or would offer them under the
    /// requested names.
    pub(super) offered: Option<Places>,
    /// The same if a new layout has instances under these names.
    pub(super) created: Option<Places>,
}

/// Places of nodes, by which kinds of labels and taints may be used.
type UsableNodes = BTreeMap<Vec<bool>, Rc<[usize]>>;

/// Pending pods that are alike in all that decides where they start.
pub(super) struct RequestClass<'f> {
    pub(super) request: InstanceRequest<'f>,
    /// By kind of GPUs.
    offers: Vec<KindOffer>,
    /// Places of the nodes that they may use: classes that may use the same share it.
    pub(super) usable: Rc<[usize]>,
    /// How many of these, from the first one on, start no more of the pods as they are: nothing
    /// makes them start more.
    pub(super) passed: usize,
    /// Places of the nodes that serve pods with another layout, best first, and how many of these
    /// serve no more; `None` before anybody asked.
    pub(super) able: Option<(Vec<usize>, usize)>,
}

impl<'f> RequestClass<'f> {
    fn of(
        request: InstanceRequest<'f>,
        names: &ProfileNames<'f>,
        kinds: &NodeKinds<'f>,
        known: &mut UsableNodes,
    ) -> Self {
        let offers = kinds.gpus.first.iter().map(|node| KindOffer {
            offered: places(&request, |name| names.offered_at(node, name)),
            created: places(&request, |name| names.created_at(node, name)),
        });
        let offers: Vec<KindOffer> = offers.collect();
        let places = &kinds.places;
        let may_use: Vec<bool> = places.first.iter().map(|node| request.may_use(node)).collect();
        let usable = known.entry(may_use).or_insert_with_key(|may_use| {
            let of_nodes = places.of_nodes.iter().enumerate();
            of_nodes.filter(|(_, kind)| may_use[**kind]).map(|(place, _)| place).collect()
        });
        let usable = Rc::clone(usable);
        Self { request, offers, usable, passed: 0, able: None }
    }

    /// What nodes with GPUs of a kind have for one of its pods, if it may use them.
    pub(super) fn offer(&self, kind: usize) -> &KindOffer {
        &self.offers[kind]
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
    let mut known = UsableNodes::new();
    for request in requests {
        let next = classes.len();
        let number = *numbers.entry(ClassKey::of(&request)).or_insert(next);
        if number == next {
            classes.push(RequestClass::of(request, names, kinds, &mut known));
        }
        of_requests.push(number);
    }
    (classes, of_requests)
}

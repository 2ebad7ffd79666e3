//! Which pending pods start on free MIG instances, and which nodes could provide those that the
//! others lack, once their GPUs get another layout. Nothing is counted for two pods.
//!
//! Pods that start as it is come first: a scheduler does not wait for a layout. A node counts for
//! the others only where a whole pod starts on it: the node provides all of the pod's instances and
//! its other GPUs, and has room for the rest of its requests. Free whole GPUs can be cut, but for
//! those that other pending pods ask for.
//!
//! What is free only becomes less, so a node that serves no pod of a class is not asked again for
//! that class. With P pods of C classes, N nodes and S states of GPUs, this takes C × N + P steps,
//! and C × S searches for layouts.

use std::collections::BTreeMap;
use std::rc::Rc;

use dovetail_facts::Node;
use dovetail_model::MigTable;

use super::View;
use super::cut_gpus::KnownLayouts;
use super::gpu_pods::GpuPods;
use super::instance_request::{InstanceRequest, profile_of};
use super::profile_names::{ProfileNames, lacks_memory_size};
use super::request_classes::{NodeKinds, RequestClass, classes};
use super::shapes::slices_milli;
use super::supply_node::{SupplyNode, nodes, whole_to_cut};
use crate::finding::Recut;

/// Why a layout would help pending pods, or would not.
#[derive(Clone)]
pub(super) enum Outlook<'f> {
    /// The pods wait for others to end, or nobody can tell: no layout is known to serve them
    /// sooner.
    Waits,
    ByLayout(NewLayouts<'f>),
    Never(Never),
}

/// Why no node could ever provide the instances.
#[derive(Clone)]
pub(super) enum Never {
    /// The nodes offer the profile under this name.
    NamedOtherwise(String),
    /// No node has so many GPUs as one pod needs.
    TooMany,
    /// The nodes have too little of something else.
    TooSmall,
    Unsupported,
}

/// Nodes that serve pods once they have other layouts; at least one.
#[derive(Clone)]
pub(super) struct NewLayouts<'f> {
    pub(super) nodes: Vec<Supplier<'f>>,
    /// What the instances for these pods are of GPUs, in milli-GPU.
    pub(super) milli: i64,
}

/// A node that serves pods once it has another layout.
#[derive(Clone)]
pub(super) struct Supplier<'f> {
    pub(super) node: &'f Node,
    /// That layout of one of its GPUs, in words.
    pub(super) layout: String,
    /// Whether this GPU is not in MIG mode.
    pub(super) is_whole: bool,
    /// How many pods have GPUs there.
    pub(super) pods: usize,
    /// What it gives.
    pub(super) recut: Recut,
}

/// The class of pods, the kind of the GPUs of a node, the number of their state, and how many whole
/// ones can be cut.
type CutKey = (usize, usize, usize, usize);

/// The nodes that pods can start on, and what is left of them beside the pods that were asked for.
pub(super) struct Supply<'f> {
    names: ProfileNames<'f>,
    nodes: Vec<SupplyNode<'f>>,
    kinds: NodeKinds<'f>,
    classes: Vec<RequestClass<'f>>,
    /// Free whole GPUs that may be cut, by the name of their table.
    whole: BTreeMap<String, usize>,
    known: KnownLayouts,
    /// Whether the first GPU that a pod of a class needs cut is whole; `None` if no layout of such
    /// GPUs serves it.
    cuts: BTreeMap<CutKey, Option<bool>>,
    /// Whether all GPUs of a node, which are of a kind, could ever serve one pod of a class.
    possible: BTreeMap<(usize, usize), bool>,
    /// What is said of a class that no layout serves any more.
    unserved: BTreeMap<usize, Outlook<'f>>,
    /// How many instances are free for each class: layouts do not change that.
    free: BTreeMap<usize, Vec<i64>>,
}

impl<'f> Supply<'f> {
    /// The supply for pods with these requests, and the class of each request.
    pub(super) fn of(
        view: &View<'f>,
        pods: &GpuPods<'f>,
        requests: Vec<InstanceRequest<'f>>,
    ) -> (Self, Vec<usize>) {
        let (names, nodes) = (ProfileNames::of(view.facts), nodes(view, pods));
        let kinds = NodeKinds::of(nodes.iter().map(|of| of.node), &requests);
        let (classes, of_requests) = classes(requests, &names, &kinds);
        let supply = Self {
            names,
            nodes,
            kinds,
            classes,
            whole: BTreeMap::new(),
            known: KnownLayouts::default(),
            cuts: BTreeMap::new(),
            possible: BTreeMap::new(),
            unserved: BTreeMap::new(),
            free: BTreeMap::new(),
        };
        (supply, of_requests)
    }

    /// Starts so many pods of a class on free instances, as many as there are for them; returns
    /// how many start. Nodes with pods that use GPUs come first: their layout does not change.
    pub(super) fn start(&mut self, class: usize, pods: i64) -> i64 {
        let class = &mut self.classes[class];
        let mut started = 0;
        while started < pods
            && let Some(place) = class.usable.get(class.passed)
        {
            let node = &mut self.nodes[*place];
            let takes = node.starts_now(&class.request).min(pods - started);
            if takes <= 0 {
                class.passed += 1;
                continue;
            }
            node.take(&class.request, takes);
            started += takes;
        }
        started
    }

    /// Once all pods have started that can: looks which GPUs can get other layouts.
    pub(super) fn open_gpus(&mut self, view: &View<'f>) {
        for node in &mut self.nodes {
            node.open_gpus(&self.names, &mut self.known);
        }
        self.whole = whole_to_cut(view, &self.names, &self.nodes);
    }

    /// How many instances of each profile are free on nodes that pods of a class may use, once all
    /// pods have started that can.
    pub(super) fn free(&mut self, class: usize) -> Vec<i64> {
        if let Some(known) = self.free.get(&class) {
            return known.clone();
        }
        let RequestClass { request, usable, .. } = &self.classes[class];
        let mut free = vec![0i64; request.instances.len()];
        for place in usable.iter() {
            for (free, (resource, _)) in free.iter_mut().zip(&request.instances) {
                *free = free.saturating_add(self.nodes[*place].free_of(resource));
            }
        }
        self.free.insert(class, free.clone());
        free
    }

    pub(super) fn request(&self, class: usize) -> &InstanceRequest<'f> {
        &self.classes[class].request
    }

    /// What so many pods of a class, which did not start, can expect of other layouts. Nodes with
    /// the fewest pods in the way come first, then those where no whole GPU needs to be cut.
    pub(super) fn outlook(&mut self, class: usize, pods: i64) -> Outlook<'f> {
        if let Some(known) = self.unserved.get(&class) {
            return known.clone();
        }
        if let Some(layouts) = self.new_layouts(class, pods) {
            return Outlook::ByLayout(layouts);
        }
        let outlook = self.without_node(class);
        self.unserved.insert(class, outlook.clone());
        outlook
    }

    /// The nodes that together serve so many pods, as far as pods that came before leave them the
    /// GPUs; `None` if none does.
    fn new_layouts(&mut self, class: usize, pods: i64) -> Option<NewLayouts<'f>> {
        let (able, mut passed) = match self.classes[class].able.take() {
            Some(known) => known,
            None => (self.able(class), 0),
        };
        let (mut left, mut nodes) = (pods, Vec::new());
        while left > 0
            && let Some(place) = able.get(passed)
        {
            let (gets, supplier) = self.give(class, *place, left);
            nodes.extend(supplier);
            left -= gets;
            if left > 0 {
                passed += 1;
            }
        }
        self.classes[class].able = Some((able, passed));
        let first: &Supplier<'f> = nodes.first()?;
        let table = self.names.table(first.node)?;
        let slices = self.slices_of_pod(class, first.node, table).saturating_mul(pods - left);
        Some(NewLayouts { milli: slices_milli(table, slices), nodes })
    }

    /// Compute slices of the instances of one pod on a node.
    fn slices_of_pod(&self, class: usize, node: &Node, table: &MigTable) -> i64 {
        let instances = self.classes[class].request.instances.iter();
        let slices = instances.map(|(resource, count)| {
            let name = profile_of(resource);
            let place = name.and_then(|name| self.names.created_at(node, name));
            let slices = place.map_or(0, |place| table.profiles[place].compute_slices);
            count.saturating_mul(i64::from(slices))
        });
        slices.fold(0i64, i64::saturating_add)
    }

    /// The places of the nodes that serve a pod of a class with another layout, best first.
    fn able(&mut self, class: usize) -> Vec<usize> {
        let mut able = Vec::new();
        let usable = Rc::clone(&self.classes[class].usable);
        for place in usable.iter().copied() {
            if self.nodes[place].rooms(&self.classes[class].request) <= 0 {
                continue;
            }
            if let Some(is_whole) = self.cut_of(class, place) {
                able.push((self.nodes[place].in_the_way(), is_whole, place));
            }
        }
        able.sort_unstable();
        able.into_iter().map(|(_, _, place)| place).collect()
    }

    /// Whether the first GPU that a node cuts for a pod of a class is whole; `None` if no layout
    /// of its GPUs serves it.
    fn cut_of(&mut self, class: usize, place: usize) -> Option<bool> {
        let (of, kind) = (&self.nodes[place], self.kinds.at(place));
        let RequestClass { request, .. } = &self.classes[class];
        let places = self.classes[class].offer(kind).created.as_ref()?;
        let table = self.names.table(of.node)?;
        let most_whole = most_whole(&self.whole, table, request).min(of.gpus.whole());
        let key = (class, kind, of.state, most_whole);
        if let Some(known) = self.cuts.get(&key) {
            return *known;
        }
        let stay = of.gpus.layouts(table, most_whole);
        let first = self.known.first_change(table, stay, places);
        let is_whole = first.map(|(first, _)| of.gpus.is_whole(first));
        self.cuts.insert(key, is_whole);
        is_whole
    }

    /// Cuts GPUs of a node for so many pods of a class at most; returns for how many, and what is
    /// said of the node if there are any.
    fn give(&mut self, class: usize, place: usize, most: i64) -> (i64, Option<Supplier<'f>>) {
        let none = (0, None);
        let class = &self.classes[class];
        let (request, of) = (&class.request, &mut self.nodes[place]);
        let rooms = of.rooms(request).min(most);
        let offer = class.offer(self.kinds.at(place));
        let Some(places) = &offer.created else { return none };
        let Some(table) = self.names.table(of.node).filter(|_| rooms > 0) else { return none };
        let mut layouts = of.gpus.layouts(table, most_whole(&self.whole, table, request));
        let Some((first, layout)) = self.known.first_change(table, layouts.clone(), places) else {
            return none;
        };
        let before = layouts.clone();
        let gets = self.known.add_pods(table, &mut layouts, places, rooms);
        let changed = before.iter().zip(&layouts).filter(|(before, after)| before != after);
        let mut recut = Recut { gpus: changed.count() as i64, ..Recut::default() };
        request.take(&mut recut.resources, gets);
        let layout = self.known.full_with(table, &layout);
        let supplier = Supplier {
            node: of.node,
            layout: self.names.words(of.node, &layout),
            is_whole: of.gpus.is_whole(first),
            pods: of.pods,
            recut,
        };
        let cut = of.cut(request, layouts, gets);
        of.state = self.known.number_of(&of.gpus);
        // Whole GPUs beside the instances are not to be cut for others, either.
        let used = usize::try_from(request.whole_gpus().saturating_mul(gets)).unwrap_or(usize::MAX);
        if let Some(left) = self.whole.get_mut(&table.name) {
            *left = left.saturating_sub(cut).saturating_sub(used);
        }
        (gets, Some(supplier))
    }

    /// Why no layout serves pods of a class.
    fn without_node(&mut self, class: usize) -> Outlook<'f> {
        let (mut has_few, mut is_small) = (false, false);
        let usable = Rc::clone(&self.classes[class].usable);
        for place in usable.iter().copied() {
            let of = &self.nodes[place];
            if lacks_memory_size(of.node) {
                return Outlook::Waits;
            }
            let RequestClass { request, .. } = &self.classes[class];
            if self.classes[class].offer(self.kinds.at(place)).offered.is_none() {
                continue;
            }
            if request.rooms(of.node, &of.used_by_own) <= 0 {
                is_small = true;
            } else if self.is_possible(class, place) {
                return Outlook::Waits;
            } else {
                has_few = true;
            }
        }
        Outlook::Never(match (has_few, is_small) {
            (true, _) => Never::TooMany,
            (false, true) => Never::TooSmall,
            (false, false) => match self.instead(class) {
                Some(name) => Never::NamedOtherwise(name.to_owned()),
                None => Never::Unsupported,
            },
        })
    }

    /// Whether all GPUs of a node together, had no pod any of them, could serve one pod.
    fn is_possible(&mut self, class: usize, place: usize) -> bool {
        let kind = self.kinds.at(place);
        if let Some(known) = self.possible.get(&(class, kind)) {
            return *known;
        }
        let RequestClass { request, .. } = &self.classes[class];
        let node = self.nodes[place].node;
        let offered = self.classes[class].offer(kind).offered.as_ref();
        let is_possible = offered.zip(self.names.table(node)).is_some_and(|(places, table)| {
            let whole = usize::try_from(request.whole_gpus()).unwrap_or(usize::MAX);
            let gpus = node.devices.len().max(1).saturating_sub(whole);
            let mut layouts = vec![vec![0u16; table.profiles.len()]; gpus];
            self.known.add_pods(table, &mut layouts, places, 1) > 0
        });
        self.possible.insert((class, kind), is_possible);
        is_possible
    }

    /// The name under which nodes offer a profile that pods of a class mean by another.
    fn instead(&self, class: usize) -> Option<&str> {
        let RequestClass { request, usable, .. } = &self.classes[class];
        let of_node = |name: &str| {
            let mut nodes = usable.iter().map(|place| self.nodes[*place].node);
            nodes.find_map(|node| self.names.instead(node, name))
        };
        let mut asked = request.instances.iter();
        asked.find_map(|(resource, _)| of_node(profile_of(resource)?))
    }
}

/// How many whole GPUs of a table can be cut for a request: none for pods that ask for whole ones,
/// too.
fn most_whole(
    whole: &BTreeMap<String, usize>,
    table: &MigTable,
    request: &InstanceRequest<'_>,
) -> usize {
    match request.whole_gpus() {
        0 => whole.get(&table.name).copied().unwrap_or(0),
        _ => 0,
    }
}

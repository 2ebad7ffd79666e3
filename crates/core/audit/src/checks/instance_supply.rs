//! Which nodes could provide the MIG instances that pending pods lack, once their GPUs get another
//! layout, and what pods that came before need of them.
//!
//! A node counts only where a whole pod starts on it: the node provides all of the pod's instances
//! and its other GPUs, and has room for the rest of its requests. Free whole GPUs can be cut, but
//! for those that other pending pods ask for.

use std::collections::BTreeMap;

use dovetail_model::MigTable;

use super::View;
use super::cut_gpus::{KnownLayouts, Places, Served};
use super::instance_request::{InstanceRequest, profile_of};
use super::profile_names::ProfileNames;
use super::shapes::slices_milli;
use super::supply_node::{SupplyNode, nodes, whole_to_cut};
use crate::facts::Node;

/// Why a layout would help pending pods, or would not.
pub(super) enum Outlook<'f> {
    /// What is free suffices, or the pods wait for others to end: no layout serves them sooner.
    Waits,
    /// These nodes serve pods that the free instances do not serve, once they have another layout.
    ByLayout(Vec<Supplier<'f>>),
    Never(Never),
}

/// Why no node could ever provide the instances.
pub(super) enum Never {
    /// The nodes offer the profile under this name.
    NamedOtherwise(String),
    /// No node has so many GPUs as one pod needs.
    TooMany,
    /// The nodes have too little of something else.
    TooSmall,
    Unsupported,
}

/// A node that serves pods once it has another layout.
pub(super) struct Supplier<'f> {
    pub(super) node: &'f Node,
    /// That layout of one of its GPUs, in words.
    pub(super) layout: String,
    /// Whether this GPU is not in MIG mode.
    pub(super) is_whole: bool,
    /// How many pods have GPUs there.
    pub(super) pods: usize,
    /// What the instances that the pods lack are of its GPUs, in milli-GPU.
    pub(super) lacking_milli: i64,
}

/// What a new layout of a node is able to.
#[derive(Clone, Copy)]
struct Ability {
    /// How many pods it serves.
    pods: i64,
    /// Whether the first GPU that changes is not in MIG mode.
    is_whole: bool,
}

/// A node that serves more pods with another layout.
struct Able {
    place: usize,
    /// How many start there as it is.
    now: i64,
    ability: Ability,
}

/// What requests ask for, and whether whole GPUs are part of it.
type RequestKey = (Vec<(String, i64)>, bool);

/// The nodes that pods can start on, and what pods that lacked instances need of them.
pub(super) struct Supply<'f> {
    names: ProfileNames<'f>,
    nodes: Vec<SupplyNode<'f>>,
    /// Free whole GPUs that may be cut, by the name of their table; and the same later.
    whole: BTreeMap<String, usize>,
    whole_later: BTreeMap<String, usize>,
    known: KnownLayouts,
    /// The number of each request.
    requests: BTreeMap<RequestKey, usize>,
    /// By request and place of the node.
    abilities: BTreeMap<(usize, usize), Option<Ability>>,
    /// The same later: how many pods it served after so many cuts of it, with so many whole GPUs.
    abilities_later: BTreeMap<(usize, usize), ((u64, usize), i64)>,
    /// Whether so many GPUs of a table could ever serve one pod of a request.
    possible: BTreeMap<(usize, String, usize), bool>,
}

impl<'f> Supply<'f> {
    pub(super) fn of(view: &View<'f>) -> Self {
        let (names, mut known) = (ProfileNames::of(view.facts), KnownLayouts::default());
        let nodes = nodes(view, &names, &mut known);
        let whole = whole_to_cut(view, &names, &nodes);
        Self {
            names,
            nodes,
            whole_later: whole.clone(),
            whole,
            known,
            requests: BTreeMap::new(),
            abilities: BTreeMap::new(),
            abilities_later: BTreeMap::new(),
            possible: BTreeMap::new(),
        }
    }

    /// How many instances of each profile of a request are free on nodes that its pods may use.
    pub(super) fn free(&self, request: &InstanceRequest<'_>) -> Vec<i64> {
        let nodes = self.nodes.iter().filter(|of| request.may_use(of.node));
        let mut free = vec![0i64; request.instances.len()];
        for of in nodes {
            for (free, (resource, _)) in free.iter_mut().zip(&request.instances) {
                *free = free.saturating_add(of.free_of(resource));
            }
        }
        free
    }

    /// What so many pending pods with a request can expect of other layouts. Nodes with the fewest
    /// pods in the way come first, then those where no whole GPU needs to be cut.
    pub(super) fn outlook(&mut self, request: &InstanceRequest<'_>, pods: i64) -> Outlook<'f> {
        let usable = self.nodes.iter().enumerate().filter(|(_, of)| request.may_use(of.node));
        let usable: Vec<(usize, i64)> =
            usable.map(|(place, of)| (place, of.starts_now(request))).collect();
        let start = usable.iter().fold(0i64, |sum, (_, now)| sum.saturating_add(*now));
        if start >= pods {
            return Outlook::Waits;
        }
        let number = self.number_of(request);
        let mut able = Vec::new();
        for (place, now) in &usable {
            let of = &self.nodes[*place];
            if of.rooms(request, &of.used) <= *now {
                continue;
            }
            let ability = self.ability(request, number, *place);
            let ability = ability.filter(|ability| ability.pods > *now);
            able.extend(ability.map(|ability| Able { place: *place, now: *now, ability }));
        }
        if able.is_empty() {
            return self.without_node(request, number, &usable);
        }
        let nodes = &self.nodes;
        able.sort_by_key(|able| {
            let of = &nodes[able.place];
            (of.pods, able.ability.is_whole, &of.node.node.name)
        });
        Outlook::ByLayout(self.shared_out(request, number, &able, pods - start))
    }

    /// The nodes that together serve so many pods more, as far as pods that came before leave them
    /// the GPUs; at least one.
    fn shared_out(
        &mut self,
        request: &InstanceRequest<'_>,
        number: usize,
        able: &[Able],
        lacking: i64,
    ) -> Vec<Supplier<'f>> {
        let (mut left, mut chosen) = (lacking, Vec::new());
        for of in able {
            if left <= 0 {
                break;
            }
            let gets = self.give(request, number, of, left);
            if gets > 0 {
                left -= gets;
                chosen.push(of);
            }
        }
        if chosen.is_empty() {
            chosen.extend(able.first());
        }
        chosen.into_iter().filter_map(|of| self.supplier(request, of, lacking)).collect()
    }

    fn supplier(
        &mut self,
        request: &InstanceRequest<'_>,
        able: &Able,
        lacking: i64,
    ) -> Option<Supplier<'f>> {
        let (_, layout) = self.served(request, able.place)?.first?;
        let SupplyNode { node, pods, .. } = self.nodes[able.place];
        let places = created(&self.names, node, request)?;
        let table = self.names.table(node)?;
        let layout = self.known.full_with(table, &layout);
        let slices = places.iter().map(|(place, count)| {
            count.saturating_mul(i64::from(table.profiles[*place].compute_slices))
        });
        let slices = slices.fold(0i64, i64::saturating_add).saturating_mul(lacking);
        Some(Supplier {
            node,
            layout: self.names.words(node, &layout),
            is_whole: able.ability.is_whole,
            pods,
            lacking_milli: slices_milli(table, slices),
        })
    }

    /// Cuts GPUs of a node for so many further pods at most; returns for how many.
    fn give(
        &mut self,
        request: &InstanceRequest<'_>,
        number: usize,
        able: &Able,
        most: i64,
    ) -> i64 {
        let of = &self.nodes[able.place];
        let rooms = of.rooms(request, &of.used_later);
        let served = self.ability_later(request, number, able.place).min(rooms);
        let gets = served.saturating_sub(able.now).clamp(0, most);
        if gets > 0 {
            self.cut(request, able.place, (able.now + gets, gets));
        }
        gets
    }

    /// Cuts GPUs of a node for so many pods, so many of which do not start there as it is.
    fn cut(&mut self, request: &InstanceRequest<'_>, place: usize, (pods, new): (i64, i64)) {
        let of = &mut self.nodes[place];
        let Some(places) = created(&self.names, of.node, request) else { return };
        let Some(table) = self.names.table(of.node) else { return };
        let most_whole = most_whole(&self.whole_later, table, request);
        let mut layouts = of.gpus_later.layouts(table, most_whole);
        self.known.add_pods(table, &mut layouts, &places, pods);
        let cut = of.gpus_later.set(layouts);
        request.take(&mut of.used_later, new);
        of.cuts += 1;
        if cut > 0 {
            let left = self.whole_later.entry(table.name.clone()).or_default();
            *left = left.saturating_sub(cut);
        }
    }

    /// How many pods a new layout of a node serves; `None` if that is none, or if the node would
    /// not offer the instances under the requested names.
    fn ability(
        &mut self,
        request: &InstanceRequest<'_>,
        number: usize,
        place: usize,
    ) -> Option<Ability> {
        if let Some(known) = self.abilities.get(&(number, place)) {
            return *known;
        }
        let ability = self.new_ability(request, place);
        self.abilities.insert((number, place), ability);
        ability
    }

    fn new_ability(&mut self, request: &InstanceRequest<'_>, place: usize) -> Option<Ability> {
        let Served { pods, first } = self.served(request, place)?;
        let (first, _) = first?;
        Some(Ability { pods, is_whole: self.nodes[place].gpus.is_whole(first) })
    }

    fn served(&mut self, request: &InstanceRequest<'_>, place: usize) -> Option<Served> {
        let of = &self.nodes[place];
        let places = created(&self.names, of.node, request)?;
        let table = self.names.table(of.node)?;
        let stay = of.gpus.layouts(table, most_whole(&self.whole, table, request));
        Some(self.known.served(table, stay, &places))
    }

    /// The same beside what pods that came before need.
    fn ability_later(&mut self, request: &InstanceRequest<'_>, number: usize, place: usize) -> i64 {
        let of = &self.nodes[place];
        let Some(table) = self.names.table(of.node) else { return 0 };
        let most_whole = most_whole(&self.whole_later, table, request).min(of.gpus_later.whole());
        let state = (of.cuts, most_whole);
        if let Some((known, pods)) = self.abilities_later.get(&(number, place))
            && *known == state
        {
            return *pods;
        }
        let Some(places) = created(&self.names, of.node, request) else { return 0 };
        let stay = of.gpus_later.layouts(table, most_whole);
        let pods = self.known.served(table, stay, &places).pods;
        self.abilities_later.insert((number, place), (state, pods));
        pods
    }

    fn number_of(&mut self, request: &InstanceRequest<'_>) -> usize {
        let instances = request.instances.iter();
        let instances = instances.map(|(resource, count)| ((*resource).to_owned(), *count));
        let next = self.requests.len();
        let key: RequestKey = (instances.collect(), request.whole_gpus() > 0);
        *self.requests.entry(key).or_insert(next)
    }

    /// Why no layout serves more pods; `usable`: the places of the nodes that labels and taints
    /// leave to the pods.
    fn without_node(
        &mut self,
        request: &InstanceRequest<'_>,
        number: usize,
        usable: &[(usize, i64)],
    ) -> Outlook<'f> {
        let (mut has_few, mut is_small) = (false, false);
        for (place, _) in usable {
            let of = &self.nodes[*place];
            let Some(places) = offered(&self.names, of.node, request) else { continue };
            if request.rooms(of.node, &of.used_by_own) <= 0 {
                is_small = true;
            } else if self.is_possible(request, number, (*place, places.as_slice())) {
                return Outlook::Waits;
            } else {
                has_few = true;
            }
        }
        Outlook::Never(match (has_few, is_small) {
            (true, _) => Never::TooMany,
            (false, true) => Never::TooSmall,
            (false, false) => match self.instead(request, usable) {
                Some(name) => Never::NamedOtherwise(name.to_owned()),
                None => Never::Unsupported,
            },
        })
    }

    /// Whether all GPUs of a node together, had no pod any of them, could serve one pod.
    fn is_possible(
        &mut self,
        request: &InstanceRequest<'_>,
        number: usize,
        (place, places): (usize, &[(usize, i64)]),
    ) -> bool {
        let node = self.nodes[place].node;
        let Some(table) = self.names.table(node) else { return false };
        let whole = usize::try_from(request.whole_gpus()).unwrap_or(usize::MAX);
        let gpus = node.devices.len().max(1).saturating_sub(whole);
        let key = (number, table.name.clone(), gpus);
        if let Some(known) = self.possible.get(&key) {
            return *known;
        }
        let mut layouts = vec![vec![0u16; table.profiles.len()]; gpus];
        let is_possible = self.known.add_pods(table, &mut layouts, places, 1) > 0;
        self.possible.insert(key, is_possible);
        is_possible
    }

    /// The name under which nodes offer a profile that pods mean by another.
    fn instead(&self, request: &InstanceRequest<'_>, usable: &[(usize, i64)]) -> Option<&str> {
        let of_node = |name: &str| {
            let mut nodes = usable.iter().map(|(place, _)| self.nodes[*place].node);
            nodes.find_map(|node| self.names.instead(node, name))
        };
        let mut asked = request.instances.iter();
        asked.find_map(|(resource, _)| of_node(profile_of(resource)?))
    }
}

/// The places of the profiles of a request in the table of a node that offers, or would offer, them
/// under the requested names; `None` if it has another name for one of them.
fn offered(names: &ProfileNames<'_>, node: &Node, request: &InstanceRequest<'_>) -> Option<Places> {
    let place = |(resource, count): &(&str, i64)| {
        Some((names.offered_at(node, profile_of(resource)?)?, *count))
    };
    request.instances.iter().map(place).collect()
}

/// The same where a new layout has instances under these names.
fn created(names: &ProfileNames<'_>, node: &Node, request: &InstanceRequest<'_>) -> Option<Places> {
    let place = |(resource, count): &(&str, i64)| {
        Some((names.created_at(node, profile_of(resource)?)?, *count))
    };
    request.instances.iter().map(place).collect()
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

//! The network as nodes and other objects tell it: in which domain of each level a node is.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_model::Topology;
use dovetail_objects::{HyperNode, Kind, Node, TopologyLabels};

use super::World;
use super::hyper_nodes::HyperNodes;
use crate::translate::levels::{KnownLevels, Levels, Rivals, SaidOfLevel};

/// What is known about levels and domains.
#[derive(Debug, Default)]
pub(super) struct Network {
    /// The levels of the settings.
    set: Levels,
    /// The same, with the labels that Topologies of Kueue and of KAI name.
    levels: Levels,
    /// The levels as the engine knows them.
    pub(super) topology: Topology,
    pub(super) topologies: BTreeMap<(Kind, Box<str>), TopologyLabels>,
    pub(super) hyper_nodes: HyperNodes,
    /// How many nodes carry each level.
    carriers: Vec<usize>,
    groups: Groups,
}

/// How labels of one level group the nodes.
#[derive(Debug, Default)]
struct Groups {
    /// By label, how many nodes have a value of it in a domain, by the label that names that.
    by_label: BTreeMap<String, BTreeMap<(String, String, String), usize>>,
    rivals: Rivals,
    /// Whether the groups have changed since the rivals were looked for.
    is_stale: bool,
}

/// Where a node is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NodePlace {
    /// Its domains, as labels that no real node has.
    pub(super) domains: Vec<(String, String)>,
    /// The levels that it carries, as bits.
    carried: u32,
    said: Vec<SaidOfLevel>,
}

impl Groups {
    /// Notes what a node says now.
    fn count(&mut self, before: &[SaidOfLevel], now: &[SaidOfLevel]) {
        let said = before.iter().map(|said| (said, false));
        for (said, is_now) in said.chain(now.iter().map(|said| (said, true))) {
            let groups = self.by_label.entry(said.label.clone()).or_default();
            let (label, domain) = said.counts.clone();
            let group = (domain, said.value.clone(), label);
            let nodes = groups.entry(group.clone()).or_default();
            *nodes = if is_now { *nodes + 1 } else { nodes.saturating_sub(1) };
            self.is_stale |= *nodes == usize::from(is_now);
            if *nodes == 0 {
                groups.remove(&group);
            }
        }
    }

    /// Looks for rivals where something has changed; whether there are others than before.
    fn settle(&mut self) -> bool {
        if !std::mem::take(&mut self.is_stale) {
            return false;
        }
        let found = self.by_label.iter().filter_map(|(label, groups)| {
            rival_of(label, groups.keys()).map(|rival| (label.clone(), rival.to_owned()))
        });
        let found: Rivals = found.collect();
        let is_other = found != self.rivals;
        self.rivals = found;
        is_other
    }
}

/// A label that comes before this one, if domain and value do not stand for each other; of each
/// node that has it its domain, its value, and the label that names the domain.
fn rival_of<'g>(
    label: &str,
    groups: impl Iterator<Item = &'g (String, String, String)>,
) -> Option<&'g str> {
    let (mut value_of, mut domain_of) = (BTreeMap::new(), BTreeMap::new());
    let (mut rival, mut differ) = (None, false);
    for (domain, value, first) in groups {
        differ |= *value_of.entry(domain).or_insert(value) != value;
        differ |= *domain_of.entry(value).or_insert(domain) != domain;
        if *first != *label {
            rival = Some(first.as_str());
        }
    }
    rival.filter(|_| differ)
}

impl Network {
    pub(super) fn new(levels: Levels) -> Self {
        let topology = levels.topology();
        Self { set: levels.clone(), levels, topology, ..Self::default() }
    }

    /// The levels with what the nodes carry of them.
    pub(super) fn known(&self) -> KnownLevels<'_> {
        let carried = self.carriers.iter().enumerate().filter(|(_, nodes)| **nodes > 0);
        let carried = carried.fold(0, |bits, (number, _)| bits | 1 << number);
        KnownLevels { levels: &self.levels, carried, rivals: &self.groups.rivals }
    }

    fn place(&self, node: &Node) -> NodePlace {
        let tiers = self.hyper_nodes.of(node);
        let value_of = |label: &str| match label.strip_prefix("hypernode:") {
            Some(tier) => tiers.get(&tier.parse().ok()?).copied(),
            None => node.meta.labels.get(label),
        };
        let (domains, carried) = self.levels.place(value_of);
        NodePlace { domains, carried, said: self.levels.said(value_of) }
    }

    /// Counts the carriers of each level anew; whether a level is carried that was not, or not any
    /// more.
    fn count(&mut self, before: &NodePlace, now: &NodePlace) -> bool {
        let mut turned = false;
        self.carriers.resize(self.topology.levels.len(), 0);
        for (number, carriers) in self.carriers.iter_mut().enumerate() {
            let has = |place: &NodePlace| place.carried & (1 << number) != 0;
            match (has(before), has(now)) {
                (false, true) => *carriers += 1,
                (true, false) => *carriers -= 1,
                _ => continue,
            }
            turned |= *carriers == usize::from(has(now));
        }
        turned
    }
}

impl World {
    /// Notes where a node is that is new, different or gone.
    pub(super) fn place_node(&mut self, name: &str) {
        let place = match self.nodes.get(name) {
            Some(node) => self.network.place(node),
            None => NodePlace::default(),
        };
        let Some(known) = self.nodes.place_mut(name) else { return };
        if *known == place {
            return;
        }
        let turned = self.network.count(known, &place);
        self.network.groups.count(&known.said, &place.said);
        *known = place;
        self.dirty.nodes.insert(name.into());
        if turned {
            self.dirty.gangs.extend(self.gangs.names().map(Arc::clone));
        }
    }

    /// Looks at all gangs again if labels of nodes mean other levels than before.
    pub(super) fn settle_labels_of_levels(&mut self) {
        if self.network.groups.settle() {
            self.dirty.gangs.extend(self.gangs.names().map(Arc::clone));
        }
    }

    /// Notes where all nodes are: what says it has changed.
    pub(super) fn place_all_nodes(&mut self) {
        let names: Vec<Box<str>> = self.nodes.names().map(Box::from).collect();
        names.iter().for_each(|name| self.place_node(name));
    }

    /// A Topology is there, different, or gone.
    pub(super) fn set_topology(
        &mut self,
        kind: Kind,
        name: &str,
        topology: Option<TopologyLabels>,
    ) {
        let topologies = &mut self.network.topologies;
        let key = (kind, Box::from(name));
        match topology {
            Some(topology) => topologies.insert(key, topology),
            None => topologies.remove(&key),
        };
        let named = self.network.topologies.values().map(|topology| &topology.labels[..]);
        let levels = self.network.set.with_labels_of(named);
        if levels == self.network.levels {
            return;
        }
        self.network.levels = levels;
        self.dirty.gangs.extend(self.gangs.names().map(Arc::clone));
        if self.is_ready {
            self.place_all_nodes();
        }
    }

    /// A HyperNode is there, different, or gone.
    pub(super) fn set_hyper_node(&mut self, name: &str, hyper_node: Option<HyperNode>) {
        self.network.hyper_nodes.set(name, hyper_node);
        if self.is_ready {
            self.place_all_nodes();
        }
    }
}

//! The network as nodes and other objects tell it: in which domain of each level a node is.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_model::Topology;

use super::World;
use super::hyper_nodes::HyperNodes;
use crate::object::{HyperNode, Kind, Node, TopologyLabels};
use crate::translate::levels::{KnownLevels, Levels};

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
}

/// Where a node is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NodePlace {
    /// Its domains, as labels that no real node has.
    pub(super) domains: Vec<(String, String)>,
    /// The levels that it carries, as bits.
    carried: u32,
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
        KnownLevels { levels: &self.levels, carried }
    }

    fn place(&self, node: &Node) -> NodePlace {
        let tiers = self.hyper_nodes.of(node);
        let value_of = |label: &str| match label.strip_prefix("hypernode:") {
            Some(tier) => tiers.get(&tier.parse().ok()?).copied(),
            None => node.meta.labels.get(label),
        };
        let (domains, carried) = self.levels.place(value_of);
        NodePlace { domains, carried }
    }

    /// Counts the carriers of each level anew; whether a level is carried that was not, or not any more.
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
        *known = place;
        self.dirty.nodes.insert(name.into());
        if turned {
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

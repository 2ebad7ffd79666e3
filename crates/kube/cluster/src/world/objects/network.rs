//! The network, as nodes and other objects describe it: in which domain of each level a node is.

use std::collections::BTreeMap;

use dovetail_model::Topology;
use dovetail_objects::{Kind, Node, TopologyLabels};

use super::hyper_nodes::HyperNodes;
use super::nodes::Nodes;
use dovetail_translate::levels::{KnownLevels, Rivals, SaidOfLevel, TopologyLevels};

/// What is known about levels and domains.
#[derive(Debug, Default)]
pub(crate) struct Network {
    /// The levels of the settings.
    set: TopologyLevels,
    /// The same, with the labels that Topologies of Kueue and of KAI name.
    levels: TopologyLevels,
    /// The levels as the engine knows them.
    pub(crate) topology: Topology,
    pub(crate) topologies: BTreeMap<(Kind, Box<str>), TopologyLabels>,
    pub(crate) hyper_nodes: HyperNodes,
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

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NodePlace {
    /// Its domains, as labels that no real node has.
    pub(crate) domains: Vec<(String, String)>,
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
    pub(crate) fn new(levels: TopologyLevels) -> Self {
        let topology = levels.topology();
        Self { set: levels.clone(), levels, topology, ..Self::default() }
    }

    /// The levels with what the nodes carry of them.
    pub(crate) fn known(&self) -> KnownLevels<'_> {
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

    /// Counts the carriers of each level again; whether a level is carried that was not, or not any
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

    /// Notes where a node is that is new, different or gone. Whether that is elsewhere than before,
    /// and whether other levels are carried now.
    pub(crate) fn place_node(&mut self, name: &str, nodes: &mut Nodes) -> Placed {
        let place = match nodes.get(name) {
            Some(node) => self.place(node),
            None => NodePlace::default(),
        };
        let Some(known) = nodes.place_mut(name).filter(|known| **known != place) else {
            return Placed::default();
        };
        let concerns_gangs = self.count(known, &place);
        self.groups.count(&known.said, &place.said);
        *known = place;
        Placed { is_elsewhere: true, concerns_gangs }
    }

    /// Whether labels of nodes mean other levels than before, since the last call.
    pub(crate) fn settle_labels(&mut self) -> bool {
        self.groups.settle()
    }

    /// A Topology is there, different, or gone; whether there are other levels now.
    pub(crate) fn set_topology(
        &mut self,
        kind: Kind,
        name: &str,
        topology: Option<TopologyLabels>,
    ) -> bool {
        let key = (kind, Box::from(name));
        match topology {
            Some(topology) => self.topologies.insert(key, topology),
            None => self.topologies.remove(&key),
        };
        let named = self.topologies.values().map(|topology| &topology.labels[..]);
        let levels = self.set.with_labels_of(named);
        let is_other = levels != self.levels;
        self.levels = levels;
        is_other
    }
}

/// What follows from where a node is.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    /// It is in other domains than before.
    pub(crate) is_elsewhere: bool,
    /// Levels are carried that were not, or not any more.
    pub(crate) concerns_gangs: bool,
}

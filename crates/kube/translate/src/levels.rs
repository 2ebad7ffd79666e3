//! Topology levels: which labels of a node say in which domain it is, and which level a request
//! means.
//!
//! A level has a name and the labels that mean it: clouds and tools have each their own. The first
//! of them that a node has names its domain. A node without any label of a level, but with one of a
//! narrower level, is in a domain of its narrower one alone: whatever the wider ones are, nodes of
//! one rack share them.

use dovetail_objects::labels;
use std::collections::BTreeMap;

use dovetail_model::Topology;
use dovetail_model::topology::{Level, NODE_LEVEL};
use serde::{Deserialize, Serialize};

/// The label of the node itself.
pub const HOST: &str = labels::HOST_NAME;

/// A level above the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelLabels {
    /// Its name, for people.
    pub name: String,
    /// Labels whose value names the domain; the first that a node has counts. `hypernode:2` is the
    /// name of the node's HyperNode of tier 2.
    pub labels: Vec<String>,
}

/// The levels above the node, widest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopologyLevels(Vec<LevelLabels>);

/// What is known of a cluster's levels when a request is read.
#[derive(Clone, Copy, Debug)]
pub struct KnownLevels<'a> {
    pub levels: &'a TopologyLevels,
    /// The numbers of those that a node carries, as bits.
    pub carried: u32,
    /// Which labels group the nodes otherwise than the domains of their levels do.
    pub rivals: &'a Rivals,
}

/// Labels of levels that group the nodes otherwise than the level's domains, since other labels of
/// it come first, each with one of those that come first.
pub type Rivals = BTreeMap<String, String>;

/// What a node says of one label of a level.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SaidOfLevel {
    pub label: String,
    pub value: String,
    /// The label that names the node's domain of that level, and the domain.
    pub counts: (String, String),
}

/// Most levels that there may be.
pub const MOST_LEVELS: usize = 16;

/// The levels where nobody says others: the zone; what clouds, Topograph, Kueue and Volcano call
/// the tiers of the network; the domain of NVLink.
const STANDARD: [(&str, &[&str]); 5] = [
    ("zone", &[labels::ZONE]),
    (
        "spine",
        &[
            "topology.k8s.aws/network-node-layer-1",
            "fabric.topograph.run/tier-2",
            "network.topology.nvidia.com/core",
            "hypernode:3",
        ],
    ),
    (
        "block",
        &[
            "topology.kubernetes.io/block",
            "cloud.google.com/gce-topology-block",
            "oci.oraclecloud.com/host.network_block_id",
            "topology.k8s.aws/network-node-layer-2",
            "fabric.topograph.run/tier-1",
            "network.topology.nvidia.com/spine",
            "cloud.provider.com/topology-block",
            "hypernode:2",
        ],
    ),
    (
        "rack",
        &[
            "topology.kubernetes.io/rack",
            "cloud.google.com/gce-topology-subblock",
            "oci.oraclecloud.com/host.rack_id",
            "topology.k8s.aws/network-node-layer-3",
            "fabric.topograph.run/tier-0",
            "network.topology.nvidia.com/leaf",
            "cloud.provider.com/topology-rack",
            "hypernode:1",
        ],
    ),
    (
        "clique",
        &[
            "nvidia.com/gpu.clique",
            "accelerator.topograph.run/domain",
            "network.topology.nvidia.com/accelerator",
            "topology.k8s.aws/ultraserver-id",
        ],
    ),
];

impl Default for TopologyLevels {
    fn default() -> Self {
        let level = |(name, labels): (&str, &[&str])| LevelLabels {
            name: name.to_owned(),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        };
        Self(STANDARD.map(level).into())
    }
}

impl TopologyLevels {
    /// Levels, widest first.
    ///
    /// # Errors
    /// When two have one name or one label, or one has none or that of the node itself, or there
    /// are more than [`MOST_LEVELS`].
    pub fn new(levels: Vec<LevelLabels>) -> Result<Self, String> {
        if levels.len() > MOST_LEVELS {
            return Err(format!("{} levels: at most {MOST_LEVELS} are supported", levels.len()));
        }
        for (at, level) in levels.iter().enumerate() {
            let name = &level.name;
            let before = &levels[..at];
            if name.is_empty() || name == NODE_LEVEL || name.contains([' ', ':', '/']) {
                let text =
                    "a level needs a name of its own, such as rack, without spaces, `:` and `/`";
                return Err(format!("level `{name}`: {text}; `{NODE_LEVEL}` is the node itself"));
            }
            if before.iter().any(|other| other.name == *name) {
                return Err(format!("level `{name}` is listed twice; give each level one entry"));
            }
            if level.labels.is_empty() {
                return Err(format!("level `{name}` has no labels: name those of your nodes"));
            }
            if level.labels.iter().any(|label| label == HOST) {
                return Err(format!(
                    "level `{name}` has label {HOST}, which is the node itself: remove the label; \
                     to request a single node, use level `{NODE_LEVEL}` or this label, which every \
                     cluster has below its narrowest level"
                ));
            }
            let taken = |label: &&String| before.iter().any(|other| other.labels.contains(label));
            if let Some(label) = level.labels.iter().find(taken) {
                return Err(format!("label {label} is in two levels: remove it from one of them"));
            }
        }
        Ok(Self(levels))
    }

    /// The same levels with the labels that Topologies of Kueue and of KAI name, widest first each.
    /// A label that no level has is one of the level above that of the next narrower label; the
    /// narrowest of them is one of `rack`, or of the narrowest level where there is none of that
    /// name. What would be above the widest level is left out.
    pub fn with_labels_of<'a>(&self, topologies: impl Iterator<Item = &'a [Box<str>]>) -> Self {
        let mut levels = self.clone();
        for labels in topologies {
            let rack = levels.names().position(|name| name == "rack");
            let mut next = rack.or(levels.0.len().checked_sub(1));
            for label in labels.iter().rev().filter(|label| &***label != HOST && !label.is_empty())
            {
                let has = |level: &LevelLabels| level.labels.iter().any(|known| **known == **label);
                let known = levels.0.iter().position(has);
                let Some(at) = known.or(next) else { break };
                if known.is_none() {
                    levels.0[at].labels.push(label.to_string());
                }
                next = at.checked_sub(1);
            }
        }
        levels
    }

    /// Their names, widest first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|level| level.name.as_str())
    }

    /// The levels as the engine knows them: each by a label that no real node has.
    pub fn topology(&self) -> Topology {
        let level = |name: &str| Level { name: name.to_owned(), label: level_label(name) };
        Topology { levels: self.names().map(level).collect() }
    }

    /// What a node says by its labels of levels that have several.
    pub fn said<'a>(&self, value_of: impl Fn(&str) -> Option<&'a str>) -> Vec<SaidOfLevel> {
        let mut all = Vec::new();
        for level in self.0.iter().filter(|level| level.labels.len() > 1) {
            let said = |label: &'_ String| Some((label.clone(), value_of(label)?.to_owned()));
            let said: Vec<(String, String)> = level
                .labels
                .iter()
                .filter_map(said)
                .filter(|(_, value)| !value.is_empty())
                .collect();
            let Some(counts) = said.first().cloned() else { continue };
            all.extend(said.into_iter().map(|(label, value)| {
                let counts = counts.clone();
                SaidOfLevel { label, value, counts }
            }));
        }
        all
    }

    /// Where a node is, by its labels: its domain of each level, widest first, as far as it is in
    /// any; and which levels it carries, as bits.
    pub fn place<'a>(
        &self,
        value_of: impl Fn(&str) -> Option<&'a str>,
    ) -> (Vec<(String, String)>, u32) {
        let mut domains: Vec<(String, String)> = Vec::new();
        let (mut carried, mut narrower) = (0, None);
        for (number, level) in self.0.iter().enumerate().rev() {
            let mut said = level.labels.iter().filter_map(|label| value_of(label));
            let value = said.find(|value| !value.is_empty());
            carried |= u32::from(value.is_some()) << number;
            let only = |narrower: &String| match narrower.strip_prefix('~') {
                Some(_) => narrower.clone(),
                None => format!("~{narrower}"),
            };
            let value = value.map(str::to_owned).or_else(|| narrower.as_ref().map(only));
            domains.extend(value.iter().map(|value| (level_label(&level.name), value.clone())));
            narrower = value;
        }
        domains.reverse();
        (domains, carried)
    }
}

impl KnownLevels<'_> {
    /// The level of a name.
    ///
    /// # Errors
    /// When there is none, or no node carries it: what is wrong and what to do.
    pub fn named(&self, name: &str) -> Result<String, String> {
        if name == NODE_LEVEL {
            return Ok(name.to_owned());
        }
        match self.levels.names().position(|known| known == name) {
            Some(number) => self.carried(number),
            None => {
                let known: Vec<&str> = self.levels.names().chain([NODE_LEVEL]).collect();
                Err(format!("there is no topology level `{name}`: use one of {}", known.join(", ")))
            }
        }
    }

    /// The level that a node label means.
    ///
    /// # Errors
    /// When it means none, or no node carries it: what is wrong and what to do.
    pub fn labelled(&self, label: &str) -> Result<String, String> {
        if label == HOST {
            return Ok(NODE_LEVEL.to_owned());
        }
        let means = |level: &LevelLabels| level.labels.iter().any(|known| known == label);
        match self.levels.0.iter().position(means) {
            Some(number) => match self.rivals.get(label) {
                None => self.carried(number),
                Some(rival) => Err(format!(
                    "its topology key {label} belongs to topology level `{}`, but the nodes also \
                     have label {rival}, which takes precedence at this level and groups the nodes \
                     differently: request {rival}, or give {label} a level of its own in \
                     dovetail.toml",
                    self.levels.0[number].name
                )),
            },
            None => Err(format!(
                "its topology key {label} does not belong to a topology level: add it to one in \
                 dovetail.toml, or use the label of one of these: {}",
                self.levels.names().collect::<Vec<_>>().join(", ")
            )),
        }
    }

    fn carried(&self, number: usize) -> Result<String, String> {
        let level = &self.levels.0[number];
        if self.carried & (1 << number) != 0 {
            return Ok(level.name.clone());
        }
        Err(format!(
            "it requests topology level `{}`, but no node has one of its labels ({}): label the \
             nodes, or request another level",
            level.name,
            level.labels.join(", ")
        ))
    }
}

/// What the label begins with by which the engine knows a level; no real label has a colon.
const LEVEL: &str = "dovetail.dev/level:";

/// The label by which the engine knows a level.
pub fn level_label(name: &str) -> String {
    format!("{LEVEL}{name}")
}

/// The level that such a label is of.
pub fn level_of_label(label: &str) -> Option<&str> {
    label.strip_prefix(LEVEL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(labels: &[(&str, &str)]) -> (Vec<String>, u32) {
        let labels: BTreeMap<&str, &str> = labels.iter().copied().collect();
        let (domains, carried) =
            TopologyLevels::default().place(|label| labels.get(label).copied());
        let short = |(level, value): (String, String)| {
            format!("{}={value}", level.trim_start_matches("dovetail.dev/level:"))
        };
        (domains.into_iter().map(short).collect(), carried)
    }

    #[test]
    fn the_labels_of_clouds_and_tools_mean_the_same_levels() {
        let aws = [
            ("topology.kubernetes.io/zone", "us-east-1a"),
            ("topology.k8s.aws/network-node-layer-1", "nn-1"),
            ("topology.k8s.aws/network-node-layer-2", "nn-2"),
            ("topology.k8s.aws/network-node-layer-3", "nn-3"),
        ];
        let all = ["zone=us-east-1a", "spine=nn-1", "block=nn-2", "rack=nn-3"];
        assert_eq!(place(&aws), (all.map(str::to_owned).to_vec(), 0b01111));
        let google = [
            ("topology.kubernetes.io/zone", "z"),
            ("cloud.google.com/gce-topology-block", "b"),
            ("cloud.google.com/gce-topology-subblock", "s"),
        ];
        // Nodes of one block share the spine, whichever that is.
        let all = ["zone=z", "spine=~b", "block=b", "rack=s"];
        assert_eq!(place(&google), (all.map(str::to_owned).to_vec(), 0b01101));
        let on_premises = [("nvidia.com/gpu.clique", "c.1"), ("topology.kubernetes.io/rack", "")];
        let all = ["zone=~c.1", "spine=~c.1", "block=~c.1", "rack=~c.1", "clique=c.1"];
        assert_eq!(place(&on_premises), (all.map(str::to_owned).to_vec(), 0b10000));
        assert_eq!(place(&[]), (Vec::new(), 0));
    }

    #[test]
    fn a_level_is_known_by_its_name_and_by_its_labels() {
        let levels = TopologyLevels::default();
        let known = KnownLevels { levels: &levels, carried: 0b01001, rivals: &Rivals::new() };
        assert_eq!(known.named("rack"), Ok("rack".to_owned()));
        assert_eq!(known.named("node"), Ok("node".to_owned()));
        assert_eq!(known.labelled("fabric.topograph.run/tier-0"), Ok("rack".to_owned()));
        assert_eq!(known.labelled(HOST), Ok("node".to_owned()));
        assert_eq!(
            known.named("row").unwrap_err(),
            "there is no topology level `row`: use one of zone, spine, block, rack, clique, node"
        );
        assert!(known.labelled("row").unwrap_err().contains("does not belong to a topology level"));
        assert_eq!(
            known.labelled("nvidia.com/gpu.clique").unwrap_err(),
            "it requests topology level `clique`, but no node has one of its labels \
             (nvidia.com/gpu.clique, accelerator.topograph.run/domain, \
             network.topology.nvidia.com/accelerator, topology.k8s.aws/ultraserver-id): label the \
             nodes, or request another level"
        );
    }

    #[test]
    fn labels_of_kueue_mean_the_levels_that_they_stand_between() {
        let of = |labels: &[&str]| {
            let boxed: Vec<Box<str>> = labels.iter().map(|label| Box::from(*label)).collect();
            let levels = TopologyLevels::default().with_labels_of([&boxed[..]].into_iter());
            let known = KnownLevels { levels: &levels, carried: u32::MAX, rivals: &Rivals::new() };
            let means = labels.iter().map(|label| known.labelled(label).unwrap_or_default());
            means.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of(&["x/pod", "x/row", HOST]), "block rack node");
        assert_eq!(
            of(&["x/hall", "topology.kubernetes.io/rack", "nvidia.com/gpu.clique"]),
            "block rack clique"
        );
        assert_eq!(of(&["a", "b", "c", "d", "e"]), " zone spine block rack");
    }

    #[test]
    fn levels_that_cannot_be_told_apart_are_refused() {
        let level = |name: &str, labels: &[&str]| LevelLabels {
            name: name.to_owned(),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        };
        let refused = |levels: Vec<LevelLabels>| TopologyLevels::new(levels).unwrap_err();
        assert!(refused(vec![level("node", &["a"])]).contains("is the node itself"));
        assert!(refused(vec![level("a", &["x"]), level("a", &["y"])]).contains("twice"));
        assert!(refused(vec![level("a", &["x"]), level("b", &["x"])]).contains("in two levels"));
        assert!(refused(vec![level("a", &[])]).contains("has no labels"));
        assert_eq!(
            refused(vec![level("rack", &["x"]), level("host", &["y", HOST])]),
            "level `host` has label kubernetes.io/hostname, which is the node itself: remove the \
             label; to request a single node, use level `node` or this label, which every cluster \
             has below its narrowest level"
        );
        assert!(refused((0..17).map(|at| level(&at.to_string(), &["x"])).collect()).contains("17"));
        assert!(TopologyLevels::new(vec![level("row", &["x"]), level("rack", &["y"])]).is_ok());
    }
}

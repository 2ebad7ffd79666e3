//! HyperNodes, and which of them a node is in.

use std::collections::{BTreeMap, BTreeSet};

use regex::{Regex, RegexBuilder};

use dovetail_objects::{HyperNode, HyperNodeSelector, LabelSelector, Labels, Node};

/// A pattern that would need more memory than this matches nothing.
const MOST_PATTERN_BYTES: usize = 1 << 20;

/// All HyperNodes, by name, and by what belongs to them.
#[derive(Debug, Default)]
pub(crate) struct HyperNodes {
    by_name: BTreeMap<Box<str>, HyperNode>,
    /// By whether a HyperNode is meant, and its or the node's name.
    by_member: BTreeMap<(bool, Box<str>), BTreeSet<Box<str>>>,
    /// Members that are not named one by one.
    chosen: BTreeMap<Box<str>, Vec<(bool, MemberChoice)>>,
}

/// Which members are meant.
#[derive(Debug)]
enum MemberChoice {
    Pattern(Option<Regex>),
    Labels(LabelSelector),
}

impl MemberChoice {
    fn accepts(&self, name: &str, labels: &Labels) -> bool {
        match self {
            Self::Pattern(pattern) => {
                pattern.as_ref().is_some_and(|pattern| pattern.is_match(name))
            }
            Self::Labels(selector) => selector.matches(labels),
        }
    }
}

impl HyperNodes {
    pub(crate) fn get(&self, name: &str) -> Option<&HyperNode> {
        self.by_name.get(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(|name| &**name)
    }

    /// Adds, replaces or forgets one.
    pub(crate) fn set(&mut self, name: &str, hyper_node: Option<HyperNode>) {
        self.by_name.remove(name);
        self.chosen.remove(name);
        self.by_member.retain(|_, parents| {
            parents.remove(name);
            !parents.is_empty()
        });
        let Some(hyper_node) = hyper_node else { return };
        for member in &hyper_node.members {
            let choice = match &member.selector {
                HyperNodeSelector::Name(of) => {
                    let parents = self.by_member.entry((member.is_hyper_node, of.clone()));
                    parents.or_default().insert(name.into());
                    continue;
                }
                HyperNodeSelector::Pattern(pattern) => {
                    let mut pattern = RegexBuilder::new(pattern);
                    MemberChoice::Pattern(pattern.size_limit(MOST_PATTERN_BYTES).build().ok())
                }
                HyperNodeSelector::Labels(selector) => MemberChoice::Labels(selector.clone()),
            };
            self.chosen.entry(name.into()).or_default().push((member.is_hyper_node, choice));
        }
        self.by_name.insert(name.into(), hyper_node);
    }

    /// The HyperNodes that a node is in, by tier.
    pub(crate) fn of(&self, node: &Node) -> BTreeMap<u32, &str> {
        let mut tiers: BTreeMap<u32, &str> = BTreeMap::new();
        if self.by_name.is_empty() {
            return tiers;
        }
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut next = self.parents(false, &node.meta.name, &node.meta.labels);
        // Each is looked at once, whatever they say of each other.
        while let Some(name) = next.pop() {
            let Some(hyper_node) = self.by_name.get(name).filter(|_| seen.insert(name)) else {
                continue;
            };
            let known = tiers.entry(hyper_node.tier).or_insert(name);
            *known = name.min(*known);
            next.extend(self.parents(true, name, &hyper_node.meta.labels));
        }
        tiers
    }

    fn parents(&self, is_hyper_node: bool, name: &str, labels: &Labels) -> Vec<&str> {
        let named = self.by_member.get(&(is_hyper_node, Box::from(name))).into_iter().flatten();
        let chosen = self.chosen.iter().filter(|(_, choices)| {
            let mut of_kind = choices.iter().filter(|(of, _)| *of == is_hyper_node);
            of_kind.any(|(_, choice)| choice.accepts(name, labels))
        });
        named.map(|name| &**name).chain(chosen.map(|(name, _)| &**name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn hyper_nodes(all: &[Value]) -> HyperNodes {
        let mut hyper_nodes = HyperNodes::default();
        for value in all {
            let one: HyperNode = serde_json::from_value(value.clone()).unwrap();
            hyper_nodes.set(&one.meta.name.clone(), Some(one));
        }
        hyper_nodes
    }

    fn hyper_node(name: &str, tier: u32, members: Value) -> Value {
        json!({"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode",
            "metadata": {"name": name}, "spec": {"tier": tier, "members": members}})
    }

    fn tiers(hyper_nodes: &HyperNodes, name: &str) -> Vec<(u32, String)> {
        let labels = json!({"switch": if name == "n9" { "s9" } else { "" }});
        let node = json!({"metadata": {"name": name, "labels": labels}});
        let node: Node = serde_json::from_value(node).unwrap();
        hyper_nodes.of(&node).into_iter().map(|(tier, name)| (tier, name.to_owned())).collect()
    }

    #[test]
    fn a_node_is_in_a_hyper_node_of_each_tier() {
        let node = |selector: Value| json!({"type": "Node", "selector": selector});
        let below = |selector: Value| json!({"type": "HyperNode", "selector": selector});
        let exact = |name: &str| json!({"exactMatch": {"name": name}});
        let mut all = hyper_nodes(&[
            hyper_node("s0", 1, json!([node(exact("n0")), node(exact("n1"))])),
            hyper_node("s1", 1, json!([node(json!({"regexMatch": {"pattern": "^n[23]$"}}))])),
            hyper_node(
                "s2",
                1,
                json!([node(json!({"labelMatch": {"matchLabels": {"switch": "s9"}}}))]),
            ),
            hyper_node("s3", 1, json!([node(json!({"regexMatch": {"pattern": "n[7"}}))])),
            hyper_node("t0", 2, json!([below(exact("s0")), below(exact("s1"))])),
            // Nonsense ends, too.
            hyper_node("u0", 3, json!([below(exact("t0")), below(exact("u0"))])),
        ]);
        let path =
            |one: &str| vec![(1, one.to_owned()), (2, "t0".to_owned()), (3, "u0".to_owned())];
        assert_eq!(tiers(&all, "n1"), path("s0"));
        assert_eq!(tiers(&all, "n3"), path("s1"));
        assert_eq!(tiers(&all, "n9"), [(1, "s2".to_owned())]);
        assert_eq!(tiers(&all, "n7"), []);
        all.set("t0", None);
        assert_eq!(tiers(&all, "n1"), [(1, "s0".to_owned())]);
    }
}

//! What kube-state-metrics said before a time in which it was away: exporters go on, and the pods
//! and nodes that they name are those that it knew.

use std::collections::BTreeSet;

use super::read::{KubeNode, KubePod, KubeState, KubeTable};
use crate::selector::chunks;

/// How long before a time is looked, what is nearer first.
pub const EARLIER_MS: [u64; 2] = [3_600_000, 86_400_000];

/// Pods, by namespace and name, and nodes that are named and not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    pub pods: BTreeSet<(String, String)>,
    pub nodes: BTreeSet<String>,
}

/// A question about some objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedEarlier {
    /// Where its answer belongs.
    pub table: KubeTable,
    pub query: String,
}

/// Questions in groups of few names; those of one group ask for the same objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlierQueries {
    pub nodes: Vec<Vec<AskedEarlier>>,
    /// For what stands above pods, and for labels of namespaces.
    pub namespaces: Vec<Vec<AskedEarlier>>,
    pub pods: Vec<Vec<AskedEarlier>>,
}

impl Unknown {
    /// Whether nothing is unknown.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty() && self.nodes.is_empty()
    }

    /// The questions for what was last said of them in a window.
    pub fn queries(&self, window_ms: u64) -> EarlierQueries {
        let of = |names: &[&str], label: &str, tables: &[KubeTable]| -> Vec<Vec<AskedEarlier>> {
            let of_chunk = |names: Vec<String>| {
                let names = names.join("|");
                let ask = |table: &KubeTable| {
                    let series = table.series();
                    let of = |label: &str| {
                        format!("last_over_time({series}{{{label}=~\"{names}\"}}[{window_ms}ms])")
                    };
                    let exported = format!("exported_{label}");
                    let query = format!("{} or {}", of(label), of(&exported));
                    AskedEarlier { table: *table, query }
                };
                tables.iter().map(ask).collect()
            };
            chunks(names).into_iter().map(of_chunk).collect()
        };
        let pods: BTreeSet<&str> = self.pods.iter().map(|(_, name)| name.as_str()).collect();
        let spaces: BTreeSet<&str> = self.pods.iter().map(|(space, _)| space.as_str()).collect();
        let nodes: Vec<&str> = self.nodes.iter().map(String::as_str).collect();
        let [pods, spaces] = [pods, spaces].map(|names| names.into_iter().collect::<Vec<_>>());
        let of_node = [KubeTable::NodeInfo, KubeTable::NodeLabels, KubeTable::NodeAllocatable];
        let of_space =
            [KubeTable::ReplicaSetOwner, KubeTable::JobOwner, KubeTable::NamespaceLabels];
        EarlierQueries {
            nodes: of(&nodes, "node", &of_node),
            namespaces: of(&spaces, "namespace", &of_space),
            pods: of(&pods, "pod", &[KubeTable::PodInfo, KubeTable::PodLabels]),
        }
    }
}

impl KubeState {
    /// Which of these pods and nodes are known at no time so far.
    pub fn unknown<'n>(
        &self,
        pods: impl Iterator<Item = (&'n str, &'n str)>,
        nodes: impl Iterator<Item = &'n str>,
    ) -> Unknown {
        let pods = pods.filter(|(namespace, pod)| self.pod(namespace, pod).is_none());
        let nodes = nodes.filter(|name| self.node(name).is_none());
        Unknown {
            pods: pods.map(|(namespace, pod)| (namespace.to_owned(), pod.to_owned())).collect(),
            nodes: nodes.map(str::to_owned).collect(),
        }
    }

    /// Takes what was said before of what is unknown. Who owned a pod stays so; where it stood may
    /// have changed meanwhile.
    pub fn take_earlier(&mut self, unknown: &Unknown, earlier: Self) {
        let pods = earlier.pods.into_iter().filter(|(key, _)| unknown.pods.contains(key));
        self.earlier_pods.extend(pods.map(|(key, pod)| {
            (key, KubePod { node: String::new(), nodes: BTreeSet::new(), ..pod })
        }));
        let nodes = earlier.nodes.into_iter().filter(|(name, _)| unknown.nodes.contains(name));
        self.earlier_nodes.extend(nodes);
        for (key, owner) in earlier.owners {
            self.owners.entry(key).or_insert(owner);
        }
        for (name, labels) in earlier.namespaces {
            self.namespaces.entry(name).or_insert(labels);
        }
    }

    /// A pod, as it was last seen.
    pub fn pod(&self, namespace: &str, pod: &str) -> Option<&KubePod> {
        let key = (namespace.to_owned(), pod.to_owned());
        self.pods.get(&key).or_else(|| self.earlier_pods.get(&key))
    }

    /// A node, as it was last seen.
    pub fn node(&self, name: &str) -> Option<&KubeNode> {
        self.nodes.get(name).or_else(|| self.earlier_nodes.get(name))
    }
}

//! Numbers of GPUs that cannot be, and what counts instead.

use std::collections::BTreeMap;
use std::fmt;

use dovetail_audit::{Held, Node};

/// A number of units of a resource that no machine has. Less of it counts, which is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clamped {
    /// The node.
    pub node: String,
    /// What is counted, for example `nvidia.com/gpu`.
    pub resource: String,
    /// What the objects say.
    pub said: i64,
    /// What counts.
    pub counted: i64,
    /// Namespace and name of the pod that holds most, where pods hold more than the node has;
    /// `None` where the node says that it has more than any machine.
    pub pod: Option<String>,
}

impl fmt::Display for Clamped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, resource, said, counted, pod } = self;
        match pod {
            None => write!(f, "node {node} says that it has {said} of {resource}: {counted} count"),
            Some(pod) => write!(
                f,
                "pods on node {node} hold {said} of {resource}, most of it {pod}, and it has fewer: {counted} count"
            ),
        }
    }
}

/// A pod that holds GPUs, with what it says.
pub(super) struct Said<'h> {
    pub(super) held: &'h Held,
    pub(super) namespace: &'h str,
    pub(super) units: i64,
}

/// Nodes whose pods hold more of a resource than is built in.
pub(super) fn beyond_the_node(said: &[Said<'_>], nodes: &[Node]) -> Vec<Clamped> {
    let mut sums: BTreeMap<(&str, &str), (i64, &Said<'_>)> = BTreeMap::new();
    for one in said {
        let key = (one.held.node.as_str(), one.held.resource.as_str());
        let (sum, most) = sums.entry(key).or_insert((0, one));
        *sum = sum.saturating_add(one.units);
        if one.units > most.units {
            *most = one;
        }
    }
    let nodes: BTreeMap<&str, &Node> = nodes.iter().map(|node| (&*node.node.name, node)).collect();
    let found = sums.into_iter().filter_map(|((node, resource), (sum, most))| {
        let gpus = nodes.get(node)?.gpus.get(resource)?;
        (sum > gpus.built_in).then(|| Clamped {
            node: node.to_owned(),
            resource: resource.to_owned(),
            said: sum,
            counted: gpus.allocatable,
            pod: Some(format!("{}/{}", most.namespace, most.held.pod)),
        })
    });
    found.collect()
}

//! Numbers of GPUs that cannot be, and what counts instead.

use std::collections::BTreeMap;
use std::fmt;

use dovetail_facts::{HeldGpus, Node};
use dovetail_model::is_gpu_resource;

use super::pods::{PodRecord, PodTemplateGroup};

/// Units of a GPU resource that one machine offers, or one container asks for, at most.
pub(super) const MOST_GPUS: i64 = 4096;

/// A number of units of a resource that no machine has. Less of it counts, and the report says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clamped {
    /// Whose number it is.
    pub of: ClampedOf,
    /// What is counted, for example `nvidia.com/gpu`.
    pub resource: String,
    /// What the objects say.
    pub said: i64,
    pub counted: i64,
}

/// Whose number of units cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClampedOf {
    /// A node offers more than any machine has, or less than nothing.
    Node(String),
    /// A pod, by namespace and name, asks for more than any machine has.
    Pod(String),
    /// The pods on a node hold more than it has.
    PodsOn {
        node: String,
        /// Namespace and name of the pod that holds most.
        most: String,
    },
}

impl fmt::Display for Clamped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of, resource, said, counted } = self;
        match of {
            ClampedOf::Node(node) => write!(f, "node {node} offers {said} {resource}"),
            ClampedOf::Pod(pod) => write!(f, "pod {pod} requests {said} {resource}"),
            ClampedOf::PodsOn { node, most } => {
                write!(f, "pods on node {node} have {said} {resource} allocated, most of it {most}")
            }
        }?;
        write!(f, " ({counted} counted)")
    }
}

/// Cuts what groups of pods ask for to what a machine can have, so that nothing behind the reader
/// adds up numbers that cannot be; answers with the first pod of each group that asked for more.
pub(super) fn cut_requests(groups: &mut [PodTemplateGroup], pods: &[PodRecord]) -> Vec<Clamped> {
    let mut cut = Vec::new();
    for group in groups {
        let template = &mut group.common.template;
        let amounts = template
            .containers
            .iter_mut()
            .flat_map(|container| container.limits.iter_mut().chain(&mut container.requests));
        let mut said: BTreeMap<&str, i64> = BTreeMap::new();
        for (resource, count) in amounts.chain(&mut template.claimed_gpus) {
            if *count > MOST_GPUS && is_gpu_resource(resource) {
                let most = said.entry(resource).or_default();
                *most = (*most).max(*count);
                *count = MOST_GPUS;
            }
        }
        // They add up what the containers ask for, which is named already.
        for (resource, count) in &mut template.requests.extended {
            if is_gpu_resource(resource) {
                *count = MOST_GPUS.min(*count);
            }
        }
        let meta = &pods[group.first].pod.meta;
        cut.extend(said.into_iter().map(|(resource, said)| Clamped {
            of: ClampedOf::Pod(format!("{}/{}", meta.namespace, meta.name)),
            resource: resource.to_owned(),
            said,
            counted: MOST_GPUS,
        }));
    }
    cut
}

/// A pod that holds GPUs, with what it says.
pub(super) struct ClampedHolder<'h> {
    pub(super) held: &'h HeldGpus,
    pub(super) namespace: &'h str,
    pub(super) units: i64,
}

/// Nodes whose pods hold more of a resource than is built in.
pub(super) fn beyond_the_node(said: &[ClampedHolder<'_>], nodes: &[Node]) -> Vec<Clamped> {
    let mut sums: BTreeMap<(&str, &str), (i64, &ClampedHolder<'_>)> = BTreeMap::new();
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
            of: ClampedOf::PodsOn {
                node: node.to_owned(),
                most: format!("{}/{}", most.namespace, most.held.pod),
            },
            resource: resource.to_owned(),
            said: sum,
            counted: gpus.allocatable,
        })
    });
    found.collect()
}

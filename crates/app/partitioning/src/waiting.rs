//! Pending pods as a plan has them: those that it does not tell apart, and those that ask for
//! several instances.

use std::collections::BTreeMap;

use dovetail_model::Resources;
use dovetail_translate::gang::GangName;

/// Pods that have been pending for less are not planned for, in milliseconds.
pub const YOUNG_MS: u64 = 60_000;

/// Pending pods that the plan does not tell apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaitingPods {
    /// For each node with GPUs whether they may go there.
    pub(crate) nodes: Vec<bool>,
    pub(crate) profile: String,
    pub(crate) priority: i32,
    /// They have been pending for long enough.
    pub(crate) is_due: bool,
    /// CPU, memory, disk and pod slots of one, and what pods request beside instances.
    pub(crate) each: Vec<i64>,
    /// They are served before all others: a pod gets all of these instances on one node or none,
    /// or their gang is tried first.
    pub(crate) is_first: bool,
    /// The place of their gang in the fleet, if they are of one that has not started.
    pub(crate) gang: Option<usize>,
}

/// Before all pods, except those that must get what they had before: so that a plan shows what it
/// costs the others to serve a pod with several instances, or a gang.
const FIRST_PRIORITY: i32 = i32::MAX - 1;

impl WaitingPods {
    /// Above all others if they are served first.
    pub(crate) fn planned_priority(&self) -> i32 {
        if self.is_first { FIRST_PRIORITY } else { self.priority }
    }
}

/// A pending pod that asks for instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeveralInstances {
    /// For each node with GPUs whether it may go there.
    pub(crate) nodes: Vec<bool>,
    /// How many of each profile.
    pub(crate) instances: BTreeMap<String, u32>,
    pub(crate) priority: i32,
    /// CPU, memory, disk and pod slots that it needs, and what pods request beside instances.
    pub(crate) each: Vec<i64>,
    /// The place of its gang in the fleet, if it is of one that has not started.
    pub(crate) gang: Option<usize>,
}

/// A gang that has not started, and what its pending pods ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WaitingGang {
    pub(crate) name: GangName,
    /// Fewest pods with instances that start together, if not all of them have to.
    pub(crate) fewest: Option<u32>,
    /// Instances of all its pods.
    instances: u32,
    /// A pod of it requests several.
    has_several: bool,
}

impl WaitingGang {
    /// A gang whose pods are not known yet.
    pub(crate) fn new(name: GangName, fewest: Option<u32>) -> Self {
        Self { name, fewest, instances: 0, has_several: false }
    }

    /// A pod of it asks for these instances; `None` if nothing is planned for the pod, so that the
    /// gang is never whole if all its pods start together.
    pub(crate) fn add(&mut self, asked: Option<&BTreeMap<String, u32>>) {
        let sum = |all: &BTreeMap<String, u32>| all.values().copied().fold(0, u32::saturating_add);
        let instances = asked.map_or(1, sum);
        self.has_several |= instances > 1;
        self.instances = self.instances.saturating_add(instances);
    }

    /// How many instances a plan must serve so that the gang can start. Instances are counted, not
    /// pods, so that all are needed if a pod requests several.
    pub(crate) fn needed(&self) -> u32 {
        self.fewest.filter(|_| !self.has_several).unwrap_or(self.instances)
    }
}

/// Pods with several instances that a plan serves, each on one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct PinnedPods {
    pods: u64,
    /// Their instances, as demand of the plan.
    instances: Vec<(WaitingPods, u32)>,
}

impl SeveralInstances {
    /// The profile, if it asks for one instance.
    pub(crate) fn only_instance(&self) -> Option<String> {
        let (profile, count) = self.instances.first_key_value()?;
        (*count == 1 && self.instances.len() == 1).then(|| profile.clone())
    }

    /// As one of the pods with one instance that the plan does not tell apart.
    pub(crate) fn pods(self, profile: String, is_due: bool, is_first: bool) -> WaitingPods {
        let Self { nodes, priority, each, gang, .. } = self;
        WaitingPods { nodes, profile, priority, is_due, each, is_first, gang }
    }

    /// Its instances on a node, as demand: one of them needs all of the rest that the pod needs, so
    /// that the pod fits exactly where its amounts do.
    pub(crate) fn on(&self, node: usize) -> Vec<(WaitingPods, u32)> {
        let mut nodes = vec![false; self.nodes.len()];
        nodes[node] = true;
        let part = |profile: &String, each: Vec<i64>| WaitingPods {
            nodes: nodes.clone(),
            profile: profile.clone(),
            priority: self.priority,
            is_due: true,
            each,
            is_first: true,
            gang: self.gang,
        };
        let mut parts = Vec::new();
        let last = self.instances.keys().next_back();
        for (profile, count) in &self.instances {
            let with_rest = u32::from(last == Some(profile));
            if with_rest > 0 {
                parts.push((part(profile, self.each.clone()), 1));
            }
            if *count > with_rest {
                parts.push((part(profile, vec![0; self.each.len()]), *count - with_rest));
            }
        }
        parts
    }
}

impl PinnedPods {
    /// The plan is to serve one more pod with these instances.
    pub(crate) fn add(&mut self, instances: Vec<(WaitingPods, u32)>) {
        self.pods += 1;
        self.instances.extend(instances);
    }

    /// Their instances, each with the node on which the plan is to serve it.
    pub(crate) fn instances(&self) -> impl Iterator<Item = (usize, &WaitingPods, u32)> {
        self.instances.iter().filter_map(|(pods, count)| {
            let node = pods.nodes.iter().position(|may_go| *may_go)?;
            Some((node, pods, *count))
        })
    }

    /// How many instances of each profile it is to serve on the nodes on which it serves some.
    pub(crate) fn by_node(&self) -> BTreeMap<usize, BTreeMap<String, u32>> {
        let mut by_node: BTreeMap<usize, BTreeMap<String, u32>> = BTreeMap::new();
        for (node, pods, count) in self.instances() {
            let of_node = by_node.entry(node).or_default();
            let known = of_node.entry(pods.profile.clone()).or_default();
            *known = known.saturating_add(count);
        }
        by_node
    }

    /// How many instances the plan must serve so that each of them has all of its own.
    pub(crate) fn needed(&self) -> BTreeMap<&WaitingPods, u32> {
        let mut needed: BTreeMap<&WaitingPods, u32> = BTreeMap::new();
        for (pods, count) in &self.instances {
            let known = needed.entry(pods).or_default();
            *known = known.saturating_add(*count);
        }
        needed
    }

    /// Instances of all of them, without one for each pod.
    pub(crate) fn instances_beyond_first(&self) -> u64 {
        let all: u64 = self.instances.iter().map(|(_, count)| u64::from(*count)).sum();
        all.saturating_sub(self.pods)
    }
}

/// What nodes have a limited amount of besides devices.
pub(crate) fn amounts(of: &Resources) -> [i64; 4] {
    [of.cpu_milli, of.memory_bytes, of.ephemeral_bytes, of.pod_slots]
}

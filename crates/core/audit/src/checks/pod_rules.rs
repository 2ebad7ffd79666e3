//! What the required affinity of a pending pod to other pods, and its hard spread constraints, ask
//! of nodes: as translated for the world of pending pods, with the pods that they count. So the
//! engine evaluates them wherever these pods are after moves.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::{PendingDemand, Workload};
use dovetail_model::{
    Holding, HoldingId, HoldingPhase, NodeName, Owner, Requirement, Resources, Selectors, Snapshot,
};

use crate::names::place_of;

/// What pending pods request, as translated, by resource, namespace and name of the pod: worlds
/// have thousands of pending jobs, and each of many pods is looked up.
pub(super) struct PendingRequests<'m>(BTreeMap<PodKey<'m>, Translated<'m>>);

type PodKey<'m> = (&'m str, &'m str, &'m str);

/// A translated request, and the world that has it.
#[derive(Clone, Copy)]
struct Translated<'m> {
    demand: &'m PendingDemand,
    requirement: &'m Requirement,
}

impl<'m> PendingRequests<'m> {
    pub(super) fn of(demand: &'m [PendingDemand]) -> Self {
        let mut requests = BTreeMap::new();
        for demand in demand {
            for job in &demand.world.jobs {
                // The roles of a gang request different things.
                let [set] = &job.pod_sets[..] else { continue };
                let (namespace, name) = place_of(job);
                let names: Vec<&str> = match demand.gangs.get(&job.id) {
                    Some(gang) => gang.pods.iter().map(String::as_str).collect(),
                    None => vec![name],
                };
                let requirement = &*set.requirement;
                for name in names {
                    let key = (demand.resource.as_str(), namespace, name);
                    requests.entry(key).or_insert(Translated { demand, requirement });
                }
            }
        }
        Self(requests)
    }

    /// That of the pending pods of a workload; `None` if no world has the first of them, or if they
    /// may use different nodes.
    fn of_workload(&self, workload: &Workload, resource: &str) -> Option<Translated<'m>> {
        let namespace = workload.owner.namespace.as_str();
        let pods = workload.pods.iter().filter(|pod| pod.is_pending());
        let mut requests = pods.map(|pod| self.0.get(&(resource, namespace, pod.name.as_str())));
        let first = *requests.next()??;
        let is_other = |of: &Translated<'_>| !is_alike(first.requirement, of.requirement);
        if requests.flatten().any(is_other) {
            return None;
        }
        Some(first)
    }
}

/// Whether pods may use the same nodes: volumes bind pods of one StatefulSet to different zones.
fn is_alike(one: &Requirement, other: &Requirement) -> bool {
    one.node_conditions == other.node_conditions
        && one.node_names == other.node_names
        && one.counts_into == other.counts_into
        && one.rules == other.rules
}

/// The rules of the pending pods of a workload.
pub(super) struct PodRules<'m> {
    requests: &'m PendingRequests<'m>,
    resource: &'m str,
    requirement: &'m Requirement,
    /// What the pods that they count hold in the world of pending pods, by namespace and name.
    counted: BTreeMap<&'m str, &'m Holding>,
}

impl<'m> PodRules<'m> {
    /// Those of its pods that request a resource; `None` if no world has them, or if they differ.
    pub(super) fn of(
        requests: &'m PendingRequests<'m>,
        workload: &Workload,
        resource: &'m str,
    ) -> Option<Self> {
        let Translated { demand, requirement } = requests.of_workload(workload, resource)?;
        let selectors: BTreeSet<&str> =
            requirement.rules.iter().map(|rule| &*rule.selector).collect();
        let is_counted = |holding: &&Holding| {
            holding.counts_into.iter().any(|selector| selectors.contains(&**selector))
        };
        let name = |holding: &'m Holding| match &holding.owner {
            Owner::Foreign(name) => Some((name.as_str(), holding)),
            _ => None,
        };
        let counted = demand.world.holdings.iter().filter(is_counted).filter_map(name).collect();
        Some(Self { requests, resource, requirement, counted })
    }

    /// Adds them to the request of a pending pod.
    pub(super) fn add_to(&self, requirement: &mut Requirement) {
        let Requirement { node_conditions, node_names, counts_into, rules, .. } = self.requirement;
        requirement.node_conditions.clone_from(node_conditions);
        requirement.node_names.clone_from(node_names);
        for rule in rules {
            if !requirement.rules.contains(rule) {
                requirement.rules.push(rule.clone());
            }
        }
        count_into(&mut requirement.counts_into, counts_into);
    }

    /// Counts a pod, by its namespace and name, as the rules do.
    pub(super) fn count_pod(&self, name: &str, counts: &mut Selectors) {
        if let Some(holding) = self.counted.get(name) {
            count_into(counts, &holding.counts_into);
        }
    }

    /// Counts all pods of a world as the rules do, those too that are one holding there with other
    /// pods of their node. `started` are pending pods that start there, in their order.
    pub(super) fn count_all(&self, world: &mut Snapshot, started: &[(&Workload, String)]) {
        let alike = started.chunk_by(|(one, _), (other, _)| std::ptr::eq(*one, *other));
        let of_started = alike.flat_map(|alike| {
            let request = self.requests.of_workload(alike[0].0, self.resource);
            alike.iter().map(move |_| request)
        });
        let of_started = of_started.enumerate().filter_map(|(number, request)| {
            let requirement = request?.requirement;
            Some((started_owner(number), &requirement.counts_into))
        });
        let of_started: BTreeMap<String, &Selectors> = of_started.collect();
        let mut left = self.counted.clone();
        for holding in &mut world.holdings {
            let Owner::Foreign(name) = &holding.owner else { continue };
            let of_pod = left.remove(name.as_str()).map(|of| &of.counts_into);
            if let Some(selectors) = of_pod.or_else(|| of_started.get(name).copied()) {
                count_into(&mut holding.counts_into, selectors);
            }
        }
        // Pods of removed nodes are gone with them.
        let nodes: BTreeSet<NodeName> = world.nodes.iter().map(|node| node.name.clone()).collect();
        let first_id = world.holdings.iter().map(|holding| holding.id.0 + 1).max().unwrap_or(0);
        let left = left.into_values().filter(|of| nodes.contains(&of.node));
        world.holdings.extend(left.zip(first_id..).map(|(of, id)| counting(of, HoldingId(id))));
    }
}

/// A holding on the node of another one that holds nothing and is counted like it.
fn counting(of: &Holding, id: HoldingId) -> Holding {
    Holding {
        id,
        node: of.node.clone(),
        owner: Owner::Foreign(format!("counted {}", id.0)),
        phase: HoldingPhase::Held { expected_end_ms: None },
        reservation: None,
        resources: Resources::default(),
        devices: Default::default(),
        counts_into: of.counts_into.clone(),
        attachments: Default::default(),
    }
}

fn count_into(counts: &mut Selectors, more: &Selectors) {
    for selector in more {
        counts.insert_times(selector.clone(), more.times(selector));
    }
}

/// The owner of what a pending pod holds once it starts in a world, by its number.
pub(super) fn started_owner(number: usize) -> String {
    format!("started pod {number}")
}

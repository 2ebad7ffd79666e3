//! What the required affinity of a pending pod to other pods, and its hard spread constraints, ask
//! of nodes: as translated for the world of pending pods, with the pods that they count. So the
//! engine judges them wherever these pods are after moves.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{
    Holding, HoldingId, HoldingPhase, Job, NodeName, Owner, Requirement, Resources, Selectors,
    Snapshot,
};

use crate::facts::Workload;
use crate::moment::PendingDemand;
use crate::names::place_of;

/// The rules of the pending pods of a workload.
pub(super) struct PodRules<'m> {
    demand: &'m PendingDemand,
    requirement: &'m Requirement,
    /// What pods hold in the world of pending pods, by their namespace and name.
    held: BTreeMap<&'m str, &'m Holding>,
}

impl<'m> PodRules<'m> {
    /// Those of its pods that request a resource; `None` if no world has them, or if they differ.
    pub(super) fn of(
        demand: &'m [PendingDemand],
        workload: &Workload,
        resource: &str,
    ) -> Option<Self> {
        let mut worlds = demand.iter().filter(|demand| demand.resource == resource);
        let (demand, requirement) =
            worlds.find_map(|demand| Some((demand, translated(demand, workload)?)))?;
        let name = |holding: &'m Holding| match &holding.owner {
            Owner::Foreign(name) => Some((name.as_str(), holding)),
            _ => None,
        };
        let held = demand.world.holdings.iter().filter_map(name).collect();
        Some(Self { demand, requirement, held })
    }

    /// Adds them to what a pending pod asks.
    pub(super) fn ask(&self, requirement: &mut Requirement) {
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
        if let Some(holding) = self.held.get(name) {
            count_into(counts, &holding.counts_into);
        }
    }

    /// Counts all pods of a world as the rules do, those too that are one holding there with other
    /// pods of their node. `started` are pending pods that start there, in their order.
    pub(super) fn count_all(&self, world: &mut Snapshot, started: &[(&Workload, String)]) {
        let of_started = started.iter().enumerate().filter_map(|(number, (workload, _))| {
            let requirement = translated(self.demand, workload)?;
            Some((started_owner(number), &requirement.counts_into))
        });
        let of_started: BTreeMap<String, &Selectors> = of_started.collect();
        let mut left = self.held.clone();
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
        let left = left.filter(|of| !of.counts_into.is_empty()).zip(first_id..);
        world.holdings.extend(left.map(|(of, id)| counting(of, HoldingId(id))));
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

/// What the pending pods of a workload ask, as the world of pending pods has it.
fn translated<'m>(demand: &'m PendingDemand, workload: &Workload) -> Option<&'m Requirement> {
    let pod = workload.pods.iter().find(|pod| pod.is_pending())?;
    let namespace = workload.owner.namespace.as_str();
    let is_its = |job: &&Job| match demand.gangs.get(&job.id) {
        Some(gang) => place_of(job).0 == namespace && gang.pods.contains(&pod.name),
        None => place_of(job) == (namespace, pod.name.as_str()),
    };
    let job = demand.world.jobs.iter().find(is_its)?;
    // The roles of a gang ask for different things.
    let [set] = &job.pod_sets[..] else { return None };
    Some(set.requirement.as_ref())
}

/// The owner of what a pending pod holds once it starts in a world, by its number.
pub(super) fn started_owner(number: usize) -> String {
    format!("started pod {number}")
}

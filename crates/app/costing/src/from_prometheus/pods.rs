//! Holders of devices with their owners and labels.

use std::collections::BTreeMap;

use dovetail_facts::ObjectRef;
use dovetail_inventory::facts::Tenant;
use dovetail_metrics::kube_state::{KubeState, PodSum, label};

use super::look::BillInputs;
use crate::account::CostPod;
use crate::from_objects::words;
use crate::names::{model, queue, wanted};
use crate::teams::Labels;
use crate::usage::grouping::owner_name;

/// Pods by namespace, name and which of that name they are, numbered as they are met.
pub struct Pods<'p> {
    sources: &'p BillInputs<'p>,
    kube: &'p KubeState,
    tenants: BTreeMap<(&'p str, &'p str), &'p Tenant>,
    numbers: BTreeMap<(String, String, u32), u32>,
    pub list: Vec<CostPod>,
    /// What may name the team of each: labels of its namespace, and its own.
    pub labels: Vec<(Labels, Labels)>,
}

impl<'p> Pods<'p> {
    /// No pods yet; their owners come from objects, else from series.
    pub fn new(sources: &'p BillInputs<'p>, kube: &'p KubeState) -> Self {
        let tenants = sources.gathered.iter().flat_map(|objects| &objects.tenants);
        let tenants = tenants.map(|tenant| ((&*tenant.namespace, &*tenant.pod), tenant));
        let tenants = tenants.collect();
        let (numbers, list, labels) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { sources, kube, tenants, numbers, list, labels }
    }

    /// The number of a pod, which is read when it is first asked for.
    pub fn number(&mut self, namespace: &str, pod: &str, turn: u32) -> u32 {
        let key = (namespace.to_owned(), pod.to_owned(), turn);
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = self.list.len() as u32;
        let (pod_with_owner, labels) = self.pod(namespace, pod, turn);
        self.list.push(pod_with_owner);
        self.labels.push(labels);
        self.numbers.insert(key, number);
        number
    }

    /// The number of a pod that kept CPU or memory.
    pub(crate) fn of_kept(&mut self, kept: &PodSum) -> u32 {
        let turn = self.kube.turn_of(&kept.namespace, &kept.pod, kept.uid.as_deref());
        self.number(&kept.namespace, &kept.pod, turn)
    }

    /// A pod with what objects say of it, else series, else its name.
    fn pod(&self, namespace: &str, pod: &str, turn: u32) -> (CostPod, (Labels, Labels)) {
        let teams = self.sources.teams;
        let objects = self.sources.gathered;
        // Objects are of now, and of the last of that name.
        let is_last = turn == self.kube.last_turn(namespace, pod);
        let tenant = self.tenants.get(&(namespace, pod)).filter(|_| is_last);
        let seen = self.kube.pod_in_turn(namespace, pod, turn);
        let by_name = |labels: &Labels| -> Labels {
            let known = wanted(teams).into_iter();
            known.filter_map(|key| Some((key.clone(), label(labels, &key)?))).collect()
        };
        let labels = match (tenant, seen) {
            (Some(tenant), _) => tenant.labels.clone(),
            (None, Some(seen)) => by_name(&seen.labels),
            (None, None) => Labels::new(),
        };
        let space = objects.and_then(|objects| {
            objects.facts.namespaces.iter().find(|space| space.name == namespace)
        });
        let space = match (space, self.kube.namespaces.get(namespace)) {
            (Some(space), _) => space.labels.clone(),
            (None, Some(labels)) => by_name(labels),
            (None, None) => Labels::new(),
        };
        let owner = tenant
            .and_then(|tenant| Some(objects?.facts.workloads.get(tenant.workload)?.owner.clone()));
        let by_series = || {
            let (kind, name) = self.kube.top_owner(namespace, pod, turn)?;
            Some(ObjectRef::new(&kind, namespace, &name))
        };
        let job = match owner.or_else(by_series) {
            Some(owner) => words(&owner),
            None => format!("{namespace}/{}", owner_name(pod)),
        };
        let pod = CostPod {
            team: teams.team(namespace, &space, &labels),
            queue: queue(&space, &labels),
            model: model(&labels),
            job,
            namespace: namespace.to_owned(),
            name: pod.to_owned(),
            turn,
            asks_for_gpus: tenant.is_some_and(|tenant| tenant.has_gpus),
        };
        (pod, (space, labels))
    }
}

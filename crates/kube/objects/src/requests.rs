//! What a pod asks for, and what it holds, over all of its containers.
//!
//! Follows `k8s.io/component-helpers/resource` (`PodRequests`) of Kubernetes 1.37: containers add
//! up, init containers run one after the other beside those that keep running, amounts for the
//! whole pod replace the sum, overhead comes on top. Sums are exact; they are rounded up once, at
//! the end.

use std::collections::BTreeMap;
use std::fmt;

use dovetail_model::{Quantity, Resources};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::json::JsonQuantity;
use super::pod_extended::ExtendedRequest;
use super::pod_json::{ContainerJson, SpecJson, StatusJson};

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RequestAmounts(BTreeMap<Box<str>, Quantity>);

impl<'de> Deserialize<'de> for RequestAmounts {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Amounts;
        impl<'de> Visitor<'de> for Amounts {
            type Value = RequestAmounts;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a map")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<RequestAmounts, M::Error> {
                let mut amounts = BTreeMap::new();
                while let Some((name, JsonQuantity(amount))) = map.next_entry::<Box<str>, _>()? {
                    amounts.insert(name, amount);
                }
                Ok(RequestAmounts(amounts))
            }
        }
        input.deserialize_map(Amounts)
    }
}

impl RequestAmounts {
    fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            if let Some(have) = self.0.get_mut(name) {
                *have = have.saturating_add(*amount);
            } else {
                self.0.insert(name.clone(), *amount);
            }
        }
    }

    /// Takes those of others that are not named here.
    pub(super) fn add_missing(&mut self, others: Self) {
        for (name, amount) in others.0 {
            self.0.entry(name).or_insert(amount);
        }
    }

    fn raise_to(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            if let Some(have) = self.0.get_mut(name) {
                *have = (*have).max(*amount);
            } else {
                self.0.insert(name.clone(), *amount);
            }
        }
    }

    /// As the engine counts them. Resources that no scheduler counts are left out.
    pub(super) fn resources(&self) -> Resources {
        let mut resources = Resources::default();
        for (name, amount) in &self.0 {
            match &**name {
                "cpu" => resources.cpu_milli = amount.to_milli(),
                "memory" => resources.memory_bytes = amount.to_units(),
                "ephemeral-storage" => resources.ephemeral_bytes = amount.to_units(),
                "pods" => resources.pod_slots = amount.to_units(),
                name if is_counted(name) => {
                    resources.extended.insert(name.to_owned(), amount.to_units());
                }
                _ => {}
            }
        }
        resources
    }

    /// Those of extended resources.
    pub(super) fn extended(&self) -> Vec<ExtendedRequest> {
        let requests = self.0.iter().enumerate().map(|(index, (name, amount))| ExtendedRequest {
            resource: name.clone(),
            amount: amount.to_units(),
            index,
        });
        let is_extended =
            |request: &ExtendedRequest| request.amount > 0 && is_prefixed(&request.resource);
        requests.filter(is_extended).collect()
    }

    fn as_pod(&self) -> Resources {
        let mut resources = Resources { pod_slots: 1, ..self.resources() };
        resources.extended.retain(|_, amount| *amount != 0);
        resources
    }
}

/// Whether kube-scheduler counts the resource: extended ones, huge pages, attachable volumes.
fn is_counted(name: &str) -> bool {
    is_prefixed(name) || name.starts_with("hugepages-") || name.starts_with("attachable-volumes-")
}

fn is_prefixed(name: &str) -> bool {
    name.contains('/') && !name.starts_with("requests.")
}

/// Whether the resource can be given to a pod as a whole.
fn is_for_whole_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// What the pod asks for.
pub(super) fn effective(spec: &SpecJson) -> Resources {
    let mut total = over_containers(spec, |container| Some(&container.resources.requests));
    replace_by_pod_level(&mut total, &spec.resources.requests);
    // Limits of the whole pod are asked for where neither it nor any container asks for something,
    // as the API server has it.
    let mut limits = spec.resources.limits.clone();
    limits.0.retain(|name, _| is_for_whole_pods(name));
    total.add_missing(limits);
    total.add(&spec.overhead);
    total.as_pod()
}

/// What the pod holds while it runs: per resource the greatest of what it asks for, what the
/// kubelet allocated, and what is in force. A resize that can never be granted does not count.
pub(super) fn in_force(spec: &SpecJson, status: &StatusJson<'_>) -> Resources {
    let infeasible = status.resize_is_infeasible();
    let mut total = RequestAmounts::default();
    if !infeasible {
        total = over_containers(spec, |container| Some(&container.resources.requests));
    }
    // Most pods hold what they ask for, and their status says nothing else.
    if infeasible || status.says_amounts() {
        let (allocated, actual) = said_for_whole_pod(status).unwrap_or_else(|| {
            (
                over_containers(spec, |container| allocated_to(container, status, infeasible)),
                over_containers(spec, |container| in_force_for(container, status, infeasible)),
            )
        });
        total.raise_to(&allocated);
        total.raise_to(&actual);
    }
    let asked = &spec.resources.requests;
    let for_whole_pod = asked.0.keys().any(|name| is_for_whole_pods(name));
    if for_whole_pod {
        replace_by_pod_level(&mut total, &pod_level_in_force(spec, status, infeasible));
    }
    total.add(&spec.overhead);
    total.as_pod()
}

/// The kubelet's sums over the pod, where it gives both.
fn said_for_whole_pod(status: &StatusJson<'_>) -> Option<(RequestAmounts, RequestAmounts)> {
    let allocated = status.allocated_resources.clone()?;
    let actual = status.resources.as_ref()?.requests.clone()?;
    Some((allocated, actual))
}

fn pod_level_in_force(
    spec: &SpecJson,
    status: &StatusJson<'_>,
    infeasible: bool,
) -> RequestAmounts {
    let asked = &spec.resources.requests;
    let Some(said) = &status.resources else { return asked.clone() };
    let mut most = if infeasible { RequestAmounts::default() } else { asked.clone() };
    if let Some(actual) = &said.requests {
        most.raise_to(actual);
    }
    if let Some(allocated) = &status.allocated_resources {
        most.raise_to(allocated);
    }
    most
}

fn replace_by_pod_level(total: &mut RequestAmounts, pod_level: &RequestAmounts) {
    for (name, amount) in pod_level.0.iter().filter(|(name, _)| is_for_whole_pods(name)) {
        total.0.insert(name.clone(), *amount);
    }
}

fn allocated_to<'a>(
    container: &'a ContainerJson,
    status: &'a StatusJson<'_>,
    infeasible: bool,
) -> Option<&'a RequestAmounts> {
    let said = status.of(container).and_then(|said| said.allocated_resources.as_ref());
    said.or((!infeasible).then_some(&container.resources.requests))
}

fn in_force_for<'a>(
    container: &'a ContainerJson,
    status: &'a StatusJson<'_>,
    infeasible: bool,
) -> Option<&'a RequestAmounts> {
    let said = status.of(container).and_then(|said| said.resources.as_ref()?.requests.as_ref());
    said.or_else(|| allocated_to(container, status, infeasible))
}

impl StatusJson<'_> {
    /// Whether it says of anything how much is allocated or in force.
    fn says_amounts(&self) -> bool {
        let mut all = self.container_statuses.iter().chain(&self.init_container_statuses);
        self.allocated_resources.is_some()
            || self.resources.is_some()
            || all.any(|of| of.allocated_resources.is_some() || of.resources.is_some())
    }

    fn of(&self, container: &ContainerJson) -> Option<&super::pod_json::ContainerStatusJson> {
        let all = self.container_statuses.iter().chain(&self.init_container_statuses);
        all.into_iter().find(|status| status.name == container.name)
    }
}

/// The most that the containers need at once.
fn over_containers<'a>(
    spec: &'a SpecJson,
    amounts: impl Fn(&'a ContainerJson) -> Option<&'a RequestAmounts>,
) -> RequestAmounts {
    let mut total = RequestAmounts::default();
    for container in &spec.containers {
        total.add(amounts(container).unwrap_or(&RequestAmounts::default()));
    }
    let mut lasting = RequestAmounts::default();
    let mut starting = RequestAmounts::default();
    for container in &spec.init_containers {
        let needs = amounts(container).cloned().unwrap_or_default();
        if container.keeps_running() {
            total.add(&needs);
            lasting.add(&needs);
            starting.raise_to(&lasting);
        } else {
            let mut beside = needs;
            beside.add(&lasting);
            starting.raise_to(&beside);
        }
    }
    total.raise_to(&starting);
    total
}

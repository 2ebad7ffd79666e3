//! The bill of a period, from the series of exporters: who held which GPU and what it did. Names come from
//! objects where there are any, from kube-state-metrics for what is gone, and else from the pods' names.

use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_audit::ObjectRef;
use dovetail_kube::facts::{Gathered, POOL_LABELS, Tenant};
use dovetail_ledger::cost::{HeldTime, NodeBill};
use dovetail_ledger::device_time::{Span, device_intervals};
use dovetail_ledger::signal::ActivityRule;
use dovetail_ledger::split::{ListPrices, NodeParts};
use dovetail_metrics::exporter::ObservedTime;
use dovetail_metrics::kube_state::{Kept, KubeState, KubeTable, kept_over, label, last_seen};
use dovetail_model::Money;
use dovetail_price::{canonical_gpu_model, place_labels};

use super::account::{Account, Basis, CostNode, CostPod, Stretch};
use super::from_objects::words;
use super::names::{model, queue, wanted};
use super::teams::{Labels, Teams};
use crate::commands::usage::gpus::grouping::owner_name;
use crate::input::node_prices::{NodePriceFlags, NodeToPrice, Prices};
use crate::input::prometheus::Asker;
use crate::output::table::counted;
use crate::settings::cost::CostSection;

/// What a bill is made with.
pub(super) struct Sources<'s> {
    pub(super) teams: &'s Teams,
    pub(super) prices: &'s NodePriceFlags,
    pub(super) list_prices: Option<ListPrices>,
    /// Machines that were bought.
    pub(super) own: &'s CostSection,
    /// Objects of one moment, if there are any.
    pub(super) gathered: Option<&'s Gathered>,
}

/// The account of the asker's period, day by day.
pub(super) fn account(asker: &mut Asker, sources: &Sources<'_>) -> Result<Account> {
    let (period, step_ms) = (asker.period, asker.step_ms);
    let observation = asker.observe()?;
    let time = observation.histories(period, step_ms, &ActivityRule::default());
    let mut notes = Vec::new();
    let kube = kube_state(asker, &mut notes);
    let machines = machines(&time, &kube, sources.gathered);
    let to_price: Vec<NodeToPrice<'_>> = machines.iter().map(Machine::to_price).collect();
    let prices = sources.prices.of(&to_price, sources.own)?;
    let mut pods = Pods::new(sources, &kube);
    let mut stretches = Vec::new();
    for span in days(period) {
        let mut bills = bills(&time, span, &machines, &mut pods)?;
        if !kube.is_empty() {
            kept(asker, span, &machines, &mut pods, &mut bills, &mut notes);
        }
        for (machine, bill) in &mut bills {
            let price = prices.of_nodes[*machine].usd_micros_per_gpu_hour;
            bill.list_prices = sources.list_prices;
            bill.price = price.map(|price| Money::of_gpu_time(bill.gpus.values().sum(), price));
        }
        stretches.push(Stretch { span, bills, lists: BTreeMap::new() });
    }
    notes.extend(told(&time, &kube, &machines, sources));
    let Pods { list: pods, .. } = pods;
    Ok(Account {
        nodes: nodes(machines, &prices),
        pods,
        stretches,
        span: period,
        basis: Basis::Sampled { step_ms },
        cluster: sources.gathered.map(|objects| objects.cluster_uid.clone()).unwrap_or_default(),
        sources: vec![asker.client.server().to_owned()],
        prices: prices.told,
        notes,
    })
}

/// A node with GPUs that an exporter reported.
#[derive(Debug, Default)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) model: Option<String>,
    gpus: i64,
    labels: Labels,
    provider_id: String,
    pub(super) pool: String,
    pub(super) cpu_milli: u64,
    pub(super) memory_bytes: u64,
}

impl Machine {
    pub(super) fn to_price(&self) -> NodeToPrice<'_> {
        NodeToPrice {
            gpus: self.gpus,
            model: self.model.as_deref(),
            labels: &self.labels,
            provider_id: &self.provider_id,
        }
    }
}

/// Everything that kube-state-metrics keeps; nothing, and a note, where it does not answer.
pub(super) fn kube_state(asker: &mut Asker, notes: &mut Vec<String>) -> KubeState {
    let mut state = KubeState::default();
    let window_ms = asker.period.to_ms - asker.period.from_ms;
    let at_ms = asker.period.to_ms.saturating_sub(1);
    for table in KubeTable::ALL {
        match asker.instant(&last_seen(table, window_ms), at_ms) {
            Ok(series) => state.take(table, series),
            Err(error) => {
                notes.push(format!("{} could not be read: {error}", table.series()));
                break;
            }
        }
    }
    state
}

/// Nodes by name, from devices, with what objects and series say of them.
pub(super) fn machines(
    time: &ObservedTime,
    kube: &KubeState,
    objects: Option<&Gathered>,
) -> Vec<Machine> {
    let mut by_name: BTreeMap<&str, Machine> = BTreeMap::new();
    for device in &time.devices {
        let machine = by_name.entry(&device.node).or_default();
        machine.name.clone_from(&device.node);
        machine.gpus += 1;
        machine.model = machine.model.take().or_else(|| device.model.clone());
    }
    for (name, machine) in &mut by_name {
        if let Some(node) = kube.nodes.get(*name) {
            let keys = place_labels().chain(POOL_LABELS.iter().map(|(key, _)| *key));
            let known = keys.filter_map(|key| Some((key.to_owned(), label(&node.labels, key)?)));
            machine.labels = known.collect();
            machine.provider_id.clone_from(&node.provider_id);
            (machine.cpu_milli, machine.memory_bytes) = (node.cpu_milli, node.memory_bytes);
            let pool = POOL_LABELS.iter().find_map(|(key, kind)| {
                machine.labels.get(*key).map(|name| words(&ObjectRef::new(kind, "", name)))
            });
            machine.pool = pool.unwrap_or_default();
        }
        let Some(objects) = objects else { continue };
        let Some(node) = objects.facts.nodes.iter().find(|node| *node.node.name == **name) else {
            continue;
        };
        machine.labels.clone_from(&node.node.labels);
        machine.provider_id = objects.provider_ids.get(*name).cloned().unwrap_or_default();
        let amount = |amount: i64| u64::try_from(amount).unwrap_or(0);
        machine.cpu_milli = amount(node.node.allocatable.cpu_milli);
        machine.memory_bytes = amount(node.node.allocatable.memory_bytes);
        if node.pool.kind != "Node" {
            machine.pool = words(&node.pool);
        }
    }
    by_name.into_values().collect()
}

fn nodes(machines: Vec<Machine>, prices: &Prices) -> Vec<CostNode> {
    let machines = machines.into_iter().zip(&prices.of_nodes).zip(&prices.places);
    let node = machines.map(|((machine, price), place)| CostNode {
        gpu_type: machine.model.as_deref().map(canonical_gpu_model).unwrap_or_default(),
        name: machine.name,
        pool: machine.pool,
        provider_id: machine.provider_id,
        gpus: machine.gpus,
        price: *price,
        place: place.clone(),
    });
    node.collect()
}

/// Pods by namespace and name, numbered as they are met.
pub(super) struct Pods<'p> {
    sources: &'p Sources<'p>,
    kube: &'p KubeState,
    tenants: BTreeMap<(&'p str, &'p str), &'p Tenant>,
    numbers: BTreeMap<(String, String), u32>,
    pub(super) list: Vec<CostPod>,
    /// What may name the team of each: labels of its namespace, and its own.
    pub(super) labels: Vec<(Labels, Labels)>,
}

impl<'p> Pods<'p> {
    pub(super) fn new(sources: &'p Sources<'p>, kube: &'p KubeState) -> Self {
        let tenants = sources.gathered.iter().flat_map(|objects| &objects.tenants);
        let tenants = tenants.map(|tenant| ((&*tenant.namespace, &*tenant.pod), tenant));
        let tenants = tenants.collect();
        let (numbers, list, labels) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { sources, kube, tenants, numbers, list, labels }
    }

    pub(super) fn number(&mut self, namespace: &str, pod: &str) -> u32 {
        let key = (namespace.to_owned(), pod.to_owned());
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = self.list.len() as u32;
        let (pod_with_owner, labels) = self.pod(namespace, pod);
        self.list.push(pod_with_owner);
        self.labels.push(labels);
        self.numbers.insert(key, number);
        number
    }

    /// A pod with what objects say of it, else series, else its name.
    fn pod(&self, namespace: &str, pod: &str) -> (CostPod, (Labels, Labels)) {
        let teams = self.sources.teams;
        let objects = self.sources.gathered;
        let tenant = self.tenants.get(&(namespace, pod));
        let seen = self.kube.pods.get(&(namespace.to_owned(), pod.to_owned()));
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
            let (kind, name) = self.kube.top_owner(namespace, pod)?;
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
        };
        (pod, (space, labels))
    }
}

/// A period cut at the ends of days (UTC).
fn days(period: Span) -> Vec<Span> {
    const DAY_MS: u64 = 86_400_000;
    let mut days = Vec::new();
    let mut from_ms = period.from_ms;
    while from_ms < period.to_ms {
        let to_ms = ((from_ms / DAY_MS + 1) * DAY_MS).min(period.to_ms);
        days.push(Span { from_ms, to_ms });
        from_ms = to_ms;
    }
    days
}

/// What the GPUs of each machine were on one day.
fn bills(
    time: &ObservedTime,
    span: Span,
    machines: &[Machine],
    pods: &mut Pods<'_>,
) -> Result<Vec<(usize, NodeBill)>> {
    let places: BTreeMap<&str, usize> =
        machines.iter().enumerate().map(|(place, m)| (m.name.as_str(), place)).collect();
    let mut bills: BTreeMap<usize, NodeBill> = BTreeMap::new();
    for device in &time.devices {
        let Some(place) = places.get(device.node.as_str()) else { continue };
        let machine = &machines[*place];
        for interval in device_intervals(&device.history, span)? {
            let bill = bills.entry(*place).or_insert_with(|| NodeBill {
                offered: NodeParts {
                    cpu_milli: machine.cpu_milli,
                    memory_bytes: machine.memory_bytes,
                    gpu_milli: u64::try_from(machine.gpus * 1000).unwrap_or(0),
                },
                ..NodeBill::default()
            });
            let holder = interval.holder.and_then(|number| time.holders.get(number as usize));
            let holder = holder.map(|holder| pods.number(&holder.namespace, &holder.pod));
            *bill.gpus.entry((holder, interval.state)).or_default() += interval.gpu_milli_ms();
        }
    }
    for bill in bills.values_mut() {
        // On average over its GPUs: a node is billed while they are there.
        let time: i128 = bill.gpus.values().sum();
        let gpu_milli = i128::from(bill.offered.gpu_milli.max(1));
        bill.billed_ms = u64::try_from(time / gpu_milli).unwrap_or(0);
    }
    Ok(bills.into_iter().collect())
}

/// Adds what was kept of CPU and memory on one day.
fn kept(
    asker: &mut Asker,
    span: Span,
    machines: &[Machine],
    pods: &mut Pods<'_>,
    bills: &mut [(usize, NodeBill)],
    notes: &mut Vec<String>,
) {
    let window_ms = span.to_ms - span.from_ms;
    let step_ms = asker.step_ms.min(window_ms);
    for resource in ["cpu", "memory"] {
        let query = kept_over(resource, window_ms, step_ms);
        let series = match asker.instant(&query, span.to_ms.saturating_sub(1)) {
            Ok(series) => series,
            Err(error) => {
                notes.push(format!("what pods kept of {resource} could not be read: {error}"));
                return;
            }
        };
        for Kept { namespace, pod, node, sum } in Kept::read(series) {
            let bill = bills.iter_mut().find(|(place, _)| machines[*place].name == node);
            let Some((_, bill)) = bill else { continue };
            let held = bill.cpu_memory.entry(pods.number(&namespace, &pod)).or_default();
            add(held, resource, sum, step_ms);
        }
    }
}

/// A sum over steps as amount × time.
pub(super) fn add(held: &mut HeldTime, resource: &str, sum: f64, step_ms: u64) {
    let time = |scale: f64| (sum * scale * step_ms as f64) as i128;
    match resource {
        "cpu" => held.cpu_milli_ms += time(1000.0).min(i128::MAX >> 40),
        _ => held.memory_byte_ms += time(1.0).min(i128::MAX >> 40),
    }
}

/// What the figures leave out.
pub(super) fn told(
    time: &ObservedTime,
    kube: &KubeState,
    machines: &[Machine],
    sources: &Sources<'_>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if time.devices.is_empty() {
        notes.push(
            "no GPU was seen: the server has no series of a GPU exporter in this period; that says nothing about \
             whether there are GPUs"
                .to_owned(),
        );
    }
    if kube.is_empty() && sources.gathered.is_none() {
        notes.push(
            "neither objects nor series of kube-state-metrics: jobs are told by their pods' names, and labels \
             are unknown; --from adds objects"
                .to_owned(),
        );
    }
    let blind = machines.iter().filter(|machine| machine.cpu_milli == 0).count();
    if blind > 0 {
        notes.push(format!(
            "CPU and memory of {}: unknown; the GPUs carry the whole price, whatever the method",
            counted(blind, "node")
        ));
    }
    if let Some(objects) = sources.gathered {
        let seen = |name: &str| machines.iter().any(|machine| machine.name == name);
        let unseen = objects.moment.nodes.iter().filter(|node| !seen(&node.node));
        let gpus: Vec<i64> = unseen.map(|node| node.gpus).collect();
        if !gpus.is_empty() {
            notes.push(format!(
                "{} on {} without series of an exporter: not in it",
                counted(usize::try_from(gpus.iter().sum::<i64>()).unwrap_or(0), "GPU"),
                counted(gpus.len(), "node")
            ));
        }
    }
    if !time.devices.is_empty() {
        notes.push(
            "a GPU counts from its first sample to its last, nodes without GPUs do not; why free GPUs were free \
             needs a moment: --from without --prometheus"
                .to_owned(),
        );
    }
    notes
}

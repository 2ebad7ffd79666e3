//! The bill of one moment, from objects: who stands where, and why what is free is free.

use std::collections::BTreeMap;

use dovetail_account::cost::{HeldTime, NodeBill};
use dovetail_account::device_time::{DeviceInterval, Span};
use dovetail_account::rollup::NodeTerms;
use dovetail_account::split::{ListPrices, NodeParts};
use dovetail_audit::NodePrice;
use dovetail_facts::{NodeGpus, NodePart, ObjectRef, gpu_times, recent};
use dovetail_inventory::facts::{Gathered, Tenant};
use dovetail_model::Money;
use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_price::{NodePlace, canonical_gpu_model, node_place};
use dovetail_sources::node_prices::Prices;
use dovetail_store::{ReadDevice, ReadNode, ReadPod, Reading};

use super::account::{Account, Basis, CostNode, CostPod, Stretch, list_price};
use super::names::{model, queue};
use super::teams::{Labels, Teams};

/// What the GPUs of each node with GPUs are, in the order of the moment's nodes.
pub type Parts<'g> = Vec<Vec<NodePart<'g>>>;

/// The account of a moment: what is known of a `span` that is yet to come.
pub fn account(
    gathered: &Gathered,
    parts: &Parts<'_>,
    (teams, list_prices): (&Teams, Option<ListPrices>),
    prices: Prices,
    span: Span,
) -> Account {
    let nodes = nodes(gathered, &prices);
    let places: BTreeMap<&str, usize> =
        nodes.iter().enumerate().map(|(place, node)| (node.name.as_str(), place)).collect();
    let pods: Vec<CostPod> = pods(gathered, teams);
    let numbers: BTreeMap<(&str, &str), u32> = gathered
        .tenants
        .iter()
        .zip(0..)
        .map(|(tenant, number)| ((&*tenant.namespace, &*tenant.pod), number))
        .collect();
    let span_ms = span.to_ms - span.from_ms;
    let mut bills: Vec<NodeBill> = gathered
        .facts
        .nodes
        .iter()
        .map(|node| empty_bill(&node.node.allocatable, list_prices, span_ms))
        .collect();
    let holder = |held: usize| {
        let held = &gathered.moment.held[held];
        let namespace = &gathered.facts.workloads[held.workload].owner.namespace;
        numbers.get(&(namespace.as_str(), held.pod.as_str())).copied()
    };
    let mut too_recent = Vec::new();
    for (gpus, parts) in gathered.moment.nodes.iter().zip(parts) {
        let Some(place) = places.get(&*gpus.node) else { continue };
        let bill = &mut bills[*place];
        bill.offered.gpu_milli = u64::try_from(gpus.gpus * 1000).unwrap_or(0);
        bill.price = price_of(&nodes[*place], span_ms);
        bill.gpus = gpu_times(parts, span, holder);
        let price = nodes[*place].price.usd_micros_per_gpu_hour;
        let found = recent(parts, (span, gathered.facts.now_ms), price).into_iter();
        too_recent.extend(found.map(|part| (part.held.and_then(holder), part)));
    }
    for (tenant, number) in gathered.tenants.iter().zip(0..) {
        if let Some(place) = places.get(&*tenant.node) {
            bills[*place].cpu_memory.insert(number, held_time(tenant, span_ms));
        }
    }
    for (bill, node) in bills.iter_mut().zip(&nodes) {
        // A node that offers nothing has nothing that could be paid for.
        let offers = bill.offered.cpu_milli > 0 || bill.offered.memory_bytes > 0;
        if node.gpus == 0 && offers {
            bill.price = list_prices.map(|prices| list_price(bill, &prices));
        }
    }
    Account {
        stretches: vec![Stretch {
            span,
            bills: bills.into_iter().enumerate().collect(),
            billed: BTreeMap::new(),
            seen: BTreeMap::new(),
        }],
        nodes,
        pods,
        span,
        basis: Basis::RunRate,
        too_recent,
        cluster: gathered.cluster_uid.clone(),
        prices: prices.told,
        notes: prices.notes,
        ..Account::default()
    }
}

/// What the GPUs of each node are at the moment of the objects, as a reading for a ledger without
/// its time.
pub fn scan(
    gathered: &Gathered,
    parts: &Parts<'_>,
    (teams, list_prices): (&Teams, Option<ListPrices>),
    prices: Prices,
) -> Reading {
    let known = nodes(gathered, &prices);
    let known: BTreeMap<&str, &CostNode> =
        known.iter().map(|node| (node.name.as_str(), node)).collect();
    let offers: BTreeMap<&str, &dovetail_model::Resources> = (gathered.facts.nodes.iter())
        .map(|node| (&*node.node.name, &node.node.allocatable))
        .collect();
    let spaces: BTreeMap<&str, &Labels> =
        gathered.facts.namespaces.iter().map(|space| (&*space.name, &space.labels)).collect();
    let mut reading = Reading::default();
    let mut numbers: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for (tenant, pod) in gathered.tenants.iter().zip(pods(gathered, teams)) {
        if tenant.has_gpus {
            numbers.insert((&tenant.namespace, &tenant.pod), reading.pods.len() as u32);
            reading.pods.push(ReadPod {
                namespace: pod.namespace,
                name: pod.name,
                job: pod.job,
                queue: pod.queue,
                model: pod.model,
                namespace_labels: spaces
                    .get(&*tenant.namespace)
                    .map(|labels| (*labels).clone())
                    .unwrap_or_default(),
                labels: tenant.labels.clone(),
            });
        }
    }
    let amount = |amount: i64| u64::try_from(amount).unwrap_or(0);
    for (gpus, parts) in gathered.moment.nodes.iter().zip(parts) {
        let (Some(node), Some(offers)) = (known.get(&*gpus.node), offers.get(&*gpus.node)) else {
            continue;
        };
        let place = reading.nodes.len();
        reading.nodes.push(ReadNode {
            name: node.name.clone(),
            gpu_type: node.gpu_type.clone(),
            pool: node.pool.clone(),
            provider_id: node.provider_id.clone(),
            provider: node.place.provider.unwrap_or_default().to_owned(),
            region: node.place.region.clone().unwrap_or_default(),
            instance_type: node.place.instance_type.clone().unwrap_or_default(),
            purchase: node.place.purchase.name().to_owned(),
            terms: NodeTerms {
                usd_micros_per_gpu_hour: node.price.usd_micros_per_gpu_hour,
                cpu_milli: amount(offers.cpu_milli),
                memory_bytes: amount(offers.memory_bytes),
                list_prices,
            },
        });
        let holder = |held: usize| {
            let held = &gathered.moment.held[held];
            let namespace = &gathered.facts.workloads[held.workload].owner.namespace;
            numbers.get(&(namespace.as_str(), held.pod.as_str())).copied()
        };
        reading.devices.extend(devices(place, parts, holder));
    }
    reading
}

/// The parts of a node's GPUs, laid one behind the other on its devices.
fn devices(
    node: usize,
    parts: &[NodePart<'_>],
    holder: impl Fn(usize) -> Option<u32>,
) -> Vec<ReadDevice> {
    let span = Span { from_ms: 0, to_ms: 0 };
    let mut devices: Vec<ReadDevice> = Vec::new();
    let mut room_milli = 0;
    for part in parts {
        let holder = part.held.and_then(&holder);
        let mut left = part.gpu_milli;
        while left > 0 {
            if room_milli == 0 {
                let name = devices.len().to_string();
                devices.push(ReadDevice { node, name, intervals: Vec::new() });
                room_milli = WHOLE_DEVICE_MILLI;
            }
            let gpu_milli = left.min(room_milli);
            let interval =
                DeviceInterval { span, gpu_milli, state: part.state, holder, signal: None };
            if let Some(device) = devices.last_mut() {
                device.intervals.push(interval);
            }
            (left, room_milli) = (left - gpu_milli, room_milli - gpu_milli);
        }
    }
    devices
}

fn nodes(gathered: &Gathered, prices: &Prices) -> Vec<CostNode> {
    let moment = gathered.moment.nodes.iter().zip(&prices.of_nodes).zip(&prices.places);
    let moment = moment.zip(&prices.lists);
    let of_gpus: BTreeMap<&str, (&NodeGpus, NodePrice, &NodePlace, Option<i64>)> = moment
        .map(|(((gpus, price), place), list)| (&*gpus.node, (gpus, *price, place, *list)))
        .collect();
    let node = |node: &dovetail_facts::Node| {
        let name = node.node.name.to_string();
        let provider_id = gathered.provider_ids.get(&name).cloned().unwrap_or_default();
        let gpus = of_gpus.get(name.as_str());
        let place = gpus.map(|(_, _, place, _)| (*place).clone());
        let gpu_type = gpus.and_then(|(gpus, ..)| gpus.model.as_deref()).map(canonical_gpu_model);
        CostNode {
            pool: if node.pool.kind == "Node" { String::new() } else { words(&node.pool) },
            gpu_type: gpu_type.unwrap_or_default(),
            gpus: gpus.map_or(0, |(gpus, ..)| gpus.gpus),
            price: gpus.map_or_else(NodePrice::default, |(_, price, ..)| *price),
            place: place.unwrap_or_else(|| node_place(&node.node.labels, &provider_id)),
            list_usd_micros_per_gpu_hour: gpus.and_then(|(.., list)| *list),
            provider_id,
            name,
        }
    };
    gathered.facts.nodes.iter().map(node).collect()
}

fn pods(gathered: &Gathered, teams: &Teams) -> Vec<CostPod> {
    let none = Labels::new();
    let spaces: BTreeMap<&str, &Labels> =
        gathered.facts.namespaces.iter().map(|space| (&*space.name, &space.labels)).collect();
    let pod = |tenant: &Tenant| {
        let space = spaces.get(&*tenant.namespace).copied().unwrap_or(&none);
        CostPod {
            team: teams.team(&tenant.namespace, space, &tenant.labels),
            queue: queue(space, &tenant.labels),
            job: words(&gathered.facts.workloads[tenant.workload].owner),
            model: model(&tenant.labels),
            namespace: tenant.namespace.clone(),
            name: tenant.pod.clone(),
            turn: 0,
            asks_for_gpus: tenant.has_gpus,
        }
    };
    gathered.tenants.iter().map(pod).collect()
}

fn empty_bill(
    offers: &dovetail_model::Resources,
    list_prices: Option<ListPrices>,
    billed_ms: u64,
) -> NodeBill {
    let amount = |amount: i64| u64::try_from(amount).unwrap_or(0);
    NodeBill {
        billed_ms,
        offered: NodeParts {
            cpu_milli: amount(offers.cpu_milli),
            memory_bytes: amount(offers.memory_bytes),
            gpu_milli: 0,
        },
        list_prices,
        ..NodeBill::default()
    }
}

/// What a node with GPUs costs for some time.
fn price_of(node: &CostNode, billed_ms: u64) -> Option<Money> {
    let price = node.price.usd_micros_per_gpu_hour?;
    let time = i128::from(node.gpus) * 1000 * i128::from(billed_ms);
    Some(Money::of_gpu_time(time, price))
}

fn held_time(tenant: &Tenant, ms: u64) -> HeldTime {
    HeldTime {
        cpu_milli_ms: i128::from(tenant.cpu_milli) * i128::from(ms),
        memory_byte_ms: i128::from(tenant.memory_bytes) * i128::from(ms),
    }
}

/// An object as people write it.
pub fn words(object: &ObjectRef) -> String {
    object.in_words()
}

//! What a server says of some time, as a reading for a ledger.

use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_account::cost::HeldTime;
use dovetail_account::device_time::{DeviceInterval, Span, device_intervals};
use dovetail_account::rollup::{FreeLook, HOUR_MS, NodeTerms, hours};
use dovetail_metrics::exporter::ObservedTime;
use dovetail_price::canonical_gpu_model;
use dovetail_sources::node_prices::{PriceLine, PricesUsed};
use dovetail_sources::prometheus::{Asker, ObservedPeriod};
use dovetail_store::{ReadDevice, ReadFree, ReadKept, ReadNode, ReadPod, Reading};

use super::from_prometheus::{BillInputs, LeftOpen, Look, Machine, Pods, add, ask_kept};
use super::levels::used;
use super::turns::Turn;

/// A reading with what is said beside it.
pub struct ReadPart {
    pub reading: Reading,
    pub prices: Vec<PriceLine>,
    pub notes: Vec<String>,
    /// What the figures leave open.
    pub left: LeftOpen,
    pub used: PricesUsed,
    /// There is no GPU in the cluster: kube-state-metrics has its nodes, and none of them offers
    /// one.
    pub(crate) has_no_gpus: bool,
    /// No exporter said anything; whether there are GPUs nobody knows.
    pub is_silent: bool,
    /// From when until when exporters spoke.
    pub(crate) heard: Option<Span>,
    /// What nodes were before another machine had their name.
    pub turns: Vec<Turn>,
    /// Parts at the begin and the end without any series.
    pub gaps: Vec<Span>,
}

impl ReadPart {
    /// The same without what is said of it alone.
    pub(crate) fn without_notes(self) -> Self {
        let (left, used) = (LeftOpen::default(), PricesUsed::default());
        Self { prices: Vec::new(), notes: Vec::new(), left, used, ..self }
    }
}

/// Reads the asker's period of a cluster.
pub fn read(asker: &mut Asker, sources: &BillInputs<'_>, cluster: &str) -> Result<ReadPart> {
    // What pods kept is asked from the begin of an hour: some of them ended before the period.
    let hour_ms = asker.period.from_ms / HOUR_MS * HOUR_MS;
    let look = Look::with_objects_since(hour_ms, asker, sources)?;
    let whose = Whose {
        cluster: cluster.to_owned(),
        source: asker.client.server().to_owned(),
        span: asker.period,
        step_ms: asker.step_ms,
    };
    reading_of(&look, sources, whose, |pods, notes| match look.kube.is_empty() {
        true => None,
        false => kept(asker, &look.machines, pods, notes),
    })
}

/// What exporters said of some time who were asked themselves.
pub fn of_exporters(
    seen: ObservedPeriod,
    sources: &BillInputs<'_>,
    whose: Whose,
) -> Result<ReadPart> {
    reading_of(&Look::of_exporters(seen, sources)?, sources, whose, |_, _| None)
}

/// Whose reading it is, and of which time.
pub struct Whose {
    pub cluster: String,
    pub source: String,
    pub span: Span,
    pub step_ms: u64,
}

/// A look as a reading; `ask_pods` has what pods kept of CPU and memory.
fn reading_of(
    look: &Look,
    sources: &BillInputs<'_>,
    whose: Whose,
    ask_pods: impl FnOnce(&mut Pods<'_>, &mut Vec<String>) -> Option<Vec<ReadKept>>,
) -> Result<ReadPart> {
    let period = whose.span;
    let mut notes = look.notes.clone();
    let mut pods = Pods::new(sources, &look.kube);
    let devices = devices(&look.seen.time, period, &look.machines, &mut pods)?;
    let used = used(&look.seen.time, period, &look.machines, &mut pods)?;
    let kept = ask_pods(&mut pods, &mut notes);
    let priced = look.machines.iter().zip(&look.prices.of_nodes).zip(&look.prices.places);
    let machines = priced.map(|((machine, price), place)| ReadNode {
        provider_id: machine.provider_id.clone(),
        provider: place.provider.unwrap_or_default().to_owned(),
        region: place.region.clone().unwrap_or_default(),
        instance_type: place.instance_type.clone().unwrap_or_default(),
        purchase: place.purchase.name().to_owned(),
        name: machine.name.clone(),
        gpu_type: machine.model.as_deref().map(canonical_gpu_model).unwrap_or_default(),
        pool: machine.pool.clone(),
        terms: NodeTerms {
            usd_micros_per_gpu_hour: price.usd_micros_per_gpu_hour,
            cpu_milli: machine.cpu_milli,
            memory_bytes: machine.memory_bytes,
            list_prices: sources.list_prices,
        },
    });
    let (nodes, turns) = Turn::of(machines.collect(), &look.machines);
    let places = numbers(&look.machines);
    let free = sources.free.iter().filter_map(|(node, look)| {
        let node = *places.get(node.as_str())?;
        let span = Span { to_ms: look.span.to_ms.min(period.to_ms), ..look.span };
        let look = FreeLook { span, ..look.clone() };
        (span.from_ms < span.to_ms).then_some(ReadFree { node, look })
    });
    let free = free.collect();
    notes.extend(look.told(sources));
    let pods = pods.list.into_iter().zip(pods.labels).map(|(pod, (space, own))| ReadPod {
        namespace: pod.namespace,
        name: pod.name,
        job: pod.job,
        queue: pod.queue,
        model: pod.model,
        namespace_labels: space,
        labels: own,
    });
    let reading = Reading {
        cluster: whose.cluster,
        source: whose.source,
        span: period,
        step_ms: Some(whose.step_ms),
        nodes,
        pods: pods.collect(),
        devices,
        kept,
        free,
        used,
    };
    let has_no_gpus = look.seen.time.devices.is_empty() && look.kube.offers_no_gpus();
    let (prices, used) = (look.prices.told.clone(), look.prices.used.clone());
    let left = look.left.clone();
    let heard = look.seen.time.heard();
    let (is_silent, gaps) = (false, Vec::new());
    Ok(ReadPart { reading, prices, notes, left, used, has_no_gpus, is_silent, heard, turns, gaps })
}

fn devices(
    time: &ObservedTime,
    period: Span,
    machines: &[Machine],
    pods: &mut Pods<'_>,
) -> Result<Vec<ReadDevice>> {
    let places = numbers(machines);
    let mut devices: BTreeMap<(usize, &str), Vec<DeviceInterval>> = BTreeMap::new();
    for device in &time.devices {
        let Some(node) = places.get(device.node.as_str()) else { continue };
        let mut intervals = device_intervals(&device.history, period)?;
        for interval in &mut intervals {
            let holder = interval.holder.and_then(|number| time.holders.get(number as usize));
            interval.holder =
                holder.map(|holder| pods.number(&holder.namespace, &holder.pod, holder.turn));
        }
        // One may be measured for some time and not for another.
        devices.entry((*node, &device.device)).or_default().append(&mut intervals);
    }
    let devices = devices.into_iter().map(|((node, name), mut intervals)| {
        intervals.sort_by_key(|interval| interval.span.from_ms);
        ReadDevice { node, name: name.to_owned(), intervals }
    });
    Ok(devices.collect())
}

/// Names of nodes with their places in a reading, in which each is once.
fn numbers(machines: &[Machine]) -> BTreeMap<&str, usize> {
    let mut numbers = BTreeMap::new();
    for machine in machines {
        let next = numbers.len();
        numbers.entry(machine.name.as_str()).or_insert(next);
    }
    numbers
}

/// What was kept of CPU and memory in each hour of the period; an hour that has just begun is asked
/// from its begin. Nothing, and a note, where the server does not answer.
fn kept(
    asker: &mut Asker,
    machines: &[Machine],
    pods: &mut Pods<'_>,
    notes: &mut Vec<String>,
) -> Option<Vec<ReadKept>> {
    let places = numbers(machines);
    let mut times: BTreeMap<(u64, usize, u32), HeldTime> = BTreeMap::new();
    for hour in hours(asker.period) {
        let hour_ms = hour.from_ms / HOUR_MS * HOUR_MS;
        let span = Span { from_ms: hour_ms, to_ms: hour.to_ms };
        let is_read = ask_kept(asker, span, notes, |kept, time| {
            let Some(node) = places.get(kept.node.as_str()) else { return };
            let key = (hour_ms, *node, pods.of_kept(kept));
            add(times.entry(key).or_default(), time);
        });
        if !is_read {
            return None;
        }
    }
    let kept = times.into_iter().map(|((hour_ms, node, pod), held)| ReadKept {
        hour_ms,
        node,
        pod: pod as usize,
        held,
    });
    Some(kept.collect())
}

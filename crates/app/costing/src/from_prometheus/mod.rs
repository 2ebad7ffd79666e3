//! The bill of a period, from the series of exporters: who held which GPU and what it did. Names
//! come from objects where there are any, from kube-state-metrics for what is gone, and else from
//! the pods' names.
//!
//! | module | what |
//! |---|---|
//! | `look` | what a server says of its period: devices, nodes, prices |
//! | `left_open` | what the figures leave open |
//! | `machine` | the machines that nodes were, each while it had the name |
//! | `unmeasured` | GPUs that no exporter measures |
//! | `pods` | holders with their owners and labels |
//! | `kept` | what pods kept of CPU and memory |

pub mod kept;
pub mod left_open;
pub mod look;
pub mod machine;
pub mod pods;
pub mod unmeasured;

use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_account::cost::NodeBill;
use dovetail_account::device_time::{DeviceInterval, Span, device_intervals};
use dovetail_account::rollup::{DAY_MS, HOUR_MS};
use dovetail_account::signal::ActivityRule;
use dovetail_account::split::NodeParts;
use dovetail_metrics::exporter::ObservedTime;
use dovetail_model::Money;
use dovetail_price::canonical_gpu_model;
use dovetail_sources::node_prices::Prices;
use dovetail_sources::prometheus::Asker;
use dovetail_units::duration::duration;

use super::account::{Account, Basis, CostNode, DayOf, Stretch, days_of};

pub use kept::{add, ask_kept};
pub use left_open::LeftOpen;
pub use look::{BillInputs, Look, NO_GPU_WAS_SEEN};
pub use machine::{Machine, Places};
pub use pods::Pods;

/// The account of the asker's period, day by day.
pub fn account(asker: &mut Asker, look: &Look, sources: &BillInputs<'_>) -> Result<Account> {
    let (period, step_ms) = (asker.period, asker.step_ms);
    let mut notes = [look.left.in_words(false), look.notes.clone()].concat();
    notes.extend(look.prices.notes.iter().cloned());
    let mut pods = Pods::new(sources, &look.kube);
    let mut stretches = Vec::new();
    for span in days_of(period) {
        let (mut bills, seen) = bills(&look.seen.time, span, &look.machines, &mut pods)?;
        if !look.kube.is_empty() {
            kept_on(asker, span, &look.machines, &mut pods, &mut bills, &mut notes);
        }
        for (machine, bill) in &mut bills {
            let price = look.prices.of_nodes[*machine].usd_micros_per_gpu_hour;
            bill.list_prices = sources.list_prices;
            bill.price = price.map(|price| Money::of_gpu_time(bill.gpus.values().sum(), price));
        }
        stretches.push(Stretch { span, bills, billed: BTreeMap::new(), seen });
    }
    notes.extend(look.told(sources));
    let heard = look.seen.time.heard();
    let is_known = look.seen.time.devices.iter().any(|device| !device.is_measured);
    notes.extend(heard.and_then(|heard| unheard_in_words(period, heard, step_ms, is_known)));
    let Pods { list: pods, .. } = pods;
    let cluster = sources.gathered.map(|objects| objects.cluster_uid.clone());
    let cluster = cluster.unwrap_or_default();
    let day = |span: Span| DayOf {
        cluster: cluster.clone(),
        day: span.from_ms / DAY_MS,
        hours_read: (span.to_ms - span.from_ms).div_ceil(HOUR_MS) as u32,
        hours_unknown: 0,
        step_ms: Some((step_ms, step_ms)),
    };
    let resolutions = days_of(heard.unwrap_or_default()).into_iter().map(day).collect();
    Ok(Account {
        resolutions,
        nodes: nodes(&look.machines, &look.prices),
        pods,
        stretches,
        span: period,
        basis: Basis::Sampled {
            step_ms,
            holder_changes: look.seen.time.holder_changes(period),
            active_within_gpu_milli_ms: look.seen.time.active_within(period, step_ms),
        },
        cluster,
        sources: vec![asker.client.server().to_owned()],
        prices: look.prices.told.clone(),
        notes,
        ..Account::default()
    })
}

/// What of a period no exporter spoke of, before its first word and after its last, where that is
/// more than samples bridge.
fn unheard_in_words(period: Span, heard: Span, step_ms: u64, is_known: bool) -> Option<String> {
    let length_ms = |span: Span| span.to_ms.saturating_sub(span.from_ms);
    let unheard_ms = length_ms(period).saturating_sub(length_ms(heard));
    let longest_ms = step_ms.saturating_mul(ActivityRule::default().max_gap_intervals.into());
    let what = match is_known {
        true => "the use of GPUs in that time is unknown",
        false => "GPUs and cost of that time are not included",
    };
    (unheard_ms > longest_ms).then(|| {
        format!(
            "for {} of the {} of the period, Prometheus has no series from a GPU exporter: {what}",
            duration(unheard_ms),
            duration(length_ms(period))
        )
    })
}

fn nodes(machines: &[Machine], prices: &Prices) -> Vec<CostNode> {
    let machines = machines.iter().zip(&prices.of_nodes).zip(&prices.places).zip(&prices.lists);
    let node = machines.map(|(((machine, price), place), list)| CostNode {
        gpu_type: machine.model.as_deref().map(canonical_gpu_model).unwrap_or_default(),
        name: machine.name.clone(),
        pool: machine.pool.clone(),
        provider_id: machine.provider_id.clone(),
        gpus: machine.gpus,
        price: *price,
        place: place.clone(),
        list_usd_micros_per_gpu_hour: *list,
    });
    node.collect()
}

/// Bills of machines, by their places.
type NodeBills = Vec<(usize, NodeBill)>;

/// What the GPUs of each machine were on one day, and from when to when they were seen.
fn bills(
    time: &ObservedTime,
    span: Span,
    machines: &[Machine],
    pods: &mut Pods<'_>,
) -> Result<(NodeBills, BTreeMap<usize, Span>)> {
    let places = Places::of(machines);
    let mut bills: BTreeMap<usize, NodeBill> = BTreeMap::new();
    let mut seen: BTreeMap<usize, Span> = BTreeMap::new();
    for device in &time.devices {
        for interval in device_intervals(&device.history, span)? {
            let holder = interval.holder.and_then(|number| time.holders.get(number as usize));
            let holder =
                holder.map(|holder| pods.number(&holder.namespace, &holder.pod, holder.turn));
            for (span, place) in places.within(&device.node, interval.span) {
                let bill = bills.entry(place).or_insert_with(|| without_time(&machines[place]));
                let seen = seen.entry(place).or_insert(span);
                seen.from_ms = seen.from_ms.min(span.from_ms);
                seen.to_ms = seen.to_ms.max(span.to_ms);
                let part = DeviceInterval { span, ..interval };
                *bill.gpus.entry((holder, interval.state)).or_default() += part.gpu_milli_ms();
            }
        }
    }
    for bill in bills.values_mut() {
        // On average over its GPUs: a node is billed while they are there.
        let time: i128 = bill.gpus.values().sum();
        let gpu_milli = i128::from(bill.offered.gpu_milli.max(1));
        bill.billed_ms = u64::try_from(time / gpu_milli).unwrap_or(0);
    }
    Ok((bills.into_iter().collect(), seen))
}

/// The bill of a machine of which nothing was seen.
fn without_time(machine: &Machine) -> NodeBill {
    NodeBill {
        offered: NodeParts {
            cpu_milli: machine.cpu_milli,
            memory_bytes: machine.memory_bytes,
            gpu_milli: u64::try_from(machine.gpus * 1000).unwrap_or(0),
        },
        ..NodeBill::default()
    }
}

/// Adds what was kept of CPU and memory on one day: of each machine while it had its name.
fn kept_on(
    asker: &mut Asker,
    span: Span,
    machines: &[Machine],
    pods: &mut Pods<'_>,
    bills: &mut [(usize, NodeBill)],
    notes: &mut Vec<String>,
) {
    let places = Places::of(machines);
    let changes = places.changes(span).into_iter();
    let mut from_ms = span.from_ms;
    for to_ms in changes.chain([span.to_ms]) {
        let part = Span { from_ms, to_ms };
        from_ms = to_ms;
        let is_read = ask_kept(asker, part, notes, |kept, time| {
            let Some((_, place)) = places.within(&kept.node, part).next() else { return };
            let Some((_, bill)) = bills.iter_mut().find(|(of, _)| *of == place) else { return };
            add(bill.cpu_memory.entry(pods.of_kept(kept)).or_default(), time);
        });
        if !is_read {
            return;
        }
    }
}

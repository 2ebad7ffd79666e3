//! The account of a period out of a ledger, node by node and day by day: what a bill, a FOCUS
//! dataset and shares of what is unused are made from.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use dovetail_account::cost::NodeBill;
use dovetail_account::device_time::Span;
use dovetail_account::rollup::{DAY_MS, HOUR_MS};
use dovetail_account::split::{ListPrices, NodeParts, SplitMethod};
use dovetail_audit::NodePrice;
use dovetail_console::table::counted;
use dovetail_price::{NodePlace, Purchase};
use dovetail_store::{HistoryPod, NodeFacts, NodeTime};

use super::account::{Account, CostNode, CostPod, Stretch, days_of};
use super::from_prometheus::LeftOpen;
use super::from_store::Ledger;
use super::teams::Teams;

/// An account whose period is whole hours of a ledger, with what its nodes were.
///
/// # Errors
/// A ledger that cannot be read, or does not keep nodes one by one so far back.
pub fn filled(
    mut account: Account,
    ledger: &mut Ledger,
    cluster: &str,
    teams: &Teams,
) -> Result<Account> {
    let mut days = Vec::new();
    for span in days_of(account.span) {
        let hours = span.from_ms / HOUR_MS..span.to_ms / HOUR_MS;
        let times = ledger.run(|store| NodeTime::of(store, cluster, hours))?;
        let numbers: BTreeSet<u32> = times.iter().map(|time| time.node).collect();
        let day = span.from_ms / DAY_MS;
        let facts =
            ledger.run(|store| NodeFacts::last_known(store, cluster, &numbers, day..day + 1))?;
        days.push((span, times, facts));
    }
    let holders = days.iter().flat_map(|(_, times, _)| times).flat_map(NodeTime::holders);
    let holders: BTreeSet<u32> = holders.collect();
    let pods = ledger.run(|store| HistoryPod::of(store, cluster, &holders))?;
    let places: BTreeMap<u32, u32> = pods.keys().copied().zip(0..).collect();
    account.pods = pods.into_values().map(|pod| cost_pod(pod, teams)).collect();
    let mut nodes: BTreeMap<u32, usize> = BTreeMap::new();
    let (mut partly, mut nameless) = (0, BTreeSet::new());
    let mut left = LeftOpen::default();
    for (span, times, facts) in days {
        let (mut bills, mut seen) = (Vec::new(), BTreeMap::new());
        for time in times {
            let Some((name, facts)) = facts.get(&time.node) else { continue };
            left.add_machine(name, &facts.provider_id);
            if *facts == NodeFacts::default() {
                nameless.insert(time.node);
            }
            let place = *nodes.entry(time.node).or_insert_with(|| {
                account.nodes.push(CostNode::default());
                account.nodes.len() - 1
            });
            account.nodes[place] = cost_node(name, facts, &time);
            let hours = &time.hours;
            let of_hours = Span { from_ms: hours.start * HOUR_MS, to_ms: hours.end * HOUR_MS };
            if !hours.is_empty() {
                seen.insert(place, of_hours);
            }
            partly += usize::from(time.has_unpriced && time.price.is_some());
            bills.push((place, bill(time, facts, &places)));
        }
        account.stretches.push(Stretch { span, bills, billed: BTreeMap::new(), seen });
    }
    if !account.are_machines_told {
        account.notes.extend(left.in_words(true));
    }
    if partly > 0 {
        account.notes.push(format!(
            "{}: some hours have no price; the amounts include their time but not their cost",
            counted(partly, "node-day")
        ));
    }
    if !nameless.is_empty() {
        account.notes.push(format!(
            "{}: recorded by an earlier version of dovetail, without provider, CPU and memory: \
             bills do not include them, and the GPUs carry the whole price; read the period again \
             to add them",
            counted(nameless.len(), "node")
        ));
    }
    Ok(account)
}

/// The method nobody asked for: `residual` where all that has a price has list prices of CPU and
/// memory, too.
pub fn default_method(account: &Account) -> SplitMethod {
    let bills = account.stretches.iter().flat_map(|stretch| &stretch.bills);
    let mut priced = bills.filter(|(_, bill)| bill.price.is_some()).peekable();
    let is_any = priced.peek().is_some();
    match is_any && priced.all(|(_, bill)| bill.list_prices.is_some()) {
        true => SplitMethod::Residual,
        false => SplitMethod::AllIn,
    }
}

fn cost_pod(pod: HistoryPod, teams: &Teams) -> CostPod {
    let HistoryPod { name, party, workload } = pod;
    CostPod {
        team: teams.team(&party.namespace, &party.namespace_labels, &party.labels),
        namespace: party.namespace,
        name,
        queue: workload.queue,
        job: workload.job,
        model: workload.model,
        turn: 0,
        asks_for_gpus: true,
    }
}

fn cost_node(name: &str, facts: &NodeFacts, time: &NodeTime) -> CostNode {
    let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let provider = ["aws", "gcp", "azure"].into_iter().find(|known| *known == facts.provider);
    let purchase = Purchase::from_name(&facts.purchase);
    CostNode {
        name: name.to_owned(),
        pool: facts.pool.clone(),
        gpu_type: facts.gpu_type.clone(),
        provider_id: facts.provider_id.clone(),
        gpus: time.devices.into(),
        price: NodePrice { usd_micros_per_gpu_hour: facts.usd_micros_per_gpu_hour },
        place: NodePlace {
            provider,
            region: text(&facts.region),
            instance_type: text(&facts.instance_type),
            purchase: purchase.unwrap_or_default(),
        },
        list_usd_micros_per_gpu_hour: None,
    }
}

fn bill(time: NodeTime, facts: &NodeFacts, places: &BTreeMap<u32, u32>) -> NodeBill {
    let place = |holder: u32| places.get(&holder).copied().unwrap_or(0);
    let vcpu = facts.usd_micros_per_vcpu_hour;
    let list_prices = vcpu.zip(facts.usd_micros_per_gib_hour).map(
        |(usd_micros_per_vcpu_hour, usd_micros_per_gib_hour)| ListPrices {
            usd_micros_per_vcpu_hour,
            usd_micros_per_gib_hour,
        },
    );
    let gpu_milli = u64::from(time.devices) * 1000;
    let all: i128 = time.gpus.values().sum();
    // On average over its GPUs: a node is billed while they are there.
    let billed_ms = u64::try_from(all / i128::from(gpu_milli.max(1))).unwrap_or(0);
    let NodeFacts { cpu_milli, memory_bytes, .. } = *facts;
    let gpus = time.gpus.into_iter();
    NodeBill {
        price: time.price,
        billed_ms,
        offered: NodeParts { cpu_milli, memory_bytes, gpu_milli },
        list_prices,
        gpus: gpus.map(|((holder, state), ms)| ((holder.map(place), state), ms)).collect(),
        cpu_memory: time.kept.into_iter().map(|(holder, held)| (place(holder), held)).collect(),
    }
}

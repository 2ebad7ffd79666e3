//! Jobs that ended lately, as a ledger knows them, and what each came to.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use dovetail_account::notices::{JobTotals, ReceiptTally, receipt_text};
use dovetail_account::rollup::HOUR_MS;
use dovetail_console::plain::plain;
use dovetail_costing::from_store::Ledger;
use dovetail_inventory::facts::Gathered;
use dovetail_objects::owner_kind;
use dovetail_settings::notices::NoticeSection;
use dovetail_store::{HistoryHour, HistoryPod, NodeFacts};

use super::noticing::{OwnerNotice, due_now, live, workloads_by_job};
use super::receipt_lives::{JobLives, told_by_lives};

/// A job that ended within these hours gets a receipt.
const RECENT_HOURS: u64 = 6;
/// A job may be between two attempts; and samples come late.
const SETTLED_MS: u64 = 900_000;
/// Nobody looks further back for the begin of a job.
const BACK_HOURS: u64 = 14 * 24;

/// The hours of a cluster from the last one back, with the owners of all pods in them.
struct Back<'l> {
    ledger: &'l mut Ledger,
    cluster: &'l str,
    floor: u64,
    jobs: BTreeMap<u32, String>,
}

impl Back<'_> {
    /// An hour; `None` before all that is kept.
    fn hour(&mut self, hour: u64) -> Result<Option<HistoryHour>> {
        if hour < self.floor {
            return Ok(None);
        }
        let cluster = self.cluster;
        let found = self.ledger.run(|store| HistoryHour::of(store, cluster, hour))?;
        let held = found.devices.iter().flat_map(|device| &device.intervals);
        let pods = held.filter_map(|interval| interval.holder);
        let new: BTreeSet<u32> = pods.filter(|pod| !self.jobs.contains_key(pod)).collect();
        let named = self.ledger.run(|store| HistoryPod::of(store, cluster, &new))?;
        self.jobs.extend(named.into_iter().map(|(number, pod)| (number, pod.workload.job)));
        Ok(Some(found))
    }
}

/// Receipts of jobs that ended lately and have none yet.
///
/// # Errors
/// A ledger that cannot be read.
pub fn receipts(
    ledger: &mut Ledger,
    cluster: &str,
    gathered: &Gathered,
    section: &NoticeSection,
    until_ms: u64,
) -> Result<Vec<OwnerNotice>> {
    let workloads = workloads_by_job(gathered);
    let floor = ledger.run(|store| store.writable_from_ms(cluster))? / HOUR_MS;
    let last = until_ms.saturating_sub(1) / HOUR_MS;
    let mut back = Back { ledger, cluster, floor, jobs: BTreeMap::new() };
    let mut ends: BTreeMap<String, u64> = BTreeMap::new();
    for hour in (last.saturating_sub(RECENT_HOURS)..=last).rev() {
        let Some(found) = back.hour(hour)? else { break };
        for interval in found.devices.iter().flat_map(|device| &device.intervals) {
            let Some(job) = interval.holder.and_then(|pod| back.jobs.get(&pod)) else { continue };
            let end_ms = ends.entry(job.clone()).or_default();
            *end_ms = interval.span.to_ms.max(*end_ms);
        }
    }
    let has_ended = |job: &str, end_ms: u64| {
        let kind = job.split(' ').next().unwrap_or_default();
        let is_gone = workloads.get(job).is_none_or(|workload| workload.pods.is_empty());
        owner_kind(kind).ends && is_gone && end_ms + SETTLED_MS <= until_ms
    };
    ends.retain(|job, end_ms| has_ended(job, *end_ms));
    let subjects: Vec<(String, i128)> = ends.keys().map(|job| (subject(job), 0)).collect();
    let due = due_now(back.ledger, cluster, section, &subjects)?;
    ends.retain(|job, _| due.contains(&subject(job)));
    let mut notices = Vec::new();
    let tallies = tallies(&mut back, &ends, last)?;
    let held = |job: &str| back.jobs.values().filter(|of_pod| *of_pod == job).count();
    for (job, tally) in tallies {
        let JobLives { waited_ms, attempts } = told_by_lives(gathered, &job, held(&job));
        let totals = JobTotals { waited_ms, attempts, ..tally.totals(plain(&job)) };
        notices.push(OwnerNotice {
            subject: subject(&job),
            reason: "GpuReceipt",
            owner: live(&job, gathered),
            text: receipt_text(&totals),
            name: plain(&job),
        });
    }
    Ok(notices)
}

fn subject(job: &str) -> String {
    format!("receipt {job}")
}

/// All that jobs held, back to an hour in which none of them held anything.
fn tallies(
    back: &mut Back<'_>,
    jobs: &BTreeMap<String, u64>,
    last: u64,
) -> Result<BTreeMap<String, ReceiptTally>> {
    let mut tallies: BTreeMap<String, ReceiptTally> = BTreeMap::new();
    let mut prices: BTreeMap<u32, Option<i64>> = BTreeMap::new();
    for hour in (last.saturating_sub(BACK_HOURS)..=last).rev() {
        if jobs.is_empty() {
            break;
        }
        let Some(found) = back.hour(hour)? else { break };
        let nodes: BTreeSet<u32> = found.devices.iter().map(|device| device.node).collect();
        let new: BTreeSet<u32> = nodes.into_iter().filter(|n| !prices.contains_key(n)).collect();
        if !new.is_empty() {
            let (cluster, day) = (back.cluster, hour / 24);
            let known = back
                .ledger
                .run(|store| NodeFacts::last_known(store, cluster, &new, day..day + 1))?;
            prices.extend(known.into_iter().map(|(n, (_, of))| (n, of.usd_micros_per_gpu_hour)));
        }
        let mut is_any = false;
        for device in &found.devices {
            let price = prices.get(&device.node).copied().flatten();
            for held in &device.intervals {
                let job = held.holder.and_then(|pod| back.jobs.get(&pod));
                let Some(job) = job.filter(|job| jobs.contains_key(*job)) else { continue };
                tallies.entry(job.clone()).or_default().add(device.device, held, price);
                is_any = true;
            }
        }
        // The end may lie some hours back.
        if !is_any && hour + RECENT_HOURS < last {
            break;
        }
    }
    Ok(tallies)
}

//! Owners whose GPUs idle, as a ledger knows them, and what they are told.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use dovetail_account::notices::{IdlePod, IdleSearch, IdleSpell, Rate, SeenDevice, due, idle_text};
use dovetail_account::rollup::HOUR_MS;
use dovetail_console::clock::now_ms;
use dovetail_console::plain::plain;
use dovetail_costing::from_objects::words;
use dovetail_costing::from_store::Ledger;
use dovetail_facts::{ObjectRef, Workload};
use dovetail_inventory::facts::Gathered;
use dovetail_settings::notices::NoticeSection;
use dovetail_store::{HistoryHour, HistoryPod, NodeFacts, Notices};

/// Nobody looks further back: then it is "at least" so long.
const BACK_HOURS: u64 = 72;
/// An owner that ignores this is told nothing.
const IGNORED: &str = "idle-notice";
/// What was told longer ago than this is forgotten.
const FORGET_MS: u64 = 400 * 86_400_000;
const DAY_HOURS: u64 = 24;

/// Something that an owner is told.
#[derive(Clone, Debug)]
pub struct OwnerNotice {
    /// What it is about, for the book of what was told.
    pub(crate) subject: String,
    /// Why, in one word.
    pub reason: &'static str,
    /// The owner as the cluster knows it; `None` where only series do.
    pub owner: Option<LiveOwner>,
    /// Kind, namespace and name.
    pub name: String,
    pub text: String,
}

/// An object of the cluster.
#[derive(Clone, Debug)]
pub struct LiveOwner {
    pub object: ObjectRef,
    pub api_version: String,
    pub uid: String,
}

/// Who is told now that all of its GPUs idle.
///
/// # Errors
/// A ledger that cannot be read.
pub(crate) fn idle_notices(
    ledger: &mut Ledger,
    cluster: &str,
    gathered: &Gathered,
    section: &NoticeSection,
    until_ms: u64,
) -> Result<Vec<OwnerNotice>> {
    let workloads = workloads_by_job(gathered);
    let spells = idle_spells(ledger, cluster, gathered, until_ms)?;
    let is_due = |(job, spell): &(String, IdleSpell)| {
        let workload = workloads.get(job);
        let is_ignored = workload.is_some_and(|workload| wants_no_notice(&workload.ignores));
        let is_notebook = job.starts_with("Notebook ");
        let idle_ms = until_ms.saturating_sub(spell.since_ms);
        !is_ignored && idle_ms >= section.idle_after_ms(is_notebook)
    };
    let spells: Vec<(String, IdleSpell)> = spells.into_iter().filter(is_due).collect();
    let subjects = spells.iter().map(|(job, spell)| (subject(job), weight(spell, until_ms)));
    let due = due_now(ledger, cluster, section, &subjects.collect::<Vec<_>>())?;
    let notices = spells.iter().filter(|(job, _)| due.contains(&subject(job)));
    let notice = |(job, spell): &(String, IdleSpell)| OwnerNotice {
        subject: subject(job),
        reason: "GpusIdle",
        owner: live(job, gathered),
        name: plain(job),
        text: idle_text(spell, until_ms),
    };
    Ok(notices.map(notice).collect())
}

/// Whether the annotation of an owner or of its pods says so. Ids of checks are read from it in
/// capitals, and so is this.
fn wants_no_notice(ignores: &BTreeSet<String>) -> bool {
    ignores.iter().any(|word| word.eq_ignore_ascii_case(IGNORED))
}

/// Notes that owners were told.
///
/// # Errors
/// A ledger that cannot be written.
pub(crate) fn note_told(ledger: &mut Ledger, cluster: &str, subjects: &[String]) -> Result<()> {
    let now_ms = now_ms();
    let before_ms = now_ms.saturating_sub(FORGET_MS);
    ledger.run(|store| Notices { cluster }.add(store, subjects, now_ms, before_ms))
}

/// Who may be told now of those there is something to tell, the weightiest first, after all that
/// was told before.
///
/// # Errors
/// A ledger that cannot be read.
pub(crate) fn due_now(
    ledger: &mut Ledger,
    cluster: &str,
    section: &NoticeSection,
    subjects: &[(String, i128)],
) -> Result<BTreeSet<String>> {
    let rate = Rate {
        repeat_ms: section.repeat_ms(),
        most: section.most_per_hour.unwrap_or(50) as usize,
        window_ms: HOUR_MS,
    };
    let told = ledger.run(|store| Notices { cluster }.told(store))?;
    let subjects = subjects.iter().map(|(subject, weight)| (subject.as_str(), *weight));
    let due = due(&rate, &told, subjects, now_ms());
    Ok(due.into_iter().map(str::to_owned).collect())
}

/// Workloads by kind, namespace and name, as a ledger names jobs.
pub(crate) fn workloads_by_job(gathered: &Gathered) -> BTreeMap<String, &Workload> {
    let workloads = gathered.facts.workloads.iter();
    workloads.map(|workload| (words(&workload.owner), workload)).collect()
}

/// An owner as the cluster knows it, by kind, namespace and name; its pods may be gone.
pub fn live(job: &str, gathered: &Gathered) -> Option<LiveOwner> {
    let (kind, name) = job.split_once(' ')?;
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    let object = ObjectRef::new(kind, namespace, name);
    let (api_version, uid) = gathered.sources.identity(&object)?;
    Some(LiveOwner { object, api_version, uid })
}

fn subject(job: &str) -> String {
    format!("idle {job}")
}

/// Dearest first; without prices the most GPU-time.
fn weight(spell: &IdleSpell, until_ms: u64) -> i128 {
    let time = i128::from(spell.gpu_milli) * i128::from(until_ms.saturating_sub(spell.since_ms));
    spell.cost.map_or(time / 3_600_000, |cost| i128::from(cost.usd_micros))
}

/// Owners all of whose GPUs are idle at a moment, by their names.
fn idle_spells(
    ledger: &mut Ledger,
    cluster: &str,
    gathered: &Gathered,
    until_ms: u64,
) -> Result<Vec<(String, IdleSpell)>> {
    let last = until_ms.saturating_sub(1) / HOUR_MS;
    let floor = ledger.run(|store| store.writable_from_ms(cluster))? / HOUR_MS;
    let mut search = IdleSearch::new(until_ms);
    let (mut names, mut owners): (Vec<String>, BTreeMap<u32, IdlePod>) = Default::default();
    let mut prices: BTreeMap<u32, Option<i64>> = BTreeMap::new();
    for back in 0..BACK_HOURS {
        let Some(hour) = last.checked_sub(back).filter(|hour| *hour >= floor) else { break };
        let found = ledger.run(|store| HistoryHour::of(store, cluster, hour))?;
        if back == 0 {
            let nodes: BTreeSet<u32> = found.devices.iter().map(|device| device.node).collect();
            let day = hour / DAY_HOURS;
            let known =
                ledger.run(|store| NodeFacts::last_known(store, cluster, &nodes, day..day + 1))?;
            let price = |(node, (_, facts)): (u32, (_, dovetail_store::NodeFacts))| {
                (node, facts.usd_micros_per_gpu_hour)
            };
            prices = known.into_iter().map(price).collect();
            let now = found.devices.iter().flat_map(|device| &device.intervals);
            let now = now.filter(|interval| interval.span.to_ms >= until_ms);
            let pods: BTreeSet<u32> = now.filter_map(|interval| interval.holder).collect();
            let mut places: BTreeMap<String, u32> = BTreeMap::new();
            for (pod, of_pod) in ledger.run(|store| HistoryPod::of(store, cluster, &pods))? {
                let job = of_pod.workload.job;
                let place = *places.entry(job.clone()).or_insert_with(|| {
                    names.push(job);
                    names.len() as u32 - 1
                });
                let key = (of_pod.party.namespace, of_pod.name);
                let made_ms = gathered.made_ms.get(&key).copied().unwrap_or(0);
                owners.insert(pod, IdlePod { owner: place, made_ms });
            }
        }
        let devices: Vec<SeenDevice<'_>> = found
            .devices
            .iter()
            .map(|device| SeenDevice {
                device: device.device,
                usd_micros_per_gpu_hour: prices.get(&device.node).copied().flatten(),
                intervals: &device.intervals,
            })
            .collect();
        if !search.look_back(&devices, |pod| owners.get(&pod).copied()) {
            break;
        }
    }
    let spells = search.spells().into_iter();
    Ok(spells.map(|(owner, spell)| (names[owner as usize].clone(), spell)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_that_asks_for_no_notice_by_its_annotation_gets_none() {
        for (words, expected) in [("IDLE-NOTICE", true), ("idle-notice", true), ("IDL-01", false)] {
            assert_eq!(wants_no_notice(&BTreeSet::from([words.to_owned()])), expected, "{words}");
        }
    }
}

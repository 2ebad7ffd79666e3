//! What a job did over a period, by the series of its devices, of the hosts of its pods, and of
//! their containers.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use dovetail_account::device_time::{Span, device_intervals};
use dovetail_console::app::App;
use dovetail_console::plain::plain;
use dovetail_facts::ObjectRef;
use dovetail_metrics::exporter::{DeviceHolder, HolderDoubt, Misplaced};
use dovetail_metrics::job::{
    DeviceHolding, Grid, JobReadings, NODE_NAMES, NodeNames, job_queries, node_queries, records,
};
use dovetail_phases::job_phases::{PhaseRule, job_phases};
use dovetail_settings::errors::BadInput;
use dovetail_sources::prometheus::{Asker, ObservedPeriod};

use super::held::{HeldMember, JobTime, Samples, is_together};
use super::name::{Job, WantedJob};
use super::of_several::{for_any_holder, mark};
use crate::account::{Account, CostPod};
use crate::flags::OverTime;
use crate::from_objects::words;
use crate::from_prometheus::Look;
use crate::usage::grouping::owner_name;

/// The job over the asker's period.
pub fn time(
    app: &App,
    mut account: Account,
    job: Job,
    look: &Look,
    over: &mut OverTime,
) -> Result<JobTime> {
    let asker = &mut over.asker;
    let (period, step_ms) = (asker.period, asker.step_ms);
    let held = held(&account, &job, look, period)?;
    let (mut readings, mut notes) = readings(asker, &account, &job, &look.seen);
    let alone = nodes_alone(&account, &held, &look.seen);
    read_nodes(asker, &alone, &mut readings, &mut notes);
    asker.tell_warnings(app);
    let workload = over.objects.iter().flat_map(|objects| &objects.gathered.facts.workloads);
    let workload = workload.into_iter().find(|workload| words(&workload.owner) == job.name);
    let together = is_together(&job, workload);
    let holdings: Vec<DeviceHolding<'_>> = held.iter().map(|(_, holding)| *holding).collect();
    let count = usize::try_from((period.to_ms - period.from_ms).div_ceil(step_ms)).unwrap_or(0);
    let grid = Grid { from_ms: period.from_ms, step_ms, count };
    let groups = records(&holdings, together, &readings, &look.seen.observation, grid);
    let nodes: BTreeMap<&str, usize> =
        account.nodes.iter().enumerate().map(|(place, node)| (&*node.name, place)).collect();
    let mut members = Vec::with_capacity(holdings.len());
    let mut ranks = 0;
    for mut group in groups {
        let shared: Vec<Vec<Span>> = group
            .holdings
            .iter()
            .map(|place| for_any_holder(&held[*place].1, &look.seen.time.holders))
            .collect();
        for (member, spans) in group.record.members.iter_mut().zip(&shared) {
            mark(&mut member.samples, grid, spans);
        }
        let split =
            job_phases(&group.record, &PhaseRule::default()).with_context(|| plain(&job.name))?;
        if together {
            ranks = ranks.max(group.record.ranks);
        }
        let members_of = group.holdings.into_iter().zip(split.members).zip(shared);
        for ((place, phases), shared) in members_of {
            let (pod, DeviceHolding { device, gpu_milli, held, .. }) = held[place];
            let Some(node) = nodes.get(device.node.as_str()) else { continue };
            members.push(HeldMember {
                pod,
                node: *node,
                gpu_milli_ms: i128::from(gpu_milli) * i128::from(held.to_ms - held.from_ms),
                phases,
                is_for_any_holder: !shared.is_empty(),
            });
        }
    }
    account.notes.extend(notes);
    let samples = Samples { step_ms, span_ms: period.to_ms - period.from_ms, ranks };
    let time = JobTime { account, job, members, samples };
    time.refuse_blind("the exporter on its nodes has no signal that shows whether a GPU was busy")
}

/// Why nothing is known of a job whose pods series name where they cannot have been; `None` where
/// they name none.
pub fn doubted(wanted: &WantedJob<'_>, look: &Look) -> Option<anyhow::Error> {
    let is_meant = |one: &&Misplaced| {
        let DeviceHolder { namespace, pod, .. } = &one.holder;
        let turn = look.kube.turn_at(namespace, pod, one.held.from_ms);
        let owner = look.kube.top_owner(namespace, pod, turn);
        let job = match owner {
            Some((kind, name)) => words(&ObjectRef::new(&kind, namespace, &name)),
            None => format!("{namespace}/{}", owner_name(pod)),
        };
        let (namespace, name) = (namespace.clone(), pod.clone());
        wanted.means(&CostPod { namespace, name, job, ..CostPod::default() })
    };
    let one = look.left.misplaced.iter().find(is_meant)?;
    let reason = match one.doubt {
        HolderDoubt::Elsewhere => "where the API server has no such pod",
        HolderDoubt::AsksForNone | HolderDoubt::Scraped => "which the pod did not request",
    };
    Some(
        BadInput(plain(&format!(
            "series report {}/{} on a GPU of {}, {reason}: which pod used it is unknown, and no \
             other GPU is known to be allocated to a job named `{}`",
            one.holder.namespace, one.holder.pod, one.node, wanted.name
        )))
        .into(),
    )
}

/// Everything else that a server knows of the job's pods, and what it did not answer.
fn readings(
    asker: &mut Asker,
    account: &Account,
    job: &Job,
    seen: &ObservedPeriod,
) -> (JobReadings, Vec<String>) {
    let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for number in &job.pods {
        let pod = &account.pods[*number as usize];
        names.entry(&pod.namespace).or_default().insert(&pod.name);
    }
    let (mut readings, mut notes) = (JobReadings::default(), Vec::new());
    let window_ms = asker.period.to_ms - asker.period.from_ms;
    for (namespace, names) in names {
        let names: Vec<&str> = names.into_iter().collect();
        for asked in job_queries(&seen.pods, namespace, &names, asker.step_ms, window_ms) {
            let answer = match asked.is_instant {
                true => asker.instant(&asked.query, asker.period.to_ms.saturating_sub(1)),
                false => asker.range(&asked.query),
            };
            match answer {
                Ok(series) => readings.take(asked.series, &seen.pods, series),
                Err(error) => {
                    notes.push(format!("{} could not be read: {error}", asked.series.name()))
                }
            }
        }
    }
    (readings, notes)
}

/// Nodes whose GPUs nobody else held: what such a node does it does for the job.
fn nodes_alone<'s>(
    account: &Account,
    held: &[(u32, DeviceHolding<'_>)],
    seen: &'s ObservedPeriod,
) -> BTreeSet<&'s str> {
    let pods = held.iter().map(|(number, _)| name_of(account, *number));
    let pods: BTreeSet<(&str, &str, u32)> = pods.collect();
    let mut alone: BTreeMap<&str, bool> = BTreeMap::new();
    for device in &seen.time.devices {
        if !device.history.unseen.is_empty() {
            // Nobody knows who had it for a while.
            alone.insert(&device.node, false);
        }
        for holding in &device.history.holdings {
            let Some(holder) = seen.time.holders.get(holding.holder as usize) else { continue };
            let is_ours = pods.contains(&(&*holder.namespace, &*holder.pod, holder.turn));
            *alone.entry(&device.node).or_insert(true) &= is_ours;
        }
    }
    alone.into_iter().filter(|(_, is_alone)| *is_alone).map(|(node, _)| node).collect()
}

/// What node_exporter says of these nodes; nothing where nobody collects it.
fn read_nodes(
    asker: &mut Asker,
    nodes: &BTreeSet<&str>,
    readings: &mut JobReadings,
    notes: &mut Vec<String>,
) {
    if nodes.is_empty() {
        return;
    }
    let mut named = Vec::new();
    for name in NODE_NAMES {
        match asker.instant(name, asker.period.to_ms.saturating_sub(1)) {
            Ok(series) => named.extend(series),
            Err(error) => notes.push(format!("names of nodes could not be read: {error}")),
        }
    }
    let names = NodeNames::of(&named, nodes);
    for asked in node_queries(&names, asker.step_ms) {
        match asker.range(&asked.query) {
            Ok(series) => readings.take_nodes(asked.series, &names, series),
            Err(error) => {
                notes.push(format!("{} of nodes could not be read: {error}", asked.series.name()))
            }
        }
    }
}

/// The devices that pods of the job held, as the bill has them.
fn held<'a>(
    account: &'a Account,
    job: &Job,
    look: &'a Look,
    period: Span,
) -> Result<Vec<(u32, DeviceHolding<'a>)>> {
    let numbers = job.pods.iter().map(|number| (name_of(account, *number), *number));
    let numbers: BTreeMap<(&str, &str, u32), u32> = numbers.collect();
    let seen = &look.seen;
    let mut held = Vec::new();
    for device in &seen.time.devices {
        // By pod: when how much more or less of the device was held.
        let mut changes: BTreeMap<u32, BTreeMap<u64, i64>> = BTreeMap::new();
        let mut containers: BTreeMap<u32, &str> = BTreeMap::new();
        for interval in device_intervals(&device.history, period)? {
            let holder = interval.holder.and_then(|holder| seen.time.holders.get(holder as usize));
            let Some(holder) = holder else { continue };
            let key = (&*holder.namespace, &*holder.pod, holder.turn);
            let Some(number) = numbers.get(&key) else { continue };
            let of_pod = changes.entry(*number).or_default();
            *of_pod.entry(interval.span.from_ms).or_default() += interval.gpu_milli;
            *of_pod.entry(interval.span.to_ms).or_default() -= interval.gpu_milli;
            containers.insert(*number, &holder.container);
        }
        for (number, changes) in changes {
            let container = containers.get(&number).copied().unwrap_or_default();
            held.extend(pieces(&changes).into_iter().map(|(gpu_milli, span)| {
                let (namespace, pod, turn) = name_of(account, number);
                let uid = look.kube.lives(namespace, pod).get(turn as usize);
                let uid = uid.map_or("", |life| &life.uid);
                (
                    number,
                    DeviceHolding { device, namespace, pod, uid, container, gpu_milli, held: span },
                )
            }));
        }
    }
    Ok(held)
}

/// Namespace and name of a pod, and which of that name it is.
fn name_of(account: &Account, number: u32) -> (&str, &str, u32) {
    let pod = &account.pods[number as usize];
    (&pod.namespace, &pod.name, pod.turn)
}

/// Spans in which the same was held.
fn pieces(changes: &BTreeMap<u64, i64>) -> Vec<(i64, Span)> {
    let mut pieces = Vec::new();
    let (mut gpu_milli, mut from_ms) = (0, 0);
    for (at_ms, change) in changes {
        if *change == 0 {
            continue;
        }
        if gpu_milli > 0 {
            pieces.push((gpu_milli, Span { from_ms, to_ms: *at_ms }));
        }
        gpu_milli += change;
        from_ms = *at_ms;
    }
    pieces
}

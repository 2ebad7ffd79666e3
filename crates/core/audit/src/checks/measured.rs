//! What was measured: GPUs that are held and not used, or used a little.
//!
//! All of these rest on [`dovetail_facts::Facts::usage`]; a workload that nobody measured triggers
//! none of them.

use dovetail_facts::{GpuUse, Node, ObjectRef, Pod, Workload, WorkloadClass};
use dovetail_model::{MigProfile, labels};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use dovetail_account::device_time::DeviceState;
use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_units::amount::{gib, percent};
use dovetail_units::duration::{duration, duration_at_least};

use super::fewer_pods::{fewer_replicas, no_pods};
use super::ordinals::{has_ordinals, last_of};
use super::profile_names::ProfileNames;
use super::{View, mend, node_ref, pod_ref};
use crate::catalogue::Check;
use crate::finding::{Attribution, Finding};
use crate::names::first_of;
use crate::remedy::PatchChange;

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// Pods that one line names.
const MOST_NAMED: usize = 3;

/// What becomes of claims that a StatefulSet made for its replicas, where it says so.
const VOLUMES_GO: &str =
    "deleted with their data, because persistentVolumeClaimRetentionPolicy.whenScaled is Delete";

const WHOLE: &str = labels::NVIDIA_GPU;
const SHARED: &str = labels::NVIDIA_SHARED;
const GPU_MEMORY: &str = labels::NVIDIA_MEMORY;
const REPLICAS: &str = labels::NVIDIA_REPLICAS;

/// Workloads with GPUs, with their number and their pods that were measured for long enough.
fn measured<'a>(view: &View<'a>) -> impl Iterator<Item = (u32, &'a Workload, Vec<&'a Pod>)> {
    let least_ms = view.facts.thresholds.least_measured_hours * HOUR_MS;
    let numbered = view.facts.workloads.iter().zip(0..);
    numbered.filter_map(move |(workload, number)| {
        let long = |pod: &&Pod| {
            let known = pod.uses.iter().map(GpuUse::known_ms).min();
            pod.node.is_some() && !pod.is_starting && known >= Some(least_ms)
        };
        let pods: Vec<&Pod> = workload.pods.iter().filter(long).collect();
        (!pods.is_empty() && workload.has_gpus()).then_some((number, workload, pods))
    })
}

/// The idle time of some units of pods, all of it or so much of a unit.
pub(super) fn idle_claims(
    view: &View<'_>,
    holder: u32,
    units: impl Iterator<Item = Vec<(u32, i64)>>,
    part_of: (i64, i64),
) -> Vec<Attribution> {
    // Two units on one device are one claim: else each would contest the other.
    let mut of_device: BTreeMap<u32, i64> = BTreeMap::new();
    for (device, gpu_milli) in units.flatten() {
        *of_device.entry(device).or_default() += gpu_milli * part_of.0 / part_of.1.max(1);
    }
    let claim = |(device, gpu_milli): (u32, i64)| Attribution {
        device,
        holder: Some(holder),
        states: BTreeSet::from([DeviceState::Idle]),
        span: view.facts.period,
        gpu_milli: gpu_milli.min(WHOLE_DEVICE_MILLI),
    };
    of_device.into_iter().map(claim).collect()
}

pub(super) fn all_units(pod: &Pod) -> impl Iterator<Item = Vec<(u32, i64)>> {
    pod.devices.iter().cloned()
}

/// The idle time of some GPUs of each measured pod: those at these places when the least active one
/// comes first. What nobody knows may be work.
pub(super) fn idle_of_least_active(
    view: &View<'_>,
    holder: u32,
    workload: &Workload,
    places: Range<usize>,
) -> Vec<Attribution> {
    let measured = workload.pods.iter().filter(|pod| pod.uses.len() == pod.devices.len());
    let units = measured.flat_map(|pod| {
        let mut units: Vec<_> = pod.uses.iter().zip(&pod.devices).collect();
        units.sort_by_key(|(used, _)| used.active_at_most_ms());
        let wanted = units.into_iter().skip(places.start).take(places.len());
        wanted.map(|(_, devices)| devices.clone())
    });
    idle_claims(view, holder, units, (1, 1))
}

/// What the evidence rests on.
pub(super) fn period(view: &View<'_>) -> String {
    let Some(period) = view.facts.usage else { return "nothing".to_owned() };
    let length = duration(period.span.to_ms - period.span.from_ms);
    format!("{length} in steps of {}", duration(period.step_ms))
}

pub(super) fn half_used(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for (number, workload, pods) in measured(view) {
        let used = |pod: &Pod| pod.uses.iter().filter(|used| !used.never_computed()).count();
        let most = pods.iter().map(|pod| used(pod)).max().unwrap_or(0);
        let asked = pods.iter().map(|pod| pod.uses.len()).min().unwrap_or(0);
        // The pods share a template, which cannot ask for less than one of them used. Pods that all
        // stand still altogether have a check of their own.
        if !(1..asked).contains(&most) {
            continue;
        }
        let unused = pods.iter().flat_map(|pod| {
            let units = pod.uses.iter().zip(&pod.devices);
            let unused = units.filter(|(used, _)| used.never_computed());
            unused.map(|(_, devices)| devices.clone()).take(pod.uses.len() - most)
        });
        let mut rest = pods.iter().flat_map(|pod| &pod.uses).filter(|used| !used.never_computed());
        let computed = match rest.all(|used| used.active_ms > 0) {
            true => "GPUs that were ever active",
            false => "GPUs that may have been active",
        };
        let mut finding = Finding::new(check, &workload.owner)
            .with("GPUs of one pod", asked)
            .with(computed, most)
            .with("measured", period(view));
        if let [(resource, _)] = workload.gpus_per_pod().into_iter().collect::<Vec<_>>()[..] {
            finding = finding
                .for_example(format!("resources: {{limits: {{{resource}: {most}}}}}"))
                .mended_in(workload, mend::gpus(workload, resource, most as i64));
        } else {
            let example = format!("fewer GPUs in its limits: no pod used more than {most}");
            finding = finding.for_example(example);
        }
        finding.claims = idle_claims(view, number, unused, (1, 1));
        found.push(finding.affecting(pods.iter().map(|pod| pod_ref(workload, pod))));
    }
}

pub(super) fn never_used(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    for (number, workload, pods) in measured(view) {
        // For servers and notebooks there are checks that know what they wait for.
        let has_own =
            matches!(workload.class, Some(WorkloadClass::Inference | WorkloadClass::Interactive));
        let never = |pod: &&Pod| pod.uses.iter().all(GpuUse::never_computed);
        let still: Vec<&Pod> = pods.iter().copied().filter(never).collect();
        // One replica of several that are alike is no workload without use: fewer replicas are.
        let is_part = still.len() < pods.len();
        if has_own || still.is_empty() || is_part && is_replicated(workload) {
            continue;
        }
        let count = match still.len() == pods.len() {
            true => pods.len().to_string(),
            false => format!("{} of {}", still.len(), pods.len()),
        };
        let mut finding = Finding::new(check, &workload.owner)
            .with("pods whose GPUs were never active", count)
            .with("measured", period(view));
        finding = match is_part {
            true => finding.for_example(
                "find out why these pods do not use their GPUs, and request fewer pods if the others do the work",
            ),
            false => stopped(finding, view, workload),
        };
        if finding.examples.is_empty() {
            finding = finding.for_example(no_pods(&workload.owner));
        }
        let units = still.iter().flat_map(|pod| all_units(pod));
        finding.claims = idle_claims(view, number, units, (1, 1));
        found.push(finding.affecting(still.iter().map(|pod| pod_ref(workload, pod))));
    }
}

pub(super) fn fits_a_slice(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let names = ProfileNames::of(view.facts);
    for (number, workload, pods) in measured(view) {
        let is_one = workload.gpus_per_pod() == BTreeMap::from([(WHOLE, 1)]);
        let is_gang = workload.class == Some(WorkloadClass::Training) && workload.replicas > 1;
        if !is_one || is_gang || workload.class == Some(WorkloadClass::Interactive) {
            continue;
        }
        let uses = || pods.iter().flat_map(|pod| &pod.uses);
        let busy: Option<Vec<u32>> = uses().map(|used| used.p95_micro_percent).collect();
        let memory: Option<Vec<u64>> = uses().map(|used| used.memory_peak_bytes).collect();
        let (Some(busy), Some(memory)) = (busy, memory) else { continue };
        let (busy, memory) = (busy.into_iter().max(), memory.into_iter().max());
        let (Some(busy), Some(memory)) = (busy, memory) else { continue };
        let is_used = uses().any(|used| used.active_ms > 0);
        let slice = smallest_slice(view, &names, &pods, (busy, memory)).filter(|_| is_used);
        let Some((name, slices, of)) = slice else { continue };
        let resource = format!("{}{name}", labels::NVIDIA_MIG);
        let mut finding = Finding::new(check, &workload.owner)
            .with("95th percentile of activity", percent(f64::from(busy) / 1e8))
            .with("peak memory", gib(memory))
            .with("smallest slice that fits", name)
            .with("measured", period(view))
            .for_example(format!("resources: {{limits: {{{resource}: 1}}}}  # on nodes with MIG"))
            .mended_in(workload, mend::other_gpus(view, workload, WHOLE, &resource));
        let units = pods.iter().flat_map(|pod| all_units(pod));
        finding.claims = idle_claims(view, number, units, (of - slices, of));
        found.push(finding.affecting(pods.iter().map(|pod| pod_ref(workload, pod))));
    }
}

/// The smallest slice of the model that all pods are on with enough compute and memory, of those
/// that a GPU has room for twice: its name on nodes of the model, its compute slices, and of how
/// many.
fn smallest_slice<'n>(
    view: &View<'n>,
    names: &'n ProfileNames<'_>,
    pods: &[&Pod],
    (busy_micro_percent, memory_bytes): (u32, u64),
) -> Option<(&'n str, i64, i64)> {
    let nodes = pods.iter().map(|pod| view.node_of.get(pod.node.as_deref()?).copied());
    let nodes: Vec<&Node> = nodes.collect::<Option<_>>()?;
    let (&node, others) = nodes.split_first()?;
    if others.iter().any(|&other| names.model(other) != names.model(node)) {
        return None;
    }
    let table = names.table(node)?;
    let of = u64::from(table.compute_slices);
    let percent = view.facts.thresholds.slice_busy_percent;
    let fits = |profile: &MigProfile| {
        let compute = u64::from(profile.compute_slices) * percent * 1_000_000 / of;
        let has_memory = profile.named_gb().is_some_and(|gb| memory_bytes <= gb << 30);
        // Of what a GPU has room for once, the rest saves nothing unless smaller work fills it.
        let is_several = profile.starts.len() > 1 && !profile.has_media();
        is_several && has_memory && u64::from(busy_micro_percent) <= compute
    };
    let fitting = table.profiles.iter().enumerate().filter(|&(_, profile)| fits(profile));
    let (place, smallest) =
        fitting.min_by_key(|(_, profile)| (profile.memory_slices, profile.compute_slices))?;
    let slices = (smallest.compute_slices, table.compute_slices);
    Some((names.name_at(node, place)?, i64::from(slices.0), i64::from(slices.1)))
}

/// Pods whose GPUs all stand still for longer than so long until the end of the period, with the
/// hours.
fn idle_pods<'a>(
    view: &View<'_>,
    workload: &'a Workload,
    idle_after_ms: u64,
) -> Vec<(&'a Pod, u64)> {
    let Some(period) = view.facts.usage else { return Vec::new() };
    let pods = workload.pods.iter().filter_map(|pod| {
        let since = pod.uses.iter().map(|used| used.idle_since_ms);
        // The GPU that stopped last.
        let since_ms = since.collect::<Option<Vec<u64>>>()?.into_iter().max()?;
        let length_ms = period.span.to_ms.saturating_sub(since_ms);
        let is_idle = length_ms > idle_after_ms && pod.node.is_some() && !pod.is_starting;
        is_idle.then_some((pod, length_ms))
    });
    pods.collect()
}

/// The finding with the idle pods of a workload, whose GPU-time it claims.
fn with_idle(
    mut finding: Finding,
    view: &View<'_>,
    (workload, number): (&Workload, u32),
    idle: &[(&Pod, u64)],
) -> Finding {
    for (pod, length_ms) in idle {
        let what = format!("{} for {}", pod.name, duration_at_least(*length_ms));
        finding = finding.with("no GPU activity", what).affecting([pod_ref(workload, pod)]);
    }
    let units = idle.iter().flat_map(|(pod, _)| all_units(pod));
    finding.claims = idle_claims(view, number, units, (1, 1));
    finding
}

fn idle_of_class(
    view: &View<'_>,
    class: WorkloadClass,
    (all_of_them, idle_after_minutes): (bool, u64),
    check: &'static Check,
    found: &mut Vec<Finding>,
) {
    for (workload, number) in view.facts.workloads.iter().zip(0..) {
        if workload.class != Some(class) || !workload.has_gpus() {
            continue;
        }
        let idle = idle_pods(view, workload, idle_after_minutes * MINUTE_MS);
        let placed = workload.pods.iter().filter(|pod| pod.node.is_some()).count();
        if idle.is_empty() || all_of_them && idle.len() < placed {
            continue;
        }
        let mut finding = Finding::new(check, &workload.owner).with("measured", period(view));
        if class == WorkloadClass::Interactive && idle.len() == placed {
            finding = stopped(finding, view, workload);
        }
        found.push(with_idle(finding, view, (workload, number), &idle));
    }
}

pub(super) fn idle_notebook(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let minutes = view.facts.thresholds.idle_notebook_minutes;
    idle_of_class(view, WorkloadClass::Interactive, (false, minutes), check, found);
}

/// Replicas that stand still while others of the same server answer.
pub(super) fn idle_replicas(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let minutes = view.facts.thresholds.idle_server_minutes;
    for (workload, number) in view.facts.workloads.iter().zip(0..) {
        let is_server = workload.class == Some(WorkloadClass::Inference);
        let may_be_one = workload.class.is_none() && is_replicated(workload);
        if !(is_server || may_be_one) || !workload.has_gpus() {
            continue;
        }
        let idle = idle_pods(view, workload, minutes * MINUTE_MS);
        let placed = workload.pods.iter().filter(|pod| pod.node.is_some()).count();
        if idle.is_empty() || idle.len() == placed {
            continue;
        }
        let finding = Finding::new(check, &workload.owner)
            .with("idle replicas", format!("{} of {placed}", idle.len()))
            .with("measured", period(view));
        found.push(match has_ordinals(workload) {
            true => with_last_idle(finding, view, (workload, number), idle),
            false => {
                let names = idle.iter().map(|(pod, _)| pod.name.as_str()).collect();
                let finding = fewer_replicas(finding, view, workload, &names);
                with_idle(finding, view, (workload, number), &idle)
            }
        });
    }
}

/// The finding with those of the idle pods that fewer replicas remove: no idle one before a busy
/// one, whose GPU-time is not claimed.
fn with_last_idle(
    mut finding: Finding,
    view: &View<'_>,
    (workload, number): (&Workload, u32),
    idle: Vec<(&Pod, u64)>,
) -> Finding {
    let after_ms = view.facts.thresholds.idle_server_minutes * MINUTE_MS;
    let of_owner = view.facts.workloads.iter().filter(|of| of.owner == workload.owner);
    let idle_of_owner = of_owner.flat_map(|of| idle_pods(view, of, after_ms));
    let idle_of_owner: BTreeSet<&str> = idle_of_owner.map(|(pod, _)| &*pod.name).collect();
    let last = last_of(view.facts, workload, &idle_of_owner);
    let (last_idle, others): (Vec<_>, Vec<_>) =
        idle.into_iter().partition(|(pod, _)| last.contains(&*pod.name));
    let count = format!("{}, and fewer replicas remove these first", last_idle.len());
    finding = finding.with("idle replicas with the highest ordinals", count);
    if !others.is_empty() {
        let names = first_of(others.iter().map(|(pod, _)| &pod.name), MOST_NAMED);
        finding = finding.with("idle, but not removed before a busy replica", names);
    }
    if last_idle.is_empty() {
        let pods = others.iter().map(|(pod, _)| pod_ref(workload, pod));
        return finding.affecting(pods).for_example(
            "find out why these replicas get no requests: fewer replicas would remove a busy one, because the \
             highest ordinal goes first",
        );
    }
    if workload.scale_down_deletes_volumes && workload.template.has_lasting_volume {
        finding = finding.with("volumes of the removed replicas", VOLUMES_GO);
    }
    finding = fewer_replicas(finding, view, workload, &last);
    with_idle(finding, view, (workload, number), &last_idle)
}

/// Stops a workload. Where an autoscaler would start its pods again, only a change of that one
/// lasts, and without it no time comes back.
fn stopped(mut finding: Finding, view: &View<'_>, workload: &Workload) -> Finding {
    let mut autoscalers = view.facts.autoscalers.iter().filter(|by| by.starts_from_zero());
    let Some(by) = autoscalers.find(|by| workload.is_made_by(&by.scales)) else {
        return finding.mended_in(workload, [PatchChange::Stop]);
    };
    let of = by.object.in_words();
    finding.is_undone = true;
    finding.with("replicas set by", &of).for_example(format!(
        "annotations: {{autoscaling.keda.sh/paused-replicas: \"0\"}}  # of {of}, which would start the pods \
         again; or delete it first"
    ))
}

/// Whether its pods are alike and any number of them will do.
fn is_replicated(workload: &Workload) -> bool {
    matches!(&*workload.owner.kind, "Deployment" | "ReplicaSet" | "Rollout")
        && !matches!(workload.class, Some(WorkloadClass::Training | WorkloadClass::Batch))
}

/// Whether none of the replicas of a server computes, as far as it was measured.
pub(super) fn is_idle_server(view: &View<'_>, workload: &Workload) -> bool {
    let after_ms = view.facts.thresholds.idle_server_minutes * MINUTE_MS;
    let placed = workload.pods.iter().filter(|pod| pod.node.is_some()).count();
    placed > 0 && idle_pods(view, workload, after_ms).len() == placed
}

/// None of its replicas computes: nobody asks it.
pub(super) fn idle_server(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let minutes = view.facts.thresholds.idle_server_minutes;
    idle_of_class(view, WorkloadClass::Inference, (true, minutes), check, found);
}

pub(super) fn notebook_on_large_gpu(
    view: &View<'_>,
    check: &'static Check,
    found: &mut Vec<Finding>,
) {
    for (workload, number) in view.facts.workloads.iter().zip(0..) {
        let is_notebook = workload.class == Some(WorkloadClass::Interactive);
        if !is_notebook || !workload.gpus_per_pod().contains_key(WHOLE) {
            continue;
        }
        for (pod, node) in view.placed(workload).filter(|(_, node)| node.has_gpus()) {
            let memory = node.node.labels.get(GPU_MEMORY).and_then(|text| text.parse().ok());
            let replicas = node.node.labels.get(REPLICAS).map(String::as_str);
            let is_shared = replicas.is_some_and(|replicas| replicas != "1");
            let large_mib = view.facts.thresholds.large_gpu_mib;
            if memory.is_some_and(|mib: u64| mib >= large_mib) && !is_shared {
                let model = node.gpus.get(WHOLE).and_then(|gpus| gpus.model.as_deref());
                let mut finding = Finding::new(check, &workload.owner)
                    .with("model", model.unwrap_or("unknown"))
                    .mended_in(workload, mend::other_gpus(view, workload, WHOLE, SHARED))
                    .affecting([pod_ref(workload, pod)]);
                // Replicas for four pods, as in the example, leave one of four parts to it.
                finding.claims = idle_claims(view, number, all_units(pod), (3, 4));
                found.push(finding);
            }
        }
    }
}

pub(super) fn shared_memory_is_full(
    view: &View<'_>,
    check: &'static Check,
    found: &mut Vec<Finding>,
) {
    let full_percent = u128::from(view.facts.thresholds.full_memory_percent);
    let mut used: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for workload in view.gpu_workloads() {
        for pod in &workload.pods {
            let Some(node) = pod.node.as_deref() else { continue };
            for of_gpu in &pod.uses {
                let sum = used.entry((node, &of_gpu.gpu)).or_default();
                *sum = sum.saturating_add(of_gpu.memory_peak_bytes.unwrap_or(0));
            }
        }
    }
    for ((node, gpu), bytes) in used {
        let Some(node) = view.node_of.get(node) else { continue };
        let number = |key: &str| node.node.labels.get(key)?.parse::<u64>().ok();
        let (Some(mib), Some(2..)) = (number(GPU_MEMORY), number(REPLICAS)) else { continue };
        let all = u128::from(mib) << 20;
        if u128::from(bytes) * 100 > all * full_percent {
            let percent = u128::from(bytes) * 100 / all.max(1);
            let full = format!("{percent}% on GPU {gpu} of {}", node.node.name);
            let finding = Finding::new(check, &node.pool)
                .with("most memory of its pods together", full)
                .with("measured", period(view));
            found.push(finding.affecting([node_ref(node)]));
        }
    }
}

/// What the measured pods of a namespace did with their GPUs.
#[derive(Default)]
struct OfNamespace<'a> {
    idle_ms: u64,
    /// With what nobody knows: it may be work.
    looked_ms: u64,
    has_unknown: bool,
    owners: BTreeSet<&'a ObjectRef>,
    /// Each workload by its number, with its pods.
    held: Vec<(u32, Vec<&'a Pod>)>,
}

pub(super) fn owned_and_idle(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let lent_percent = u128::from(view.facts.thresholds.lent_idle_percent);
    let mut namespaces: BTreeMap<&str, OfNamespace<'_>> = BTreeMap::new();
    for (number, workload, pods) in measured(view) {
        let of = namespaces.entry(&workload.owner.namespace).or_default();
        for used in pods.iter().flat_map(|pod| &pod.uses) {
            of.idle_ms += used.idle_ms;
            of.looked_ms += used.looked_ms();
            of.has_unknown |= used.unknown_ms > 0;
            if used.idle_ms > 0 {
                of.owners.insert(&workload.owner);
            }
        }
        of.held.push((number, pods));
    }
    for namespace in view.facts.namespaces.iter().filter(|space| !space.gpu_quota.is_empty()) {
        let Some(of) = namespaces.remove(&*namespace.name) else { continue };
        let (idle, looked) = (u128::from(of.idle_ms), u128::from(of.looked_ms));
        if idle * 100 <= looked * lent_percent {
            continue;
        }
        let quota = namespace.gpu_quota.iter().map(|(name, units)| format!("{units} {name}"));
        let object = ObjectRef::new("Namespace", "", &namespace.name);
        let share = percent(of.idle_ms as f64 / of.looked_ms as f64);
        let bound = if of.has_unknown { "at least " } else { "" };
        let mut finding = Finding::new(check, &object)
            .with("quota", quota.collect::<Vec<_>>().join(", "))
            .with("idle share of its allocated GPU time", format!("{bound}{share}"))
            .with("measured", period(view));
        // The idle time beyond what everybody has: of each unit the same part.
        let beyond = idle * 100 - looked * lent_percent;
        let part_milli = (beyond * 1000 / (idle * 100)) as i64;
        for (number, pods) in of.held {
            let units = pods.into_iter().flat_map(all_units);
            finding.claims.extend(idle_claims(view, number, units, (part_milli, 1000)));
        }
        found.push(finding.affecting(of.owners.into_iter().cloned()));
    }
}

//! What a job did by a file of samples, spread over the month that its bill is for.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use dovetail_account::device_time::{DeviceState, Span};
use dovetail_account::signal::ActivityRule;
use dovetail_console::plain::plain;
use dovetail_facts::NodePart;
use dovetail_metrics::file::UsageSeries;
use dovetail_phases::job_phases::{
    Confidence, ContainerRun, DeviceSample, JobRecord, Member, MemberPhases, Phase, PhaseRule,
    RunEnd, job_phases, ranks,
};
use dovetail_sources::uses::Uses;

use super::held::{HeldMember, JobTime, Samples, is_together, unmeasured};
use super::name::Job;
use crate::account::Account;
use crate::flags::AtMoment;
use crate::from_objects::Parts;

/// A longer file is read in longer steps.
const MOST_SAMPLES: u64 = 1_000_000;

/// A part of the job's GPUs, and the samples of it.
struct SampledPart<'m> {
    pod: u32,
    node: usize,
    part: NodePart<'m>,
    series: Option<&'m UsageSeries>,
}

/// The job over the month.
pub fn time(account: Account, job: Job, moment: &AtMoment, parts: &Parts<'_>) -> Result<JobTime> {
    let places = places(&account, &job, moment, parts);
    let span = account.span;
    let month_ms = i128::from(span.to_ms - span.from_ms);
    let workload = moment.gathered.moment.held.iter().find_map(|held| {
        let workload = &moment.gathered.facts.workloads[held.workload];
        (crate::from_objects::words(&workload.owner) == job.name).then_some(workload)
    });
    let together = is_together(&job, workload);
    let mut phases: Vec<Option<MemberPhases>> =
        places.iter().map(|place| by_state(&place.part)).collect();
    let mut samples = Samples::default();
    if let Some(uses) = &moment.uses {
        let Span { from_ms, to_ms } = uses.period.span;
        samples.span_ms = to_ms - from_ms;
        samples.step_ms = uses.period.step_ms;
        let mut groups: BTreeMap<Option<u32>, Vec<usize>> = BTreeMap::new();
        for (number, place) in places.iter().enumerate() {
            if phases[number].is_none() && place.series.is_some() {
                groups.entry((!together).then_some(place.pod)).or_default().push(number);
            }
        }
        for group in groups.into_values() {
            let record = record(&account, &places, &group, uses);
            if together {
                samples.ranks = samples.ranks.max(record.ranks);
            }
            let split = job_phases(&record, &PhaseRule::default())
                .with_context(|| plain(&format!("{}: {}", uses.source, job.name)))?;
            for (number, member) in group.into_iter().zip(split.members) {
                phases[number] = Some(member);
            }
        }
    }
    let members = places.iter().zip(phases).map(|(place, phases)| HeldMember {
        pod: place.pod,
        node: place.node,
        gpu_milli_ms: i128::from(place.part.gpu_milli) * month_ms,
        phases: phases.unwrap_or_else(unmeasured),
        is_for_any_holder: place.part.used.is_some_and(|used| used.for_any_holder_ms > 0),
    });
    let members = members.collect();
    let time = JobTime { account, job, members, samples };
    let way = match too_recent(&places) {
        Some(why) => why.to_owned(),
        None => way(&time.account, moment.uses.as_ref()),
    };
    time.refuse_blind(&way)
}

/// Why nothing of a month is known of a job whose states do not last.
fn too_recent(places: &[SampledPart<'_>]) -> Option<&'static str> {
    let is_recent = |place: &SampledPart<'_>| !place.part.lasting.goes_on;
    if places.is_empty() || !places.iter().all(is_recent) {
        return None;
    }
    Some(match places.iter().any(|place| place.part.used.is_some()) {
        true => {
            "there are too few samples to extrapolate to a month (least_measured_hours in [audit] \
             of dovetail.toml)"
        }
        false => {
            "its pods are starting, waiting for their gang or overdue for deletion, and for how long is unknown"
        }
    })
}

/// What would tell what GPUs did; where samples were given, what became of them.
fn way(account: &Account, uses: Option<&Uses>) -> String {
    let Some(uses) = uses else {
        return "pass samples with --usage FILE.csv or --prometheus URL".to_owned();
    };
    let source = plain(&uses.source);
    let begin = format!("{source}: ignored ");
    let told = account.notes.iter().filter(|note| note.starts_with(&begin));
    let told: Vec<&str> = told.map(String::as_str).collect();
    match told.is_empty() {
        true => format!("{source} has no samples of its pods"),
        false => format!("no samples of its pods remain; {}", told.join("; ")),
    }
}

fn places<'m>(
    account: &Account,
    job: &Job,
    moment: &'m AtMoment,
    parts: &Parts<'m>,
) -> Vec<SampledPart<'m>> {
    let numbers: BTreeMap<(&str, &str), u32> = job
        .pods
        .iter()
        .map(|number| {
            let pod = &account.pods[*number as usize];
            ((&*pod.namespace, &*pod.name), *number)
        })
        .collect();
    let nodes: BTreeMap<&str, usize> =
        account.nodes.iter().enumerate().map(|(place, node)| (&*node.name, place)).collect();
    let all_series = moment.uses.iter().flat_map(|uses| &uses.series);
    let series: BTreeMap<(&str, &str, &str), &UsageSeries> = all_series
        .map(|series| {
            let namespace = series.namespace.as_deref().unwrap_or_default();
            ((namespace, &*series.pod, &*series.gpu), series)
        })
        .collect();
    let mut places = Vec::new();
    for (gpus, parts) in moment.gathered.moment.nodes.iter().zip(parts) {
        let Some(node) = nodes.get(&*gpus.node) else { continue };
        for part in parts {
            let Some(held) = part.held.map(|held| &moment.gathered.moment.held[held]) else {
                continue;
            };
            let namespace = &*moment.gathered.facts.workloads[held.workload].owner.namespace;
            let Some(pod) = numbers.get(&(namespace, &*held.pod)) else { continue };
            let series = part
                .used
                .and_then(|used| series.get(&(namespace, &*held.pod, &*used.gpu)).copied());
            places.push(SampledPart { pod: *pod, node: *node, part: *part, series });
        }
    }
    places
}

/// What the state of its pod says of a part. What is too recent says nothing of a month.
fn by_state(part: &NodePart<'_>) -> Option<MemberPhases> {
    if !part.lasting.goes_on {
        return Some(unmeasured());
    }
    let second = Span { from_ms: 0, to_ms: 1_000 };
    let phase = match part.state {
        DeviceState::Provisioning => Phase::ImageAndStart,
        DeviceState::GangWait => Phase::GangWait,
        _ => return None,
    };
    Some(MemberPhases::all(phase, Confidence::High, second))
}

fn record(
    account: &Account,
    places: &[SampledPart<'_>],
    group: &[usize],
    uses: &Uses,
) -> JobRecord {
    let period = uses.period.span;
    let shortest_ms = (period.to_ms - period.from_ms) / MOST_SAMPLES + 1;
    let step_ms = uses.period.step_ms.max(shortest_ms);
    let members = group.iter().filter_map(|number| {
        let place = &places[*number];
        let series = place.series?;
        let pod = &account.pods[place.pod as usize];
        let of_several = place.part.used.is_some_and(|used| used.is_of_several);
        let from_ms = series.activity.first().map_or(period.to_ms, |sample| sample.at_ms);
        let held = Span { from_ms, to_ms: period.to_ms };
        Some(Member {
            name: format!("{}/{} gpu {}", pod.namespace, pod.name, series.gpu),
            gpu_milli: place.part.gpu_milli,
            held,
            runs: vec![ContainerRun { span: held, end: RunEnd::Open }],
            samples: samples(series, of_several, period, step_ms),
            // What was measured from the first moment on had begun before.
            ran_before: from_ms < period.from_ms.saturating_add(2 * step_ms),
            ..Member::default()
        })
    });
    let mut members: Vec<Member> = members.collect();
    let spans: Vec<(&str, Span)> =
        members.iter().map(|member| (&*member.name, member.held)).collect();
    let ranks = ranks(&spans);
    for (member, rank) in members.iter_mut().zip(ranks.of) {
        member.rank = rank;
    }
    JobRecord {
        from_ms: period.from_ms,
        step_ms,
        ranks: ranks.count,
        members,
        checkpoints_ms: Vec::new(),
    }
}

/// Activity on a grid; of two samples in one step the later counts. For whom a device of several
/// pods computed nobody knows.
fn samples(
    series: &UsageSeries,
    of_several: bool,
    period: Span,
    step_ms: u64,
) -> Vec<DeviceSample> {
    let rule = ActivityRule::default();
    let mut samples: Vec<DeviceSample> = Vec::new();
    for read in &series.activity {
        let place = (read.at_ms.saturating_sub(period.from_ms) / step_ms) as usize;
        if samples.len() <= place {
            samples.resize(place + 1, DeviceSample::default());
        }
        let micro_percent = read.activity_micro_percent;
        let is_active = micro_percent > rule.threshold_micro_percent;
        samples[place] = DeviceSample {
            util_micro_percent: Some(micro_percent),
            is_of_several: of_several && is_active,
            ..DeviceSample::default()
        };
    }
    samples
}

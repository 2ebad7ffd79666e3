//! A job's holdings with what was read of them, as records of its phases.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::Span;
use dovetail_phases::job_phases::{ContainerRun, JobRecord, Member, RunEnd, ranks};

use super::events::PodEvents;
use super::readings::{Devices, Grid, JobReadings};
use crate::exporter::{Observation, ObservedDevice};

/// A device that a pod of the job held for some time, as a bill has it.
#[derive(Clone, Copy, Debug)]
pub struct DeviceHolding<'a> {
    pub device: &'a ObservedDevice,
    pub namespace: &'a str,
    pub pod: &'a str,
    /// Its uid, where several pods had its name one after the other; else empty.
    pub uid: &'a str,
    /// The container that held it; empty where nobody says.
    pub container: &'a str,
    /// How much of the device.
    pub gpu_milli: i64,
    pub held: Span,
}

/// Holdings that belong together.
#[derive(Clone, Debug, Default)]
pub struct JobGroup {
    pub record: JobRecord,
    /// The holding of each of its members: a place in the list.
    pub holdings: Vec<usize>,
}

/// The records of a job. Pods that work together make one; pods that do not (replicas of a server)
/// one each.
pub fn records(
    holdings: &[DeviceHolding<'_>],
    is_together: bool,
    readings: &JobReadings,
    observation: &Observation,
    grid: Grid,
) -> Vec<JobGroup> {
    let mut groups: BTreeMap<Option<(&str, &str, &str)>, Vec<usize>> = BTreeMap::new();
    let mut devices_of: BTreeMap<(&str, &str), BTreeSet<(&str, &str)>> = BTreeMap::new();
    let mut devices_on: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (place, holding) in holdings.iter().enumerate() {
        let pod = (holding.namespace, holding.pod);
        let each = (holding.namespace, holding.pod, holding.uid);
        groups.entry((!is_together).then_some(each)).or_default().push(place);
        let device = (holding.device.node.as_str(), holding.device.device.as_str());
        devices_of.entry(pod).or_default().insert(device);
        devices_on.entry(device.0).or_default().insert(device.1);
    }
    let group = |places: Vec<usize>| {
        let names: Vec<String> = places.iter().map(|place| name(&holdings[*place])).collect();
        let spans: Vec<(&str, Span)> = names
            .iter()
            .zip(&places)
            .map(|(name, place)| (&**name, holdings[*place].held))
            .collect();
        let ranks = ranks(&spans);
        let member = |(place, rank): (&usize, &u32)| {
            let holding = &holdings[*place];
            let pod = (holding.namespace, holding.pod);
            let devices = Devices {
                of_pod: devices_of[&pod].len() as u64,
                on_node: devices_on[holding.device.node.as_str()].len() as u64,
            };
            let last =
                holding.held.to_ms.saturating_sub(grid.from_ms).div_ceil(grid.step_ms.max(1));
            let grid = Grid { count: grid.count.min(last as usize), ..grid };
            Member {
                name: name(holding),
                rank: *rank,
                gpu_milli: holding.gpu_milli,
                held: holding.held,
                runs: runs(readings, holding, grid.step_ms),
                ran_before: ran_before(readings, holding, grid),
                samples: readings.samples(observation, holding.device, pod, devices, grid),
            }
        };
        let mut members: Vec<Member> = places.iter().zip(&ranks.of).map(member).collect();
        lose_replaced(&mut members, &places, holdings, readings);
        let record = JobRecord {
            from_ms: grid.from_ms,
            step_ms: grid.step_ms,
            ranks: ranks.count,
            members,
            checkpoints_ms: checkpoints_ms(&places, holdings, readings, grid),
        };
        JobGroup { record, holdings: places }
    };
    groups.into_values().map(group).collect()
}

/// Checkpoints that any pod of the job told, on the clock of the bill: one step after their own.
/// What is told of a time that has not been is left out.
fn checkpoints_ms(
    places: &[usize],
    holdings: &[DeviceHolding<'_>],
    readings: &JobReadings,
    grid: Grid,
) -> Vec<u64> {
    let pods = places.iter().map(|place| &holdings[*place]);
    let pods = pods.map(|holding| (holding.namespace, holding.pod, holding.uid));
    let pods: BTreeSet<(&str, &str, &str)> = pods.collect();
    let events = pods.into_iter().map(|(namespace, pod, uid)| readings.events(namespace, pod, uid));
    let events: Vec<PodEvents> = events.collect();
    let end_ms = grid.from_ms.saturating_add(grid.step_ms.saturating_mul(grid.count as u64));
    let told = events.iter().flat_map(PodEvents::checkpoints_ms);
    let told = told.map(|at_ms| at_ms.saturating_add(grid.step_ms));
    let told: BTreeSet<u64> = told.filter(|at_ms| *at_ms <= end_ms).collect();
    told.into_iter().collect()
}

fn name(holding: &DeviceHolding<'_>) -> String {
    format!("{}/{} gpu {}", holding.namespace, holding.pod, holding.device.device)
}

fn runs(readings: &JobReadings, holding: &DeviceHolding<'_>, step_ms: u64) -> Vec<ContainerRun> {
    let events = readings.events(holding.namespace, holding.pod, holding.uid);
    events.runs(holding.container, holding.held, step_ms)
}

/// Whether its container started before the device was seen to be held: where nobody says when it
/// started, those that were held when the period began.
fn ran_before(readings: &JobReadings, holding: &DeviceHolding<'_>, grid: Grid) -> bool {
    let events = readings.events(holding.namespace, holding.pod, holding.uid);
    match events.first_start_ms(holding.container) {
        Some(start_ms) => start_ms.saturating_add(grid.step_ms) < holding.held.from_ms,
        None => holding.held.from_ms < grid.from_ms.saturating_add(2 * grid.step_ms),
    }
}

/// How a holding ended after which another one followed in its rank. A pod of another name took
/// over: unless somebody says how the first one ended, it was lost (evicted, preempted, gone with
/// its node). One of the same name is a new pod if its container started since, and the same one,
/// which nobody saw for a while, if not.
fn lose_replaced(
    members: &mut [Member],
    places: &[usize],
    holdings: &[DeviceHolding<'_>],
    readings: &JobReadings,
) {
    let mut last: BTreeMap<u32, (u64, (&str, &str))> = BTreeMap::new();
    for (member, place) in members.iter().zip(places) {
        let begin = (member.held.from_ms, (holdings[*place].pod, holdings[*place].uid));
        let known = last.entry(member.rank).or_insert(begin);
        *known = (*known).max(begin);
    }
    for (member, place) in members.iter_mut().zip(places) {
        let holding = &holdings[*place];
        let (from_ms, pod) = last[&member.rank];
        let Some(run) = member.runs.last_mut().filter(|_| from_ms > member.held.from_ms) else {
            continue;
        };
        let events = readings.events(holding.namespace, holding.pod, holding.uid);
        run.end = match pod == (holding.pod, holding.uid) {
            true if events.started_after(member.held.to_ms) => RunEnd::Lost,
            true => RunEnd::Open,
            false if events.has_end() => run.end,
            false => RunEnd::Lost,
        };
    }
}

//! Time in which the members of training jobs all waited for each other, from whatever answers
//! Prometheus' query API.

use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_facts::{Hang, Workload, WorkloadClass};
use dovetail_inventory::facts::Gathered;
use dovetail_metrics::job::{DeviceHolding, Grid, JobReadings, records, tensor_queries};
use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_phases::job_phases::{PhaseRule, job_phases};

use crate::prometheus::{Asker, ObservedPeriod};

/// Notes on every workload of several GPUs that work together how it hung; what could not be read
/// is a note.
pub fn mark(
    asker: &mut Asker,
    seen: &ObservedPeriod,
    gathered: &mut Gathered,
    notes: &mut Vec<String>,
) {
    let workloads = &mut gathered.facts.workloads;
    let holdings = holdings(seen, workloads);
    if holdings.is_empty() {
        return;
    }
    let mut readings = JobReadings::default();
    for asked in tensor_queries(asker.step_ms) {
        match asker.range(&asked.query) {
            Ok(series) => readings.take(asked.series, &seen.pods, series),
            Err(error) => notes.push(format!("{} could not be read: {error}", asked.series.name())),
        }
    }
    let (period, step_ms) = (asker.period, asker.step_ms);
    let count = usize::try_from((period.to_ms - period.from_ms).div_ceil(step_ms)).unwrap_or(0);
    let grid = Grid { from_ms: period.from_ms, step_ms, count };
    for (number, holdings) in holdings {
        match hang(&holdings, &readings, seen, grid) {
            Ok(hang) => workloads[number].hang = hang,
            Err(error) => notes.push(format!(
                "cannot determine whether {} hung: {error}",
                workloads[number].owner.name
            )),
        }
    }
}

/// Whether its pods wait for each other.
fn is_together(workload: &Workload) -> bool {
    // A server whose GPUs wait for requests may look the same.
    let waits_for_people =
        matches!(workload.class, Some(WorkloadClass::Inference | WorkloadClass::Interactive));
    let is_gang = workload.is_gang && !waits_for_people;
    workload.has_gpus() && (is_gang || workload.class == Some(WorkloadClass::Training))
}

/// What each workload of several devices held, by its number.
fn holdings<'s>(
    seen: &'s ObservedPeriod,
    workloads: &[Workload],
) -> BTreeMap<usize, Vec<DeviceHolding<'s>>> {
    let mut numbers: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (number, workload) in workloads.iter().enumerate().filter(|(_, of)| is_together(of)) {
        let pods = workload.pods.iter();
        numbers.extend(pods.map(|pod| ((&*workload.owner.namespace, &*pod.name), number)));
    }
    let mut found: BTreeMap<usize, Vec<DeviceHolding<'s>>> = BTreeMap::new();
    for device in &seen.time.devices {
        for time in &device.history.holdings {
            let Some(holder) = seen.time.holders.get(time.holder as usize) else { continue };
            let Some(number) = numbers.get(&(&*holder.namespace, &*holder.pod)) else { continue };
            found.entry(*number).or_default().push(DeviceHolding {
                device,
                namespace: &holder.namespace,
                pod: &holder.pod,
                uid: "",
                container: &holder.container,
                gpu_milli: WHOLE_DEVICE_MILLI,
                held: time.held,
            });
        }
    }
    found.retain(|_, holdings| holdings.len() > 1);
    found
}

fn hang(
    holdings: &[DeviceHolding<'_>],
    readings: &JobReadings,
    seen: &ObservedPeriod,
    grid: Grid,
) -> Result<Option<Hang>> {
    let groups = records(holdings, true, readings, &seen.observation, grid);
    let mut found = None;
    for group in groups {
        found = Hang::of(&job_phases(&group.record, &PhaseRule::default())?).or(found);
    }
    Ok(found)
}

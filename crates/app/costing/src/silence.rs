//! Time in which no exporter spoke. What no series reaches was not read: it is a gap, which a later
//! run may fill. What lies between two samples of a device was there, and nobody knows what it did,
//! also where the ledger has the first of the two and a reading the second.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use dovetail_account::device_time::{DeviceInterval, DeviceState, Span};
use dovetail_account::rollup::HOUR_MS;
use dovetail_account::signal::ActivityRule;
use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_store::{DeviceKey, HistoryPod, LastSeen, ReadDevice, ReadPod, Reading};

use super::from_store::Ledger;
use super::turns::clipped;

/// What somebody holds of a device, by namespace and pod.
type Holders = BTreeMap<(String, String), i64>;

/// Cuts a reading down to the time in which exporters spoke, but for what samples bridge; answers
/// with what it lost at its begin and its end. `None` where none spoke at all: a GPU that nobody
/// measured does not say that a later run will not hear of it.
pub(crate) fn cut_to_what_was_heard(
    reading: &mut Reading,
    heard: Option<Span>,
    step_ms: u64,
) -> Option<Vec<Span>> {
    let heard = heard?;
    let (first_ms, last_ms) =
        (heard.from_ms.max(reading.span.from_ms), heard.to_ms.min(reading.span.to_ms));
    if first_ms >= last_ms {
        return None;
    }
    let longest_ms = step_ms.saturating_mul(ActivityRule::default().max_gap_intervals.into());
    let Span { from_ms, to_ms } = reading.span;
    let mut gaps = Vec::new();
    if first_ms - from_ms > longest_ms {
        gaps.push(Span { from_ms, to_ms: first_ms });
        reading.span.from_ms = first_ms;
    }
    if to_ms - last_ms > longest_ms {
        gaps.push(Span { from_ms: last_ms, to_ms });
        reading.span.to_ms = last_ms;
    }
    for device in &mut reading.devices {
        *device = clipped(device, reading.span);
    }
    reading.devices.retain(|device| !device.intervals.is_empty());
    let heard = Span { from_ms: reading.span.from_ms / HOUR_MS * HOUR_MS, ..reading.span };
    if let Some(kept) = &mut reading.kept {
        kept.retain(|kept| (heard.from_ms..heard.to_ms).contains(&kept.hour_ms));
    }
    for free in &mut reading.free {
        free.look.span.to_ms = free.look.span.to_ms.min(reading.span.to_ms);
    }
    reading.free.retain(|free| free.look.span.from_ms < free.look.span.to_ms);
    Some(gaps)
}

/// Fills the time from when the ledger last saw a device until a reading saw it first, as if both
/// were one reading: a pod that held it before and after did so meanwhile. Looks back until
/// `from_ms`, for devices that were first seen later than `after_ms`.
pub(crate) fn bridge(
    ledger: &mut Ledger,
    reading: &mut Reading,
    after_ms: u64,
    from_ms: u64,
) -> Result<()> {
    let firsts = reading.devices.iter().filter_map(|device| {
        let first_ms = device.intervals.iter().map(|interval| interval.span.from_ms).min()?;
        (first_ms > after_ms).then(|| (key(reading, device), first_ms))
    });
    let firsts: BTreeMap<DeviceKey, u64> = firsts.collect();
    let cluster = reading.cluster.clone();
    let from_hour = from_ms / HOUR_MS;
    let seen = ledger.run(|store| LastSeen::of(store, &cluster, &firsts, from_hour))?;
    let numbers: BTreeSet<u32> =
        seen.values().flat_map(|last| &last.intervals).filter_map(|part| part.holder).collect();
    let pods = ledger.run(|store| HistoryPod::of(store, &cluster, &numbers))?;
    let keys: Vec<DeviceKey> = reading.devices.iter().map(|device| key(reading, device)).collect();
    for (device, key) in reading.devices.iter_mut().zip(keys) {
        let (Some(last), Some(first_ms)) = (seen.get(&key), firsts.get(&key)) else { continue };
        if last.until_ms < *first_ms {
            let silent = Span { from_ms: last.until_ms, to_ms: *first_ms };
            let parts = between(last, &pods, (device, &reading.pods), silent);
            device.intervals.splice(..0, parts);
            reading.span.from_ms = reading.span.from_ms.min(silent.from_ms);
        }
    }
    Ok(())
}

fn key(reading: &Reading, device: &ReadDevice) -> DeviceKey {
    (reading.nodes[device.node].name.clone(), device.name.clone())
}

/// What a device was while nobody saw it.
fn between(
    last: &LastSeen,
    known: &BTreeMap<u32, HistoryPod>,
    (device, pods): (&ReadDevice, &[ReadPod]),
    silent: Span,
) -> Vec<DeviceInterval> {
    let mut before = Holders::new();
    for part in &last.intervals {
        let Some(pod) = part.holder.and_then(|holder| known.get(&holder)) else { continue };
        *before.entry((pod.party.namespace.clone(), pod.name.clone())).or_default() +=
            part.gpu_milli;
    }
    let (mut after, mut numbers) = (Holders::new(), BTreeMap::new());
    for part in device.intervals.iter().filter(|part| part.span.from_ms == silent.to_ms) {
        let Some(holder) = part.holder else { continue };
        let pod = &pods[holder as usize];
        let pod = (pod.namespace.clone(), pod.name.clone());
        numbers.insert(pod.clone(), holder);
        *after.entry(pod).or_default() += part.gpu_milli;
    }
    let part = |gpu_milli, state, holder| DeviceInterval {
        span: silent,
        gpu_milli,
        state,
        holder,
        signal: None,
    };
    let stayed = after.iter().filter(|(pod, gpu_milli)| before.get(pod) == Some(gpu_milli));
    let mut parts: Vec<DeviceInterval> = stayed
        .map(|(pod, gpu_milli)| part(*gpu_milli, DeviceState::Unknown, numbers.get(pod).copied()))
        .collect();
    let rest_milli = WHOLE_DEVICE_MILLI - parts.iter().map(|part| part.gpu_milli).sum::<i64>();
    let rest = if before == after { DeviceState::Free(None) } else { DeviceState::Unknown };
    if rest_milli > 0 {
        parts.push(part(rest_milli, rest, None));
    }
    parts
}

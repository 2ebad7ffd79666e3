//! Full-GPU equivalents: what a part of a device counts, in milli-GPU.
//!
//! | used as | weight |
//! |---|---|
//! | whole, or by share | its compute, in thousandths |
//! | MIG slices | compute slices over the compute slices of the device |
//! | replicas (time-slicing, MPS) | replicas over the replicas of the device |
//! | named counters (DRA) | the largest share of any counter |
//!
//! What is free is rounded down and what is held is the rest, so that both are the whole device.
//! What waits is rounded up, to at most one device for whatever lives on one device.

use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{DeviceAmount, DeviceRequest, Mode, NodeId, Requirement};
use dovetail_plan::Engine;
use dovetail_plan::engine::supply::DeviceState;

/// Milli-GPU free on a device, 0 to 1000.
pub(crate) fn free_milli(device: &DeviceState<'_>) -> i64 {
    let share = |(left, all): (i64, i64)| match all > 0 {
        true => left.clamp(0, all) * WHOLE_DEVICE_MILLI / all,
        false => 0,
    };
    match device.mode {
        Mode::Empty => WHOLE_DEVICE_MILLI,
        Mode::Shared => device.compute_left_milli.clamp(0, WHOLE_DEVICE_MILLI),
        Mode::Sliced => share(device.compute_slices),
        Mode::Replicated => share(device.replicas),
        Mode::Counted => device.counters.iter().map(|pair| share(*pair)).min().unwrap_or(0),
    }
}

/// What a holding has of a device, in a unit that only compares holdings of the same device.
pub(crate) fn held_share(device: &DeviceState<'_>, amount: &DeviceAmount) -> i128 {
    match device.mode {
        Mode::Empty => 0,
        Mode::Shared => i128::from(amount.compute_milli.max(0)),
        Mode::Sliced => i128::from(amount.compute_slices),
        Mode::Replicated => i128::from(amount.replicas),
        Mode::Counted => {
            let shares = amount.counters.iter().zip(&device.counters).map(|(held, (_, all))| {
                i128::from((*held).max(0)) * 1_000_000 / i128::from((*all).max(1))
            });
            shares.max().unwrap_or(0)
        }
    }
}

/// Milli-GPU that a waiting pod stands for. Slices, replicas and counters are weighed by the device
/// of the cluster on which they weigh most, and as a whole device where no device offers them.
pub(crate) fn waiting_milli(engine: &Engine, requirement: &Requirement) -> i64 {
    let part = |asked: i64, all: i64| (asked * WHOLE_DEVICE_MILLI + all - 1) / all;
    let heaviest: Option<i64> = match &requirement.device {
        DeviceRequest::None => return 0,
        DeviceRequest::Whole { count, .. } => return i64::from(*count) * WHOLE_DEVICE_MILLI,
        DeviceRequest::Share { compute_milli, .. } => return *compute_milli,
        DeviceRequest::Slice { profile } => {
            let slices = engine.supply().mig_tables().iter().flat_map(|table| {
                let named = table.profiles.iter().filter(|known| known.name == *profile);
                let all = i64::from(table.compute_slices).max(1);
                named.map(move |known| part(i64::from(known.compute_slices), all))
            });
            slices.max()
        }
        DeviceRequest::Replicas { count } => {
            let offers = devices(engine).filter(|device| device.replicas > 0);
            offers.map(|d| part(i64::from(*count), i64::from(d.replicas))).max()
        }
        DeviceRequest::Counters { amounts } => {
            let shares = devices(engine).flat_map(|device| &device.counters);
            let asked = shares.filter_map(|(name, all)| {
                let (_, amount) = amounts.iter().find(|(asked, _)| asked == name)?;
                (*all > 0).then(|| part(*amount, *all))
            });
            asked.max()
        }
    };
    heaviest.unwrap_or(WHOLE_DEVICE_MILLI).min(WHOLE_DEVICE_MILLI)
}

fn devices(engine: &Engine) -> impl Iterator<Item = &dovetail_model::Device> {
    let slots = (0..engine.supply().node_slots()).map(|slot| NodeId(slot as u32));
    slots.filter_map(|slot| engine.supply().node(slot)).flat_map(|node| &node.devices)
}

//! What the GPUs of one node are, in parts that together are all of them.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::{DeviceState, Span};
use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{Condition, FreeCause};

use super::{Causes, Held, HeldState, NodeGpus, Units};
use crate::usage::GpuUse;

/// A part of a node's GPUs at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'m> {
    /// How much, in milli-GPU.
    pub gpu_milli: i64,
    /// What it is, where nobody measured what it did.
    pub state: DeviceState,
    /// Place in [`super::Moment::held`] of who holds it.
    pub held: Option<usize>,
    /// What it did, if it can compute and somebody measured it.
    pub used: Option<&'m GpuUse>,
}

impl Part<'_> {
    /// What it is over a span: its state, or what was measured, as if that went on.
    pub fn over(&self, span: Span) -> impl Iterator<Item = (DeviceState, Span)> + use<> {
        let none = Span { from_ms: span.to_ms, to_ms: span.to_ms };
        let spread = match self.used {
            Some(used) => used.spread(span),
            None => [(self.state, span), (self.state, none), (self.state, none)],
        };
        spread.into_iter().filter(|(_, span)| span.from_ms < span.to_ms)
    }
}

/// Everything that the GPUs of a node are; the parts sum to its GPUs.
pub(super) fn parts_of<'m>(
    node: &NodeGpus,
    condition: Condition,
    held: &[(usize, &'m Held)],
    causes: &BTreeMap<&str, Causes>,
    waiting_gangs: &BTreeSet<usize>,
) -> Vec<Part<'m>> {
    let all_milli = node.gpus.max(0) * WHOLE_DEVICE_MILLI;
    let plain = |gpu_milli, state| Part { gpu_milli, state, held: None, used: None };
    if condition == Condition::NotReady {
        return vec![plain(all_milli, DeviceState::Unavailable)];
    }
    let unavailable_milli = node.unavailable_milli.clamp(0, all_milli);
    let mut parts = vec![plain(unavailable_milli, DeviceState::Unavailable)];
    for units in &node.units {
        let mut taken = 0;
        for (place, held) in held.iter().filter(|(_, held)| held.resource == units.resource) {
            let state = state_of(held, waiting_gangs.contains(&held.workload));
            let first = taken;
            let held_by = |from: i64, to: i64, used| Part {
                gpu_milli: match held.gpu_milli {
                    Some(all) => share(all, held.units, from - first, to - first),
                    None => between(units, from, to),
                },
                state,
                held: Some(*place),
                used,
            };
            // What a gang waits for shows in its state; else each unit that was measured is for
            // itself.
            let uses = held.uses.iter().take(usize::try_from(held.units).unwrap_or(0));
            let uses = uses.filter(|_| state == DeviceState::Unknown);
            let end = taken + held.units;
            for used in uses {
                parts.push(held_by(taken, taken + 1, Some(used)));
                taken += 1;
            }
            parts.push(held_by(taken, end, None));
            taken = end;
        }
        let of_node = causes.get(&*units.resource).and_then(|causes| causes.get(&node.node));
        parts.extend(free_parts(units, taken, condition, of_node));
    }
    fill(parts, all_milli)
}

/// What is free of a resource, by cause.
fn free_parts(
    units: &Units,
    taken: i64,
    condition: Condition,
    causes: Option<&BTreeMap<FreeCause, i64>>,
) -> Vec<Part<'static>> {
    let free = |from, to, cause| Part {
        gpu_milli: between(units, from, to),
        state: DeviceState::Free(cause),
        held: None,
        used: None,
    };
    let cause = match condition {
        Condition::Cordoned => Some(FreeCause::DrainingOrCordoned),
        Condition::Starting => Some(FreeCause::Starting),
        Condition::Ready | Condition::NotReady => None,
    };
    if cause.is_some() {
        return vec![free(taken, units.count, cause)];
    }
    let mut parts = Vec::new();
    let mut at = taken;
    for (cause, unit_milli) in causes.into_iter().flatten() {
        // To the engine each unit is one whole device.
        let to = (at + unit_milli / WHOLE_DEVICE_MILLI).min(units.count);
        parts.push(free(at, to, Some(*cause)));
        at = to.max(at);
    }
    // What the engine says nothing about.
    parts.push(free(at, units.count, None));
    parts
}

/// The units from one place to another in milli-GPU; places behind each other add up exactly.
fn between(units: &Units, from: i64, to: i64) -> i64 {
    let at = |place: i64| units.slice.milli(place.clamp(0, units.count));
    (at(to) - at(from)).max(0)
}

/// From one unit to another of so many, of what all of them are; the last one ends where all end.
fn share(all_milli: i64, units: i64, from: i64, to: i64) -> i64 {
    let at = |place: i64| if place >= units { all_milli } else { all_milli * place / units };
    // Less than one unit is held as a whole.
    if units <= 0 { all_milli } else { at(to) - at(from) }
}

fn state_of(held: &Held, gang_waits: bool) -> DeviceState {
    match held.state {
        HeldState::Starting => DeviceState::Provisioning,
        HeldState::Ready if gang_waits => DeviceState::GangWait,
        HeldState::Ready | HeldState::NotReady | HeldState::Terminating => DeviceState::Unknown,
    }
}

/// Cuts off what is more than there is (a pod may still hold a broken GPU), and adds what nobody
/// spoke of.
fn fill(parts: Vec<Part<'_>>, all_milli: i64) -> Vec<Part<'_>> {
    let mut left = all_milli;
    let mut filled: Vec<Part<'_>> = Vec::with_capacity(parts.len() + 1);
    let unspoken =
        Part { gpu_milli: all_milli, state: DeviceState::Free(None), held: None, used: None };
    for mut part in parts.into_iter().chain([unspoken]) {
        part.gpu_milli = part.gpu_milli.clamp(0, left);
        left -= part.gpu_milli;
        if part.gpu_milli > 0 {
            filled.push(part);
        }
    }
    filled
}

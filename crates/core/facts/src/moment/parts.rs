//! What the GPUs of one node are, in parts that together are all of them.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::{DeviceState, Span};
use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{FreeCause, NodeAvailability};

use super::lasting::{Lasting, Times};
use super::{Causes, GangCounts, HeldGpus, HeldState, NodeGpus, Units};
use crate::usage::GpuUse;

/// A part of a node's GPUs at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodePart<'m> {
    /// How much, in milli-GPU.
    pub gpu_milli: i64,
    /// What it is, where nobody measured what it did.
    pub state: DeviceState,
    /// Place in [`super::Moment::held`] of who holds it.
    pub held: Option<usize>,
    /// What it did, if it can compute and somebody measured it.
    pub used: Option<&'m GpuUse>,
    /// Since when it is so, and whether that goes on.
    pub lasting: Lasting,
}

impl NodePart<'_> {
    /// What it is over a span: its state, or what was measured, as if that went on.
    pub fn over(&self, span: Span) -> impl Iterator<Item = (DeviceState, Span)> + use<> {
        let none = Span { from_ms: span.to_ms, to_ms: span.to_ms };
        let spread = match self.used {
            Some(used) => used.spread(span),
            None => [(self.state, span), (self.state, none), (self.state, none)],
        };
        spread.into_iter().filter(|(_, span)| span.from_ms < span.to_ms)
    }

    /// What it can be taken for over a span that is yet to come: what goes on; of what does not, no
    /// more is known than whether somebody has it.
    pub(super) fn expected(&self, span: Span) -> impl Iterator<Item = (DeviceState, Span)> {
        let unknown = match self.state {
            DeviceState::Free(_) => DeviceState::Free(None),
            _ => DeviceState::Unknown,
        };
        let known = self.lasting.goes_on.then(|| self.over(span));
        let open = (!self.lasting.goes_on).then_some((unknown, span));
        known.into_iter().flatten().chain(open)
    }

    /// What it was until a moment, where that cannot be taken for a month: its state since that
    /// began, or as long as it was measured in it.
    pub(super) fn so_far(&self, now_ms: u64) -> Option<(DeviceState, Span)> {
        if self.lasting.goes_on {
            return None;
        }
        let (state, length_ms) = match self.used {
            Some(used) => (DeviceState::Idle, used.idle_ms),
            None => (self.state, now_ms.saturating_sub(self.lasting.since_ms?)),
        };
        let span = Span { from_ms: now_ms.saturating_sub(length_ms), to_ms: now_ms };
        (span.from_ms < span.to_ms).then_some((state, span))
    }
}

/// Everything that the GPUs of a node are; the parts sum to its GPUs.
pub(super) fn parts_of<'m>(
    node: &NodeGpus,
    condition: NodeAvailability,
    held: &[(usize, &'m HeldGpus)],
    causes: &BTreeMap<&str, Causes>,
    (waiting_gangs, times): (&BTreeSet<usize>, &Times<'_>),
) -> Vec<NodePart<'m>> {
    let all_milli = node.gpus.max(0) * WHOLE_DEVICE_MILLI;
    let plain =
        |gpu_milli, state, lasting| NodePart { gpu_milli, state, held: None, used: None, lasting };
    if condition == NodeAvailability::NotReady {
        return vec![plain(all_milli, DeviceState::Unavailable, times.unavailable(&node.node))];
    }
    let starts =
        condition == NodeAvailability::Starting && node.units.iter().all(|of| of.count == 0);
    let unavailable_milli = if starts { 0 } else { node.unavailable_milli.clamp(0, all_milli) };
    let lost = times.lost(&node.node);
    let mut parts = vec![plain(unavailable_milli, DeviceState::Unavailable, lost)];
    for units in &node.units {
        let mut taken = 0;
        for (place, held) in held.iter().filter(|(_, held)| held.resource == units.resource) {
            parts.extend(parts_of_held(units, (*place, held), taken, (waiting_gangs, times)));
            taken += held.units;
        }
        let unknown = NodePart {
            gpu_milli: between(units, taken, taken + units.unknown),
            held: None,
            ..plain(0, DeviceState::Unknown, Lasting::ALWAYS)
        };
        parts.push(unknown);
        taken += units.unknown;
        let of_node = causes.get(&*units.resource).and_then(|causes| causes.get(&node.node));
        parts.extend(free_parts(units, taken, condition, of_node).into_iter().map(|mut part| {
            if let DeviceState::Free(cause) = part.state {
                part.lasting = times.free(&node.node, Some(&units.resource), cause);
            }
            part
        }));
    }
    let unseen = plain(node.unknown_milli, DeviceState::Unknown, Lasting::ALWAYS);
    parts.push(unseen);
    // Nobody can ask for it, whatever the node takes.
    let rest = cause_of(condition).unwrap_or(FreeCause::LayoutRest);
    let lasting = times.free(&node.node, None, Some(rest));
    parts.push(plain(node.layout_rest_milli, DeviceState::Free(Some(rest)), lasting));
    let unspoken = cause_of(condition).filter(|_| starts);
    let lasting = times.free(&node.node, None, unspoken);
    fill(parts, plain(all_milli, DeviceState::Free(unspoken), lasting))
}

/// The units of a resource that a pod holds, from unit number `first` on.
fn parts_of_held<'m>(
    units: &Units,
    (place, held): (usize, &'m HeldGpus),
    first: i64,
    (waiting_gangs, times): (&BTreeSet<usize>, &Times<'_>),
) -> Vec<NodePart<'m>> {
    let guessed = || waiting_gangs.contains(&held.workload);
    // A pod that should be gone, or whose work is over, holds its GPUs for nothing, whatever was
    // measured before.
    let useless = times.useless(held);
    let state = match useless {
        Some(_) => DeviceState::Idle,
        None => state_of(held, held.gang.map_or_else(guessed, GangCounts::is_short)),
    };
    let held_by = |from: i64, to: i64, used: Option<&'m GpuUse>| NodePart {
        gpu_milli: match held.gpu_milli {
            Some(all) => share(all, held.units, from - first, to - first),
            None => between(units, from, to),
        },
        state,
        held: Some(place),
        used,
        lasting: match (useless, used) {
            (Some(lasting), _) => lasting,
            (None, Some(used)) => times.measured(held, used),
            (None, None) => times.held(held, state),
        },
    };
    // What a gang waits for shows in its state; else each unit that was measured is for itself.
    if held.units == 0 {
        let used = held.uses.first().filter(|_| state == DeviceState::Unknown);
        return vec![held_by(first, first, used)];
    }
    let uses = held.uses.iter().take(usize::try_from(held.units).unwrap_or(0));
    let is_each = useless.is_some() || state == DeviceState::Unknown;
    let mut taken = first;
    let mut parts = Vec::new();
    for used in uses.filter(|_| is_each) {
        let used = Some(used).filter(|_| useless.is_none());
        parts.push(held_by(taken, taken + 1, used));
        taken += 1;
    }
    parts.push(held_by(taken, first + held.units, None));
    parts
}

/// What is free of a resource, by cause.
fn free_parts(
    units: &Units,
    taken: i64,
    condition: NodeAvailability,
    causes: Option<&BTreeMap<FreeCause, i64>>,
) -> Vec<NodePart<'static>> {
    let free = |from, to, cause| NodePart {
        gpu_milli: between(units, from, to),
        state: DeviceState::Free(cause),
        held: None,
        used: None,
        lasting: Lasting::ALWAYS,
    };
    let cause = cause_of(condition);
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

/// Why all that is free on a node is free, where its condition says it.
fn cause_of(condition: NodeAvailability) -> Option<FreeCause> {
    match condition {
        NodeAvailability::Cordoned => Some(FreeCause::DrainingOrCordoned),
        NodeAvailability::Starting => Some(FreeCause::Starting),
        NodeAvailability::Ready | NodeAvailability::NotReady => None,
    }
}

/// The units from one place to another in milli-GPU; places behind each other add up exactly.
fn between(units: &Units, from: i64, to: i64) -> i64 {
    units.parts.milli(from.clamp(0, units.count), to.clamp(0, units.count))
}

/// From one unit to another of so many, of what all of them are; the last one ends where all end.
fn share(all_milli: i64, units: i64, from: i64, to: i64) -> i64 {
    let at = |place: i64| if place >= units { all_milli } else { all_milli * place / units };
    // Less than one unit is held as a whole.
    if units <= 0 { all_milli } else { at(to) - at(from) }
}

fn state_of(held: &HeldGpus, gang_waits: bool) -> DeviceState {
    match held.state {
        HeldState::Starting => DeviceState::Provisioning,
        HeldState::Ready if gang_waits => DeviceState::GangWait,
        HeldState::Ready | HeldState::NotReady | HeldState::Terminating => DeviceState::Unknown,
    }
}

/// Cuts off what is more than there is (a pod may still hold a broken GPU), and adds what nobody
/// spoke of.
fn fill<'m>(parts: Vec<NodePart<'m>>, unspoken: NodePart<'m>) -> Vec<NodePart<'m>> {
    let mut left = unspoken.gpu_milli;
    let mut filled: Vec<NodePart<'m>> = Vec::with_capacity(parts.len() + 1);
    for mut part in parts.into_iter().chain([unspoken]) {
        part.gpu_milli = part.gpu_milli.clamp(0, left);
        left -= part.gpu_milli;
        if part.gpu_milli > 0 {
            filled.push(part);
        }
    }
    filled
}

//! What a claim needs of devices beyond what those still hold who are to leave.

use std::collections::BTreeMap;

use dovetail_model::{DeviceAmount, HeldDevices, Knowledge, Mode, NodeId, ReservationId};

use crate::State;
use crate::device::cell::DeviceCell;

/// What a reservation is to keep of the `claimed` devices of a node while others hold `awaited` who
/// are to leave; what is counted on is taken out of that.
pub fn beyond(
    state: &State,
    (node, reservation): (NodeId, ReservationId),
    claimed: HeldDevices,
    awaited: &mut HeldDevices,
) -> HeldDevices {
    match state.nodes.cold(node).node.knowledge {
        Knowledge::Counted => beyond_counted(claimed, awaited),
        Knowledge::Assigned => beyond_assigned(state, (node, reservation), claimed, awaited),
    }
}

/// What those hold who are to leave nobody else can take, but others can take what they leave of a
/// device.
fn beyond_assigned(
    state: &State,
    of: (NodeId, ReservationId),
    claimed: HeldDevices,
    awaited: &mut HeldDevices,
) -> HeldDevices {
    let mut on_awaited: BTreeMap<u16, DeviceAmount> = BTreeMap::new();
    let mut beyond = HeldDevices::new();
    for (index, amount) in claimed {
        match awaited.iter().any(|(held, _)| *held == index) {
            false => beyond.push((index, amount)),
            true => match on_awaited.get_mut(&index) {
                Some(sum) => sum.add(&amount),
                None => drop(on_awaited.insert(index, amount)),
            },
        }
    }
    for (index, mut amount) in on_awaited {
        let Some(cell) = cell_without(state, of, index) else { continue };
        if amount.mode == cell.mode {
            let here = awaited.iter_mut().filter(|(held, _)| *held == index);
            here.for_each(|(_, held)| *held = amount.take_away(held));
        } else {
            amount = cell.rest();
        }
        if !amount.is_nothing() {
            beyond.push((index, amount));
        }
    }
    beyond.sort_by_key(|(index, _)| *index);
    beyond
}

/// A device as it is without what the reservation keeps of it.
fn cell_without(
    state: &State,
    (node, reservation): (NodeId, ReservationId),
    index: u16,
) -> Option<DeviceCell> {
    let mut cell = state.cells(node).into_iter().nth(usize::from(index))??;
    for id in state.holdings.kept_by(reservation) {
        let record = state.holdings.get(id);
        let here = record.devices.iter().filter(|(held, _)| record.node == node && *held == index);
        here.for_each(|(_, amount)| cell = cell.release(amount));
    }
    Some(cell)
}

/// Where the kubelet chooses devices, any of the same use will do.
fn beyond_counted(mut claimed: HeldDevices, awaited: &mut HeldDevices) -> HeldDevices {
    for (_, held) in awaited.iter_mut().filter(|(_, held)| !held.is_nothing()) {
        let mode = held.mode;
        let mut alike = claimed.iter_mut().filter(|(_, amount)| amount.mode == mode).peekable();
        if alike.peek().is_none() {
            drop(alike);
            if claimed.pop().is_some() {
                *held = DeviceAmount { mode, ..DeviceAmount::default() };
            }
            continue;
        }
        for (_, amount) in alike {
            *held = amount.take_away(held);
        }
        claimed.retain(|(_, amount)| !amount.is_nothing());
    }
    claimed
}

/// Takes off both what they have in common; nothing of what is less than nothing.
pub(super) fn take(one: &mut i64, other: &mut i64) {
    let taken = (*one).min(*other).max(0);
    *one -= taken;
    *other -= taken;
}

impl DeviceCell {
    /// All that is free of it, in the way it is used.
    fn rest(&self) -> DeviceAmount {
        let of_mode = |mode: Mode, left: i64| if self.mode == mode { left.max(0) } else { 0 };
        let counters = match self.mode {
            Mode::Counted => self.counters_left.iter().map(|left| *left.max(&0)).collect(),
            _ => Vec::new(),
        };
        DeviceAmount {
            mode: self.mode,
            compute_milli: of_mode(Mode::Shared, self.compute_left_milli),
            memory_bytes: of_mode(Mode::Shared, self.memory_left_bytes),
            replicas: of_mode(Mode::Replicated, i64::from(self.replicas_left)) as u16,
            // No slice goes without compute slices.
            slice_mask: 0,
            compute_slices: of_mode(Mode::Sliced, i64::from(self.compute_slices_left)) as u8,
            counters,
        }
    }
}

/// Amounts of one mode.
trait Amount {
    fn add(&mut self, other: &Self);
    /// Takes away as much as there is; what could not be taken.
    fn take_away(&mut self, other: &Self) -> Self;
    fn is_nothing(&self) -> bool;
}

impl Amount for DeviceAmount {
    fn add(&mut self, other: &Self) {
        self.compute_milli += other.compute_milli;
        self.memory_bytes += other.memory_bytes;
        self.replicas += other.replicas;
        self.slice_mask |= other.slice_mask;
        self.compute_slices += other.compute_slices;
        for (sum, more) in self.counters.iter_mut().zip(&other.counters) {
            *sum += more;
        }
    }

    fn take_away(&mut self, other: &Self) -> Self {
        let mut beyond = other.clone();
        take(&mut self.compute_milli, &mut beyond.compute_milli);
        take(&mut self.memory_bytes, &mut beyond.memory_bytes);
        for (have, asked) in self.counters.iter_mut().zip(&mut beyond.counters) {
            take(have, asked);
        }
        let replicas = self.replicas.min(other.replicas);
        (self.replicas, beyond.replicas) = (self.replicas - replicas, other.replicas - replicas);
        let slices = self.compute_slices.min(other.compute_slices);
        self.compute_slices -= slices;
        beyond.compute_slices -= slices;
        beyond.slice_mask &= !self.slice_mask;
        self.slice_mask &= !other.slice_mask;
        beyond
    }

    fn is_nothing(&self) -> bool {
        *self == Self { mode: self.mode, counters: vec![0; self.counters.len()], ..Self::default() }
    }
}

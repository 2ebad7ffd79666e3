//! What is kept of a node for a reservation.

use dovetail_model::{
    HeldDevices, HoldingId, HoldingPhase, Knowledge, NodeId, Owner, ReservationId,
};
use smallvec::SmallVec;

use crate::State;
use crate::beyond::take;
use crate::device::cell::DeviceCell;
use crate::holdings::{Amounts, HoldingRecord};

/// Amounts and devices of a node that are to be kept.
#[derive(Clone, Debug)]
pub struct ToKeep {
    pub node: NodeId,
    pub reservation: ReservationId,
    pub amounts: Amounts,
    pub devices: HeldDevices,
}

impl ToKeep {
    /// Holds it for good (outside transactions), and sees to the devices that the kubelet chooses.
    pub fn keep(self, state: &mut State) {
        let node = self.node;
        self.hold(state);
        if state.nodes.cold(node).node.knowledge == Knowledge::Counted {
            state.rebuild_devices(node);
        }
    }

    /// Holds the amounts, and those of the devices that can be held now.
    pub fn hold(self, state: &mut State) -> HoldingId {
        let Self { node, reservation, amounts, devices } = self;
        let devices = givable(state, node, devices);
        state.hold(HoldingRecord {
            node,
            owner: Owner::Reservation,
            phase: HoldingPhase::Held { expected_end_ms: None },
            reservation: Some(reservation),
            amounts,
            devices,
            counts_into: SmallVec::new(),
            attachments: SmallVec::new(),
        })
    }
}

/// Those of the devices that can be held now. Where devices are counted any others do as well.
fn givable(state: &State, node: NodeId, devices: HeldDevices) -> HeldDevices {
    let cold = state.nodes.cold(node);
    let mut cells = state.cells(node);
    let mut given = HeldDevices::new();
    for (index, amount) in devices {
        let can = |cell: &Option<DeviceCell>| cell.as_ref().is_some_and(|c| c.can_give(&amount));
        let place = match cold.node.knowledge {
            Knowledge::Assigned => Some(usize::from(index)),
            Knowledge::Counted => cells.iter().position(can),
        };
        let Some(place) = place.filter(|place| cells.get(*place).is_some_and(can)) else {
            continue;
        };
        cells[place] = cells[place].as_ref().map(|cell| cell.hold(&amount));
        given.push((place as u16, amount));
    }
    given.sort_by_key(|(index, _)| *index);
    given
}

impl Amounts {
    /// What is needed less is taken out of `other`.
    pub fn take_from(&mut self, other: &mut Self) {
        take(&mut self.cpu_milli, &mut other.cpu_milli);
        take(&mut self.memory_bytes, &mut other.memory_bytes);
        take(&mut self.ephemeral_bytes, &mut other.ephemeral_bytes);
        take(&mut self.pod_slots, &mut other.pod_slots);
        for (name, need) in &mut self.extended {
            if let Some((_, left)) = other.extended.iter_mut().find(|(have, _)| have == name) {
                take(need, left);
            }
        }
        self.extended.retain(|(_, amount)| *amount > 0);
    }

    /// Adds amounts, resource by resource.
    pub fn add(&mut self, other: &Self) {
        self.cpu_milli += other.cpu_milli;
        self.memory_bytes += other.memory_bytes;
        self.ephemeral_bytes += other.ephemeral_bytes;
        self.pod_slots += other.pod_slots;
        for (name, amount) in &other.extended {
            match self.extended.iter_mut().find(|(have, _)| have == name) {
                Some((_, sum)) => *sum += amount,
                None => self.extended.push((*name, *amount)),
            }
        }
        self.extended.sort_unstable();
    }
}

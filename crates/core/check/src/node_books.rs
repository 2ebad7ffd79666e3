//! What one node has, who holds what of it, and what is free.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{Attachment, HeldDevices, Node, PodId, ReservationId, Resources, Selectors};

use crate::devices::DeviceBooks;

/// Who holds something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holder {
    Pod(PodId),
    Foreign(String),
    /// The number tells amounts of one reservation apart.
    Reserved(ReservationId, u32),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeldAmounts {
    pub(crate) resources: Resources,
    pub(crate) devices: HeldDevices,
    pub(crate) counts_into: Selectors,
    pub(crate) attachments: BTreeSet<Attachment>,
}

#[derive(Clone, Debug)]
pub(crate) struct NodeBooks {
    pub(crate) node: Node,
    pub(crate) held: BTreeMap<Holder, HeldAmounts>,
    /// Signed.
    pub(crate) free: Resources,
    pub(crate) devices: DeviceBooks,
}

impl NodeBooks {
    pub(crate) fn new(node: Node, held: BTreeMap<Holder, HeldAmounts>) -> Self {
        let mut free = node.allocatable.clone();
        let mut devices = DeviceBooks::empty(&node);
        for held in held.values() {
            free.add_times(&held.resources, -1);
            devices.apply(&held.devices, 1);
        }
        Self { node, held, free, devices }
    }

    pub(crate) fn hold(&mut self, holder: Holder, held: HeldAmounts) {
        self.free.add_times(&held.resources, -1);
        self.devices.apply(&held.devices, 1);
        self.held.insert(holder, held);
    }

    pub(crate) fn release(&mut self, holder: &Holder) -> Option<HeldAmounts> {
        let held = self.held.remove(holder)?;
        self.free.add_times(&held.resources, 1);
        self.devices.apply(&held.devices, -1);
        Some(held)
    }
}

/// Every axis of resources as (name, amount), extended ones by their own name.
pub(crate) fn axes(resources: &Resources) -> impl Iterator<Item = (&str, i64)> {
    let plain = [
        ("cpu_milli", resources.cpu_milli),
        ("memory_bytes", resources.memory_bytes),
        ("ephemeral_bytes", resources.ephemeral_bytes),
        ("pod_slots", resources.pod_slots),
    ];
    let extended = resources.extended.iter().map(|(name, amount)| (name.as_str(), *amount));
    plain.into_iter().chain(extended)
}

//! Nodes coming, changing and going; building a state from plain data and back.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{
    Device, Holding, HoldingId, Knowledge, Node, NodeAvailability, NodeId, Owner, PodId, Selectors,
    Snapshot,
};

use crate::State;
use crate::attachments::Attached;
use crate::cause::Help;
use crate::device::cell::{self, DeviceCell, kind_of};
use crate::device::choice::LOST;
use crate::device::table::DeviceTable;
use crate::holdings::HoldingRecord;
use crate::names::Names;

impl State {
    /// Takes over topology, tables and nodes of a snapshot.
    pub fn load(&mut self, snapshot: &Snapshot) {
        self.topology = snapshot.topology.clone();
        self.devices.mig_tables = snapshot.mig_tables.clone();
        for node in &snapshot.nodes {
            self.upsert_node(Arc::new(node.clone()));
        }
    }

    /// Takes over a node, new or changed. What it holds stays, also what no longer fits.
    pub fn upsert_node(&mut self, node: Arc<Node>) -> NodeId {
        let known = self.nodes.find(&node.name);
        let before = known.map(|slot| Arc::clone(&self.nodes.cold(slot).node));
        let slot = known.unwrap_or_else(|| self.nodes.add(Arc::clone(&node)));
        let other_images = self.images.take(slot, before.as_deref(), Some(&node));
        if before.is_some_and(|before| before.differs_only_in_images(&node)) {
            self.nodes.cold_mut(slot).node = node;
            if other_images {
                self.log.touch(slot);
                // Scores changed: a search that does not try everything may choose otherwise and
                // succeed.
                self.helped |= Help::HELD;
            }
            return slot;
        }
        self.recount(slot, -1);
        let old_path = std::mem::take(&mut self.nodes.cold_mut(slot).path);
        self.domains.leave(slot, &old_path);
        self.counters.relabel(slot, Some(&node));
        let path = self.domains.enter(slot, &node, &self.topology);
        let cold = self.nodes.cold_mut(slot);
        cold.path = path;
        cold.node = node;
        self.recount(slot, 1);
        self.nodes.bump_version(slot);
        self.rebuild_amounts(slot);
        self.rebuild_attached(slot);
        self.rebuild_devices(slot);
        self.helped |= Help::ALL;
        slot
    }

    /// Counts (`sign` 1) or uncounts (−1) every pod of a node.
    fn recount(&mut self, slot: NodeId, sign: i64) {
        for id in &self.nodes.cold(slot).holdings {
            self.counters.apply(self.holdings.get(*id), sign, &mut self.log);
        }
    }

    /// Changes only the condition of a node; false if there is no such node.
    pub fn set_condition(&mut self, name: &str, condition: NodeAvailability) -> bool {
        let Some(slot) = self.nodes.find(name) else { return false };
        let cold = self.nodes.cold_mut(slot);
        Arc::make_mut(&mut cold.node).condition = condition;
        self.nodes.bump_version(slot);
        self.log.touch(slot);
        self.helped |= Help::ALL;
        true
    }

    /// Removes a node and everything it holds; returns the pods that were lost with it.
    pub fn remove_node(&mut self, name: &str) -> Option<BTreeSet<PodId>> {
        let slot = self.nodes.find(name)?;
        let mut lost = BTreeSet::new();
        for id in self.nodes.cold(slot).holdings.clone() {
            if let Owner::Pod(pod) = self.remove_holding(id).owner {
                lost.insert(pod);
            }
        }
        let path = std::mem::take(&mut self.nodes.cold_mut(slot).path);
        self.domains.leave(slot, &path);
        self.counters.relabel(slot, None);
        let node = Arc::clone(&self.nodes.cold(slot).node);
        self.images.take(slot, Some(&node), None);
        self.nodes.remove(slot);
        self.log.touch(slot);
        self.helped |= Help::ALL;
        Some(lost)
    }

    /// Holds something for good (outside transactions), and notes it at its node.
    pub fn add_holding(&mut self, holding: &Holding) -> Option<HoldingId> {
        let id = self.add_unsettled(holding)?;
        let node = self.holdings.get(id).node;
        if self.nodes.cold(node).node.knowledge == Knowledge::Counted {
            self.rebuild_devices(node);
        }
        Some(id)
    }

    /// Where the kubelet chooses devices: sees to it that all holdings have theirs, after
    /// [`State::add_unsettled`].
    pub fn settle_devices(&mut self) {
        let nodes: BTreeSet<NodeId> = self.holdings.iter().map(|(_, record)| record.node).collect();
        for node in nodes {
            if self.nodes.cold(node).node.knowledge == Knowledge::Counted {
                self.rebuild_devices(node);
            }
        }
    }

    /// As [`State::add_holding`], one of many: devices that the kubelet chooses are not looked at.
    pub fn add_unsettled(&mut self, holding: &Holding) -> Option<HoldingId> {
        let node = self.nodes.find(&holding.node)?;
        let record = HoldingRecord {
            node,
            owner: holding.owner.clone(),
            phase: holding.phase,
            reservation: holding.reservation,
            amounts: self.names.amounts(&holding.resources),
            devices: holding.devices.clone(),
            counts_into: holding.counts_into.iter().map(|s| self.counters.selector(s)).collect(),
            attachments: self.names.attached(&holding.attachments),
        };
        Some(self.hold(record))
    }

    /// Frees a committed holding.
    pub fn remove_holding(&mut self, id: HoldingId) -> HoldingRecord {
        let record = self.release(id);
        if self.nodes.cold(record.node).missing_devices > 0 {
            self.rebuild_devices(record.node);
        }
        record
    }

    /// Changes the selectors that count a committed holding.
    pub fn set_counts(&mut self, id: HoldingId, counts_into: &Selectors) {
        self.counters.apply(self.holdings.get(id), -1, &mut self.log);
        let numbers = counts_into.iter().map(|name| self.counters.selector(name)).collect();
        self.holdings.set_counts(id, numbers);
        self.counters.apply(self.holdings.get(id), 1, &mut self.log);
        self.helped |= Help::against_rules();
    }

    fn rebuild_amounts(&mut self, slot: NodeId) {
        let node = Arc::clone(&self.nodes.cold(slot).node);
        let mut left = self.names.amounts(&node.allocatable);
        for id in self.nodes.cold(slot).holdings.clone() {
            let held = &self.holdings.get(id).amounts;
            left.cpu_milli -= held.cpu_milli;
            left.memory_bytes -= held.memory_bytes;
            left.ephemeral_bytes -= held.ephemeral_bytes;
            left.pod_slots -= held.pod_slots;
            for (name, amount) in &held.extended {
                match left.extended.iter_mut().find(|(have, _)| have == name) {
                    Some((_, left)) => *left -= amount,
                    None => left.extended.push((*name, -amount)),
                }
            }
        }
        left.extended.sort_unstable();
        let hot = &mut self.nodes.hot[slot.index()];
        hot.cpu_allocatable_milli = node.allocatable.cpu_milli;
        hot.cpu_left_milli = left.cpu_milli;
        hot.memory_left_bytes = left.memory_bytes;
        hot.slots_left = left.pod_slots.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
        let cold = self.nodes.cold_mut(slot);
        cold.ephemeral_left_bytes = left.ephemeral_bytes;
        cold.extended_left = left.extended.into_iter().collect();
    }

    /// Takes over the limits of a node and counts anew what is attached there.
    fn rebuild_attached(&mut self, slot: NodeId) {
        let cold = self.nodes.cold(slot);
        let limits = &mut self.names.limits;
        let left =
            cold.node.attach_limits.iter().map(|(name, most)| (limits.intern(name).0, *most));
        let mut attached = Attached::with_limits(left);
        for id in &cold.holdings {
            attached.attach(&self.holdings.get(*id).attachments, &self.names.limit_of);
        }
        self.nodes.cold_mut(slot).attached = attached;
    }

    /// Computes the device cells of a node anew from its devices and what it holds. Where devices
    /// are counted, holdings on devices that cannot give what they hold move to others that can.
    pub fn rebuild_devices(&mut self, slot: NodeId) {
        if self.nodes.cold(slot).node.knowledge == Knowledge::Counted {
            self.renumber_devices(slot);
        }
        self.recount_devices(slot);
    }

    /// As [`State::rebuild_devices`], and every holding stays on the devices it names.
    pub fn recount_devices(&mut self, slot: NodeId) {
        let node = Arc::clone(&self.nodes.cold(slot).node);
        let counted = node.knowledge == Knowledge::Counted;
        let empty = |device| self.devices.empty(device, counted, &mut self.names);
        let mut cells: Vec<u32> = node.devices.iter().map(empty).collect();
        let mut holders = vec![0u16; cells.len()];
        let mut missing_devices = 0;
        for id in self.nodes.cold(slot).holdings.clone() {
            for (index, amount) in &self.holdings.get(id).devices {
                let place = usize::from(*index);
                match cells.get(place).copied().filter(|cell| *cell != LOST) {
                    Some(cell) => {
                        cells[place] = self.devices.cell_after_hold(cell, amount);
                        holders[place] += 1;
                    }
                    None => missing_devices += 1,
                }
            }
        }
        let cold = self.nodes.cold_mut(slot);
        cold.cells = cells;
        cold.holders = holders;
        cold.missing_devices = missing_devices;
        let set = self.devices.intern_set(self.nodes.cold(slot).usable());
        let hot = &mut self.nodes.hot[slot.index()];
        hot.set = set;
        let cold = self.nodes.cold[slot.index()].as_ref().expect("a node that is there");
        hot.overcommitted = cold.is_overcommitted(hot, &self.devices);
        self.log.touch_lasting(slot);
    }

    /// On a node with counted devices an index stands for “one of them”. Holdings that the devices
    /// they name can give to all of them keep those; the others get devices that can give it, or
    /// numbers beyond the last. The order is by holder, so that it does not depend on history.
    fn renumber_devices(&mut self, slot: NodeId) {
        let node = Arc::clone(&self.nodes.cold(slot).node);
        let mut cells: Vec<Option<DeviceCell>> = Vec::new();
        for device in &node.devices {
            let number = self.devices.empty(device, true, &mut self.names);
            cells.push((number != LOST).then(|| self.devices.cell(number).clone()));
        }
        let mut held = self.nodes.cold(slot).holdings.clone();
        held.sort_by(|a, b| self.holdings.get(*a).holder().cmp(&self.holdings.get(*b).holder()));
        let mut homeless = Vec::new();
        for id in held {
            let devices = &self.holdings.get(id).devices;
            let mut after = cells.clone();
            match devices.iter().all(|(index, amount)| cell::add(&mut after, *index, amount)) {
                true => cells = after,
                false => homeless.push(id),
            }
        }
        let mut beyond = u16::MAX;
        for id in homeless {
            let mut devices = self.holdings.get(id).devices.clone();
            for (index, amount) in &mut devices {
                *index = cell::give(&mut cells, amount).unwrap_or_else(|| {
                    beyond -= 1;
                    beyond + 1
                });
            }
            devices.sort_by_key(|(index, _)| *index);
            self.holdings.set_devices(id, devices);
        }
    }
}

/// One holding as plain data.
pub fn export(state: &State, id: HoldingId) -> Holding {
    let record = state.holdings.get(id);
    let selector = |number: &u32| state.counters.selector_name(*number).to_owned();
    let attachment = |number: &u32| state.names.attachments.get(*number).clone();
    Holding {
        id,
        node: state.nodes.cold(record.node).node.name.clone(),
        owner: record.owner.clone(),
        phase: record.phase,
        reservation: record.reservation,
        resources: state.names.resources(&record.amounts),
        devices: record.devices.clone(),
        counts_into: record.counts_into.iter().map(selector).collect::<Vec<_>>().into(),
        attachments: record.attachments.iter().map(attachment).collect(),
    }
}

impl DeviceTable {
    /// The number of a device that nobody holds anything of; [`LOST`] if it is not healthy.
    fn empty(&mut self, device: &Device, counted: bool, names: &mut Names) -> u32 {
        if !device.healthy {
            return LOST;
        }
        let model = names.models.intern(&device.model).0;
        let table = device
            .mig_table
            .as_ref()
            .and_then(|name| self.mig_tables.iter().position(|table| table.name == *name));
        for (name, _) in &device.counters {
            names.counters.intern(name);
        }
        let number = |name: &str| names.counters.find(name).expect("interned above");
        let kind = kind_of(device, model, table.map(|t| t as u16), number, counted);
        self.intern_empty(&kind, &device.model)
    }
}

//! The node table: a small hot record per node for decisions, the rest beside it.

use std::sync::Arc;

use dovetail_model::{HoldingId, Mode, Node, NodeId, NodeName, Owner};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::attachments::Attached;
use crate::device::choice::LOST;
use crate::device::table::{CellSet, DeviceTable};
use crate::domains::Path;
use crate::holdings::{Amounts, HoldingRecord};

/// What every decision reads of a node; fits one cache line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hot {
    pub cpu_left_milli: i64,
    pub memory_left_bytes: i64,
    /// Changes whenever labels, taints, condition or name change; 0: there is no such node.
    pub static_version: u64,
    /// Number of the multiset of usable devices.
    pub set: u32,
    /// Tie-break: the lowest wins.
    pub rank: u32,
    pub slots_left: i32,
    /// Holdings of pods of jobs the engine knows.
    pub pods_of_jobs: u16,
    /// CPU the node has.
    pub cpu_allocatable_milli: i64,
    /// More is held of the devices than there is.
    pub overcommitted: bool,
}

impl Hot {
    /// Whether the node is in the cluster.
    pub fn is_present(&self) -> bool {
        self.static_version != 0
    }
}

/// The rest of a node.
#[derive(Clone, Debug)]
pub struct Cold {
    pub node: Arc<Node>,
    /// Cell of each device by index; [`LOST`] where the device is not usable.
    pub cells: Vec<u32>,
    /// Holdings per device.
    pub holders: Vec<u16>,
    pub ephemeral_left_bytes: i64,
    /// Free extended resources, ascending by interned name.
    pub extended_left: SmallVec<[(u32, i64); 2]>,
    /// In no order.
    pub holdings: Vec<HoldingId>,
    pub path: Path,
    /// Devices held beyond those the node has.
    pub missing_devices: u32,
    pub attached: Attached,
}

/// All nodes by slot.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    pub hot: Vec<Hot>,
    pub cold: Vec<Option<Box<Cold>>>,
    by_name: FxHashMap<NodeName, NodeId>,
    free_slots: Vec<u32>,
    next_rank: u32,
    versions: u64,
}

impl Nodes {
    /// What every decision reads of a node.
    #[inline]
    pub fn hot(&self, node: NodeId) -> &Hot {
        &self.hot[node.index()]
    }

    /// The rest of a node.
    pub fn cold(&self, node: NodeId) -> &Cold {
        self.cold[node.index()].as_ref().expect("a node that is there")
    }

    /// The rest of a node, to be changed.
    pub fn cold_mut(&mut self, node: NodeId) -> &mut Cold {
        self.cold[node.index()].as_mut().expect("a node that is there")
    }

    /// The node of a name; `None` if the cluster has none.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    /// Slots in use or once used.
    pub fn slots(&self) -> usize {
        self.hot.len()
    }

    /// Nodes that are there, by slot.
    pub fn present(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.cold
            .iter()
            .enumerate()
            .filter_map(|(slot, cold)| Some((NodeId(slot as u32), &*cold.as_ref()?.node)))
    }

    /// Changes whenever the static part of any node changes, or a node comes or goes.
    pub fn static_versions(&self) -> u64 {
        self.versions
    }

    /// A slot for a new name.
    pub fn add(&mut self, node: Arc<Node>) -> NodeId {
        let slot = self.free_slots.pop().unwrap_or(self.hot.len() as u32);
        if slot as usize == self.hot.len() {
            self.hot.push(Hot::default());
            self.cold.push(None);
        }
        self.by_name.insert(node.name.clone(), NodeId(slot));
        self.hot[slot as usize].rank = self.next_rank;
        self.next_rank += 1;
        self.cold[slot as usize] = Some(Box::new(Cold {
            node,
            cells: Vec::new(),
            holders: Vec::new(),
            ephemeral_left_bytes: 0,
            extended_left: SmallVec::new(),
            holdings: Vec::new(),
            path: Path::new(),
            missing_devices: 0,
            attached: Attached::default(),
        }));
        NodeId(slot)
    }

    /// Forgets a node that holds nothing.
    pub fn remove(&mut self, slot: NodeId) {
        let cold = self.cold[slot.index()].take().expect("a node that is there");
        assert!(cold.holdings.is_empty(), "a node is removed only after its allocations");
        self.by_name.remove(&cold.node.name);
        self.versions += 1;
        self.hot[slot.index()] = Hot::default();
        self.free_slots.push(slot.0);
    }

    /// Marks labels, taints, condition or name as changed.
    pub fn bump_version(&mut self, slot: NodeId) {
        self.versions += 1;
        self.hot[slot.index()].static_version = self.versions;
    }

    /// Adds (`sign` 1) or takes back (−1) a holding's amounts. Returns true where device slices may
    /// have overlapped, so that the cells must be computed anew from what is still held.
    pub fn apply(&mut self, record: &HoldingRecord, sign: i64, table: &mut DeviceTable) -> bool {
        let cold = self.cold[record.node.index()].as_mut().expect("a node that is there");
        let hot = &mut self.hot[record.node.index()];
        let amounts = &record.amounts;
        hot.cpu_left_milli -= sign * amounts.cpu_milli;
        hot.memory_left_bytes -= sign * amounts.memory_bytes;
        hot.slots_left -= (sign * amounts.pod_slots) as i32;
        cold.ephemeral_left_bytes -= sign * amounts.ephemeral_bytes;
        cold.apply_extended(amounts, sign);
        if let Owner::Pod(_) = record.owner {
            hot.pods_of_jobs = (i64::from(hot.pods_of_jobs) + sign) as u16;
        }
        let mut anew = false;
        for (index, amount) in &record.devices {
            let Some(old) = cold.usable_cell(*index) else {
                cold.missing_devices = (i64::from(cold.missing_devices) + sign) as u32;
                continue;
            };
            let place = usize::from(*index);
            cold.holders[place] = (i64::from(cold.holders[place]) + sign) as u16;
            let new = match (sign > 0, cold.holders[place]) {
                (true, _) => table.cell_after_hold(old, amount),
                (false, 0) => table.emptied(old),
                (false, _) => {
                    anew |= amount.mode == Mode::Sliced;
                    let released = table.cell(old).release(amount);
                    table.intern_cell(&released)
                }
            };
            cold.cells[place] = new;
            hot.set = table.set_after(hot.set, old, new);
        }
        hot.overcommitted = cold.is_overcommitted(hot, table);
        anew
    }
}

impl Cold {
    /// Takes a holding off the list; the newest ones go first, so this looks from the end.
    pub fn forget(&mut self, id: HoldingId) {
        let place = self.holdings.iter().rposition(|other| *other == id);
        self.holdings.swap_remove(place.expect("a holding is on its node's list"));
    }

    /// The state of a device; `None` where it is lost or not there.
    pub fn usable_cell(&self, index: u16) -> Option<u32> {
        self.cells.get(usize::from(index)).copied().filter(|cell| *cell != LOST)
    }

    fn apply_extended(&mut self, amounts: &Amounts, sign: i64) {
        for (name, amount) in &amounts.extended {
            match self.extended_left.iter_mut().find(|(have, _)| have == name) {
                Some((_, left)) => *left -= sign * amount,
                None => {
                    self.extended_left.push((*name, -sign * amount));
                    self.extended_left.sort_unstable();
                }
            }
        }
    }

    /// Free amount of an extended resource; 0 if the node has none of it.
    pub fn extended_left(&self, name: u32) -> i64 {
        self.extended_left.iter().find(|(have, _)| *have == name).map_or(0, |(_, left)| *left)
    }

    /// Whether the node holds more than it has of anything.
    pub fn is_overcommitted(&self, hot: &Hot, table: &DeviceTable) -> bool {
        self.missing_devices > 0 || table.facts(hot.set).overcommitted
    }

    /// Usable cells as a multiset.
    pub fn usable(&self) -> CellSet {
        self.cells.iter().copied().filter(|cell| *cell != LOST).collect()
    }
}

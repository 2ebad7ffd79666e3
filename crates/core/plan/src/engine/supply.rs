//! Read access for whoever accounts for capacity: what nodes and devices have free, and what waits.

use dovetail_model::{HeldDevices, HoldingId, Job, MigTable, Mode, Node, NodeId, Owner};

use dovetail_state::State;
use dovetail_state::device::choice::LOST;
use dovetail_state::log::Cursor;
use dovetail_state::shapes::ShapeId;

/// Up to where a reader has followed the changes of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeCursor(Cursor);

/// What one usable device has free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceState<'e> {
    /// Model; empty when unknown.
    pub model: &'e str,
    /// What it is used as.
    pub mode: Mode,
    /// Free compute in thousandths ([`Mode::Shared`]); negative when over-committed.
    pub compute_left_milli: i64,
    /// Free and all compute slices ([`Mode::Sliced`]).
    pub compute_slices: (i64, i64),
    /// Free and all replicas ([`Mode::Replicated`]).
    pub replicas: (i64, i64),
    /// Free and total amount of each counter ([`Mode::Counted`]).
    pub counters: Vec<(i64, i64)>,
}

/// Jobs that ask for the same and wait.
#[derive(Clone, Debug)]
pub struct WaitingClass<'e> {
    /// The first of them in the order of the queue.
    pub first: &'e Job,
    /// How many there are.
    pub jobs: u64,
    /// They were tried and could not start, and nothing that could help has happened since.
    pub tried: bool,
    /// A queue at its limit keeps the first from starting.
    pub blocked_by_quota: bool,
    /// What one such job lacks to its smallest size, in the order of [`Job::pod_sets`].
    pub sets: Vec<WaitingSet>,
}

/// Pods of one set of a waiting job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingSet {
    pub shape: ShapeId,
    /// How many are missing to the smallest size.
    pub pods: u32,
    /// Depth of the narrowest topology level that they must share.
    pub level: Option<usize>,
}

/// Whether required topology levels count in [`super::Questions::gang_fits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LevelCheck {
    /// As the job asks.
    Required,
    /// As if it required none.
    Ignored,
}

/// Nodes with their devices, and what is held on them.
#[derive(Clone, Copy)]
pub struct Supply<'e> {
    state: &'e State,
}

impl<'e> Supply<'e> {
    pub(super) fn of(state: &'e State) -> Self {
        Self { state }
    }

    /// Whether a node of this name is there.
    pub fn has_node(&self, name: &str) -> bool {
        self.state.nodes.find(name).is_some()
    }

    /// Collects the nodes that changed since the cursor, each once, and moves it to the present;
    /// false if that is no longer known, so that every node may have changed.
    pub fn changed_nodes(&self, cursor: &mut ChangeCursor, changed: &mut Vec<NodeId>) -> bool {
        let log = &self.state.log;
        let known = log.touched_since(cursor.0).map(|nodes| changed.extend(nodes)).is_some();
        cursor.0 = log.end();
        known
    }

    /// Slots of nodes, in use or once used: every [`NodeId`] is below this.
    pub fn node_slots(&self) -> usize {
        self.state.nodes.slots()
    }

    /// The node of a slot; `None` if the slot is not in use.
    pub fn node(&self, node: NodeId) -> Option<&'e Node> {
        self.state.nodes.cold.get(node.index())?.as_ref().map(|cold| &*cold.node)
    }

    /// Tie-break rank of a node, unique among those there are; an earlier node has a lower one.
    pub fn node_rank(&self, node: NodeId) -> u32 {
        self.state.nodes.hot(node).rank
    }

    /// Whether a node is in a domain of the level of this depth.
    pub fn is_in_level(&self, node: NodeId, depth: usize) -> bool {
        let path = &self.state.nodes.cold(node).path;
        depth == self.state.topology.levels.len() || path.len() > depth
    }

    /// Changes whenever a node comes, goes, or changes in more than what it holds.
    pub fn fleet_version(&self) -> u64 {
        self.state.nodes.static_versions()
    }

    /// Numbers of the device states of a node by device index; `None` where the device is lost.
    /// Equal numbers are equal states, now and later.
    pub fn device_numbers(&self, node: NodeId) -> impl Iterator<Item = Option<u32>> + use<'e> {
        let cells = &self.state.nodes.cold(node).cells;
        cells.iter().map(|cell| (*cell != LOST).then_some(*cell))
    }

    /// The device state behind a number.
    pub fn device_state(&self, number: u32) -> DeviceState<'e> {
        let table = &self.state.devices;
        let cell = table.cell(number);
        let kind = table.kind(cell.kind);
        let slices = kind.mig_table.map_or(0, |t| table.mig_tables[usize::from(t)].compute_slices);
        let totals = kind.counters.iter().map(|(_, total)| *total);
        DeviceState {
            model: self.state.names.models.get(kind.model),
            mode: cell.mode,
            compute_left_milli: cell.compute_left_milli,
            compute_slices: (i64::from(cell.compute_slices_left), i64::from(slices)),
            replicas: (i64::from(cell.replicas_left), i64::from(kind.replicas)),
            counters: cell.counters_left.iter().copied().zip(totals).collect(),
        }
    }

    /// Everything held on a node, in no order.
    pub fn node_holdings(
        &self,
        node: NodeId,
    ) -> impl Iterator<Item = (HoldingId, &'e Owner, &'e HeldDevices)> + use<'e> {
        let state = self.state;
        state.nodes.cold(node).holdings.iter().map(|id| {
            let record = state.holdings.get(*id);
            (*id, &record.owner, &record.devices)
        })
    }

    /// The tables that MIG profiles come from.
    pub fn mig_tables(&self) -> &'e [MigTable] {
        &self.state.devices.mig_tables
    }
}

//! The cluster as decisions see it: nodes, devices, what is held, and what rules count. One mutable
//! state with transactions; pure.
//!
//! Whatever happens is a [`State::hold`], a [`State::release`] or a change of a node. Inside a
//! transaction ([`State::begin`]) holds and releases are journalled; [`State::rollback`] undoes
//! them in reverse, so that every what-if costs only its own changes and nothing is ever copied.
//! Every touched node and every moved counter goes to the change log ([`log::ChangeLog`]), also
//! when a rollback touches it again: that is how indices stay exact. Those that did not look at the
//! nodes meanwhile pass over what was undone.
//!
//! | module | what |
//! |---|---|
//! | [`nodes`], [`domains`], [`scope`] | nodes, topology domains, parts of the cluster |
//! | [`device`] | states of devices, what pods need of them, which ones they get |
//! | [`shapes`], [`masks`], [`preferences`], [`images`] | what pods ask for, and what it says of each node |
//! | [`names`], [`intern`], `interning` | names as numbers; requirements as shapes |
//! | `points` | how well a node suits a pod |
//! | [`holdings`], [`kept`], [`beyond`] | what is held, and what is kept for reservations |
//! | [`counters`], [`scopes`], [`attachments`], [`rules`] | what rules count, and whether they allow a node |
//! | [`fit`], [`cause`] | whether a pod fits on a node, and what keeps it off |
//! | [`view`] | now, after releasing, at a time, without victims |
//! | [`load`] | from plain data and back |

pub mod attachments;
pub mod beyond;
pub mod cause;
pub mod counters;
pub mod device;
pub mod domains;
pub mod fit;
pub mod holdings;
pub mod images;
pub mod intern;
mod interning;
pub mod kept;
pub mod load;
pub mod log;
pub mod masks;
pub mod names;
pub mod nodes;
mod points;
pub mod preferences;
pub mod rules;
pub mod scope;
pub mod scopes;
pub mod shapes;
pub mod view;

use dovetail_model::{DeviceAmount, HeldDevices, HoldingId, Knowledge, NodeId, Topology};

use self::counters::Counters;
use self::domains::Domains;
use self::holdings::{HoldingRecord, Holdings};
use self::images::Images;
use self::log::{ChangeLog, Cursor};
use self::masks::Masks;
use self::names::Names;
use self::nodes::Nodes;
use self::preferences::Preferences;
use self::shapes::Shapes;
use crate::cause::Help;
use crate::device::cell::{self, DeviceCell};
use crate::device::choice::LOST;
use crate::device::table::DeviceTable;

/// The cluster as the engine sees it.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub names: Names,
    pub devices: DeviceTable,
    pub shapes: Shapes,
    pub masks: Masks,
    pub preferences: Preferences,
    pub images: Images,
    pub nodes: Nodes,
    pub domains: Domains,
    pub counters: Counters,
    pub holdings: Holdings,
    pub log: ChangeLog,
    /// What has become free or otherwise better since the engine last asked.
    pub helped: Help,
    /// Nodes on which something was freed since then.
    pub helped_nodes: Vec<NodeId>,
    pub topology: Topology,
    journal: Vec<Undo>,
    depth: u32,
}

/// A place in the journal to roll back to.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Mark {
    journal: usize,
    log: Cursor,
}

/// How to undo one change.
#[derive(Clone, Debug)]
enum Undo {
    Held(HoldingId),
    Released(HoldingId, Box<HoldingRecord>),
    Moved(HoldingId, HeldDevices),
}

impl State {
    /// Opens a transaction; transactions nest.
    pub fn begin(&mut self) -> Mark {
        self.depth += 1;
        Mark { journal: self.journal.len(), log: self.log.end() }
    }

    /// Keeps what was done since the mark.
    pub fn commit(&mut self, mark: Mark) {
        self.depth -= 1;
        if self.depth == 0 {
            for undo in self.journal.drain(mark.journal..) {
                self.helped |= match undo {
                    Undo::Held(id) if self.holdings.contains(id) => {
                        Help::of_hold(self.holdings.get(id))
                    }
                    Undo::Released(_, record) => {
                        self.helped_nodes.push(record.node);
                        Help::of_release(&record) | Help::CLAIM_USED
                    }
                    _ => Help::ALL,
                };
            }
        }
    }

    /// Undoes what was done since the mark, newest first.
    pub fn rollback(&mut self, mark: Mark) {
        while self.journal.len() > mark.journal {
            match self.journal.pop().expect("the journal is longer than the mark") {
                Undo::Held(id) => {
                    let record = self.holdings.remove(id);
                    self.unapply(id, &record);
                }
                Undo::Released(id, record) => {
                    self.apply(id, &record);
                    self.holdings.restore(id, *record);
                }
                Undo::Moved(id, devices) => drop(self.move_devices(id, devices)),
            }
        }
        self.log.undo_from(mark.log);
        self.depth -= 1;
    }

    /// Holds what the record says, whether it fits or not, and returns its identity.
    pub fn hold(&mut self, record: HoldingRecord) -> HoldingId {
        let id = self.holdings.next_id();
        self.apply(id, &record);
        if self.depth > 0 {
            self.journal.push(Undo::Held(id));
        } else {
            self.helped |= Help::of_hold(&record);
        }
        self.holdings.insert(record);
        id
    }

    /// Frees a holding.
    pub fn release(&mut self, id: HoldingId) -> HoldingRecord {
        let record = self.holdings.remove(id);
        self.unapply(id, &record);
        if self.depth > 0 {
            self.journal.push(Undo::Released(id, Box::new(record.clone())));
            self.house(record.node);
        } else {
            self.helped |= Help::of_release(&record);
            if self.helped_nodes.last() != Some(&record.node) {
                self.helped_nodes.push(record.node);
            }
        }
        record
    }

    /// Inside a transaction: on a node of which the kubelet chooses the devices and more is held
    /// than there is, what becomes free is taken by those that have no device, in the order of
    /// holders.
    fn house(&mut self, node: NodeId) {
        let cold = self.nodes.cold(node);
        if cold.missing_devices == 0 || cold.node.knowledge != Knowledge::Counted {
            return;
        }
        let mut homeless = cold.holdings.clone();
        homeless.retain(|id| {
            let devices = &self.holdings.get(*id).devices;
            devices.iter().any(|(index, _)| cold.usable_cell(*index).is_none())
        });
        homeless
            .sort_by(|a, b| self.holdings.get(*a).holder().cmp(&self.holdings.get(*b).holder()));
        for id in homeless {
            let mut devices = self.holdings.get(id).devices.clone();
            let cold = self.nodes.cold(node);
            let mut cells = self.cells(node);
            for (index, amount) in &mut devices {
                if cold.usable_cell(*index).is_none()
                    && let Some(place) = cell::give(&mut cells, amount)
                {
                    *index = place;
                }
            }
            devices.sort_by_key(|(index, _)| *index);
            if devices != self.holdings.get(id).devices {
                let before = self.move_devices(id, devices);
                self.journal.push(Undo::Moved(id, before));
            }
        }
    }

    /// Holds again what was released in this transaction, on other devices of its node where the
    /// kubelet chooses and others have taken those it had.
    pub fn hold_again(&mut self, mut record: HoldingRecord) -> HoldingId {
        let cold = self.nodes.cold(record.node);
        let can = |(index, amount): &(u16, DeviceAmount)| {
            cold.usable_cell(*index).is_some_and(|cell| self.devices.cell(cell).can_give(amount))
        };
        if cold.node.knowledge == Knowledge::Counted && !record.devices.iter().all(can) {
            let mut cells = self.cells(record.node);
            for (index, amount) in &mut record.devices {
                if !cell::add(&mut cells, *index, amount) {
                    *index = cell::give(&mut cells, amount).unwrap_or(u16::MAX);
                }
            }
            record.devices.sort_by_key(|(index, _)| *index);
        }
        self.hold(record)
    }

    /// The devices of a node as they are now; `None` for those that are lost.
    pub fn cells(&self, node: NodeId) -> Vec<Option<DeviceCell>> {
        let cell = |number: &u32| (*number != LOST).then(|| self.devices.cell(*number).clone());
        self.nodes.cold(node).cells.iter().map(cell).collect()
    }

    /// Gives a holding other devices of its node; those it had.
    fn move_devices(&mut self, id: HoldingId, devices: HeldDevices) -> HeldDevices {
        let mut record = self.holdings.get(id).clone();
        self.nodes.apply(&record, -1, &mut self.devices);
        let before = std::mem::replace(&mut record.devices, devices.clone());
        self.nodes.apply(&record, 1, &mut self.devices);
        self.holdings.set_devices(id, devices);
        self.log.touch(record.node);
        before
    }

    fn apply(&mut self, id: HoldingId, record: &HoldingRecord) {
        self.nodes.cold_mut(record.node).holdings.push(id);
        self.nodes.apply(record, 1, &mut self.devices);
        self.counters.apply(record, 1, &mut self.log);
        let attached = &mut self.nodes.cold_mut(record.node).attached;
        attached.attach(&record.attachments, &self.names.limit_of);
        self.log.touch_by_hold(record.node);
    }

    fn unapply(&mut self, id: HoldingId, record: &HoldingRecord) {
        self.nodes.cold_mut(record.node).forget(id);
        let overlapped = self.nodes.apply(record, -1, &mut self.devices);
        self.counters.apply(record, -1, &mut self.log);
        let attached = &mut self.nodes.cold_mut(record.node).attached;
        attached.detach(&record.attachments, &self.names.limit_of);
        self.log.touch(record.node);
        if overlapped {
            self.recount_devices(record.node);
        }
    }
}

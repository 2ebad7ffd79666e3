//! Numbers for device states and for multisets of them, with what is computed once per number.

use dovetail_model::{DeviceAmount, MigTable, Mode};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::device::cell::{DeviceCell, DeviceKind};
use crate::device::choice;
use crate::device::need::{DeviceNeed, InternedRequest};
use crate::intern::Interner;

/// Sorted cell numbers of the usable devices of one node.
pub type CellSet = SmallVec<[u32; 8]>;

/// Everything interned about devices.
#[derive(Clone, Debug, Default)]
pub struct DeviceTable {
    pub mig_tables: Vec<MigTable>,
    kinds: Interner<DeviceKind>,
    /// Place of each kind in an order of their content, with model names and not numbers, so that
    /// it does not depend on which kind was met first.
    kind_ranks: Vec<u32>,
    kind_models: Vec<String>,
    cells: Interner<DeviceCell>,
    sets: Interner<CellSet>,
    set_facts: Vec<SetFacts>,
    needs: Interner<DeviceNeed>,
    /// Per need: how many fit, by set number; [`UNKNOWN`] where not computed yet.
    capacity: Vec<Vec<u16>>,
    /// (set, old cell, new cell) → set.
    moves: FxHashMap<(u32, u32, u32), u32>,
    /// (need of a share, cell) → the cell with one more such share; [`NO_CELL`] where it does not
    /// fit.
    shares: FxHashMap<(u32, u32), u32>,
}

/// What is worth knowing about a multiset of devices.
#[derive(Clone, Copy, Debug, Default)]
pub struct SetFacts {
    /// Σ of free compute, negative amounts counted as 0, over devices held whole, by share or
    /// empty.
    pub gpu_left_milli: i64,
    pub devices: u16,
    pub empty: u16,
    /// A device is over-committed.
    pub overcommitted: bool,
}

const UNKNOWN: u16 = u16::MAX;
/// No device of the set is of a kind the need may use.
const WRONG_KIND: u16 = UNKNOWN - 1;
/// Stands for “any number”: the need asks for no device.
const UNBOUNDED: u16 = UNKNOWN - 2;

const NO_CELL: u32 = u32::MAX;

/// Devices of one model with the same free compute.
#[derive(Clone, Copy, Debug)]
pub struct Alike {
    pub model: u32,
    pub left_milli: i64,
    pub count: i64,
}

/// How the devices of a node meet a need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceFit {
    /// So many pods fit one after another; 0: too little is free, or in too small pieces.
    Pods(u16),
    /// None is of a kind the need may use.
    WrongKind,
}

impl DeviceTable {
    /// The kind of device behind a number.
    pub fn kind(&self, number: u32) -> &DeviceKind {
        self.kinds.get(number)
    }

    /// The device state behind a number.
    pub fn cell(&self, number: u32) -> &DeviceCell {
        self.cells.get(number)
    }

    /// The multiset of device states behind a number.
    pub fn set(&self, number: u32) -> &CellSet {
        self.sets.get(number)
    }

    /// What holds of a multiset whoever asks.
    #[inline]
    pub fn facts(&self, set: u32) -> SetFacts {
        self.set_facts[set as usize]
    }

    /// The need behind a number.
    pub fn need(&self, number: u32) -> &DeviceNeed {
        self.needs.get(number)
    }

    /// Place of a kind among all, the same whatever the order in which they were met.
    #[inline]
    pub fn kind_rank(&self, kind: u32) -> u32 {
        self.kind_ranks[kind as usize]
    }

    /// The number of an untouched device of this kind, whose model has this name.
    pub fn intern_empty(&mut self, kind: &DeviceKind, model: &str) -> u32 {
        let (number, new) = self.kinds.intern(kind);
        if new {
            self.kind_models.push(model.to_owned());
            self.rank_kinds();
        }
        let cell = DeviceCell::empty(number, kind, &self.mig_tables);
        self.intern_cell(&cell)
    }

    fn rank_kinds(&mut self) {
        let mut order: Vec<u32> = (0..self.kinds.count() as u32).collect();
        order.sort_by_key(|number| {
            let kind = self.kinds.get(*number);
            let model = &self.kind_models[*number as usize];
            let counters: Vec<i64> = kind.counters.iter().map(|(_, total)| *total).collect();
            (model, kind.memory_bytes, kind.island, kind.mig_table, kind.replicas, counters)
        });
        self.kind_ranks = vec![0; order.len()];
        for (rank, number) in order.into_iter().enumerate() {
            self.kind_ranks[number as usize] = rank as u32;
        }
    }

    /// The number of a device state, new where it has none.
    pub fn intern_cell(&mut self, cell: &DeviceCell) -> u32 {
        self.cells.intern(cell).0
    }

    /// The empty state of the device that this cell is a state of.
    pub fn emptied(&mut self, cell: u32) -> u32 {
        let kind = self.cells.get(cell).kind;
        let empty = DeviceCell::empty(kind, self.kinds.get(kind), &self.mig_tables);
        self.intern_cell(&empty)
    }

    /// The number of a need, new where it has none.
    pub fn intern_need(&mut self, need: &DeviceNeed) -> u32 {
        let (number, new) = self.needs.intern(need);
        if new {
            self.capacity.push(Vec::new());
        }
        number
    }

    /// The number of a multiset; sorts it.
    pub fn intern_set(&mut self, mut cells: CellSet) -> u32 {
        cells.sort_unstable();
        let (number, new) = self.sets.intern(&cells);
        if new {
            let facts = self.compute_facts(&cells);
            self.set_facts.push(facts);
        }
        number
    }

    /// The multiset after one of its devices changed from `old` to `new`.
    pub fn set_after(&mut self, set: u32, old: u32, new: u32) -> u32 {
        if let Some(after) = self.moves.get(&(set, old, new)) {
            return *after;
        }
        let mut cells = self.sets.get(set).clone();
        let place = cells.iter().position(|cell| *cell == old).expect("the set has the old cell");
        cells[place] = new;
        let after = self.intern_set(cells);
        self.moves.insert((set, old, new), after);
        after
    }

    /// How many pods of the need the devices can take one after another.
    #[inline]
    pub fn fit(&mut self, need: u32, set: u32) -> DeviceFit {
        let known = self.capacity[need as usize].get(set as usize).copied().unwrap_or(UNKNOWN);
        match if known == UNKNOWN { self.compute_capacity(need, set) } else { known } {
            WRONG_KIND => DeviceFit::WrongKind,
            pods => DeviceFit::Pods(pods),
        }
    }

    fn has_kind(&self, need: &DeviceNeed, cells: &[u32]) -> bool {
        let kind_of = |cell: &u32| self.kinds.get(self.cells.get(*cell).kind);
        cells.iter().map(kind_of).any(|kind| need.accepts_kind(kind))
    }

    #[cold]
    fn compute_capacity(&mut self, need: u32, set: u32) -> u16 {
        let (wanted, cells) = (self.needs.get(need).clone(), self.sets.get(set).clone());
        let count = match wanted.request {
            InternedRequest::None => UNBOUNDED,
            _ if !self.has_kind(&wanted, &cells) => WRONG_KIND,
            _ => self.count_by_placing(&wanted, cells),
        };
        let table = &mut self.capacity[need as usize];
        if table.len() <= set as usize {
            table.resize(self.sets.count().max(set as usize + 1), UNKNOWN);
        }
        table[set as usize] = count;
        count
    }

    /// Places pods of the need until one fails, with the device choice that placement itself uses.
    fn count_by_placing(&mut self, need: &DeviceNeed, mut cells: CellSet) -> u16 {
        let mut count = 0;
        while count < UNBOUNDED {
            let Some(chosen) = choice::choose(need, &cells, self) else { break };
            for (index, amount) in &chosen {
                let place = usize::from(*index);
                cells[place] = self.cell_after_hold(cells[place], amount);
            }
            count += 1;
        }
        count
    }

    /// The cell after one more share of the need was taken; `None` if it does not fit there.
    #[inline]
    pub fn cell_after_share(&mut self, need: u32, cell: u32) -> Option<u32> {
        let after = match self.shares.get(&(need, cell)) {
            Some(after) => *after,
            None => self.compute_share(need, cell),
        };
        (after != NO_CELL).then_some(after)
    }

    #[cold]
    fn compute_share(&mut self, need: u32, cell: u32) -> u32 {
        let wanted = self.needs.get(need);
        let state = self.cells.get(cell);
        let kind = self.kinds.get(state.kind);
        let after = match wanted.accepts_kind(kind) && wanted.fits_cell(state, kind) {
            true => {
                let amount = wanted.amount(kind);
                self.cell_after_hold(cell, &amount)
            }
            false => NO_CELL,
        };
        self.shares.insert((need, cell), after);
        after
    }

    /// Interned model of the device that this cell is a state of.
    pub fn model_of(&self, cell: u32) -> u32 {
        self.kinds.get(self.cells.get(cell).kind).model
    }

    /// The devices that can be held whole or by share, equal ones together.
    pub fn alike(&self, set: u32) -> SmallVec<[Alike; 8]> {
        let mut groups: SmallVec<[Alike; 8]> = SmallVec::new();
        for number in self.sets.get(set) {
            let cell = self.cells.get(*number);
            if !matches!(cell.mode, Mode::Empty | Mode::Shared) {
                continue;
            }
            let (model, left_milli) =
                (self.kinds.get(cell.kind).model, cell.compute_left_milli.max(0));
            match groups.last_mut().filter(|g| (g.model, g.left_milli) == (model, left_milli)) {
                Some(group) => group.count += 1,
                None => groups.push(Alike { model, left_milli, count: 1 }),
            }
        }
        groups
    }

    /// The number of a cell after one more holding.
    pub fn cell_after_hold(&mut self, cell: u32, amount: &DeviceAmount) -> u32 {
        let next = self.cells.get(cell).hold(amount);
        self.intern_cell(&next)
    }

    fn compute_facts(&self, cells: &CellSet) -> SetFacts {
        let mut facts = SetFacts { devices: cells.len() as u16, ..SetFacts::default() };
        for number in cells {
            let cell = self.cells.get(*number);
            if matches!(cell.mode, Mode::Empty | Mode::Shared) {
                facts.gpu_left_milli += cell.compute_left_milli.max(0);
            }
            facts.empty += u16::from(cell.mode == Mode::Empty);
            facts.overcommitted |= cell.is_overcommitted();
        }
        facts
    }
}

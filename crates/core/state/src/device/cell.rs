//! The state of one device, as a small vector of free amounts.

use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{Device, DeviceAmount, MigTable, Mode};
use smallvec::SmallVec;

/// What a device is, apart from what is held on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceKind {
    /// Interned model name.
    pub model: u32,
    pub memory_bytes: i64,
    pub island: u16,
    /// Position in the engine's list of MIG tables.
    pub mig_table: Option<u16>,
    pub replicas: u16,
    /// Interned counter names with totals.
    pub counters: SmallVec<[(u32, i64); 2]>,
    /// The kubelet chooses: indices mean nothing.
    pub counted: bool,
}

/// A device with its free amounts. Free amounts may be negative where others over-committed it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceCell {
    /// Interned [`DeviceKind`].
    pub kind: u32,
    pub mode: Mode,
    pub compute_left_milli: i64,
    pub memory_left_bytes: i64,
    pub replicas_left: i32,
    /// Taken memory slices.
    pub slice_mask: u16,
    pub compute_slices_left: i16,
    pub counters_left: SmallVec<[i64; 2]>,
}

impl DeviceCell {
    /// An untouched device.
    pub fn empty(kind_number: u32, kind: &DeviceKind, tables: &[MigTable]) -> Self {
        let slices = kind.mig_table.map_or(0, |t| tables[usize::from(t)].compute_slices);
        Self {
            kind: kind_number,
            mode: Mode::Empty,
            compute_left_milli: WHOLE_DEVICE_MILLI,
            memory_left_bytes: kind.memory_bytes,
            replicas_left: i32::from(kind.replicas),
            slice_mask: 0,
            compute_slices_left: i16::from(slices),
            counters_left: kind.counters.iter().map(|(_, total)| *total).collect(),
        }
    }

    /// The cell after one more holding. Takes anything, also what does not fit: what came from
    /// outside is a fact, and [`crate::device::need`] judges what may be added.
    pub fn hold(&self, amount: &DeviceAmount) -> Self {
        let mut next = self.applied(amount, 1);
        if next.mode == Mode::Empty {
            next.mode = amount.mode;
        }
        next
    }

    /// Whether the amount fits without taking anything twice.
    pub fn can_give(&self, amount: &DeviceAmount) -> bool {
        let after = self.hold(amount);
        (self.mode == Mode::Empty || self.mode == amount.mode)
            && self.slice_mask & amount.slice_mask == 0
            && !after.is_overcommitted()
    }

    /// Whether more is held than the device has.
    pub fn is_overcommitted(&self) -> bool {
        self.compute_left_milli < 0
            || self.memory_left_bytes < 0
            || self.replicas_left < 0
            || self.compute_slices_left < 0
            || self.counters_left.iter().any(|left| *left < 0)
    }

    /// The cell after a holding left that was not the last one (then the device is empty again).
    pub fn release(&self, amount: &DeviceAmount) -> Self {
        self.applied(amount, -1)
    }

    fn applied(&self, amount: &DeviceAmount, sign: i64) -> Self {
        let mut next = self.clone();
        next.compute_left_milli -= sign * amount.compute_milli;
        next.memory_left_bytes -= sign * amount.memory_bytes;
        next.replicas_left -= sign as i32 * i32::from(amount.replicas);
        next.compute_slices_left -= sign as i16 * i16::from(amount.compute_slices);
        if sign > 0 {
            next.slice_mask |= amount.slice_mask;
        } else {
            next.slice_mask &= !amount.slice_mask;
        }
        for (left, held) in next.counters_left.iter_mut().zip(&amount.counters) {
            *left -= sign * held;
        }
        next
    }
}

/// The kind of a device, with the numbers that its model, table and counters have.
pub fn kind_of(
    device: &Device,
    model: u32,
    mig_table: Option<u16>,
    counter_number: impl Fn(&str) -> u32,
    counted: bool,
) -> DeviceKind {
    DeviceKind {
        model,
        memory_bytes: device.memory_bytes,
        island: device.island,
        mig_table,
        replicas: device.replicas,
        counters: device.counters.iter().map(|(n, total)| (counter_number(n), *total)).collect(),
        counted,
    }
}

/// Adds an amount to the first cell that can give it.
pub fn give(cells: &mut [Option<DeviceCell>], amount: &DeviceAmount) -> Option<u16> {
    (0..cells.len() as u16).find(|place| add(cells, *place, amount))
}

/// Adds an amount to a cell if the cell can give it.
pub fn add(cells: &mut [Option<DeviceCell>], index: u16, amount: &DeviceAmount) -> bool {
    let Some(Some(cell)) = cells.get_mut(usize::from(index)) else { return false };
    let can = cell.can_give(amount);
    if can {
        *cell = cell.hold(amount);
    }
    can
}

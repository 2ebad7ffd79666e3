//! Which devices of a node a pod gets.
//!
//! Whole devices: the lowest free indices, in the order of kinds where a node has several; with
//! `same_island`, from the island that has the fewest free devices that suffice. A share: the
//! device with the least room that suffices (policies may choose otherwise, see
//! `Policy::devices`). Replicas and counters: a device already used so, with
//! the least room, else an empty one. Slices: the start that breaks the fewest other slices. Ties
//! go to the first kind, then to the lowest index: what is left of a node depends on its devices,
//! not on their order, and a score of the devices alone foresees it.

use std::collections::BTreeMap;

use dovetail_model::{HeldDevices, Mode};
use smallvec::SmallVec;

use crate::device::cell::DeviceCell;
use crate::device::need::{DeviceNeed, InternedRequest};
use crate::device::slices;
use crate::device::table::DeviceTable;

/// Marks a position whose device is lost: it is in no set and is never chosen.
pub const LOST: u32 = u32::MAX;

/// Devices for one pod among the cells of a node, by position; `None` if they do not suffice.
pub fn choose(need: &DeviceNeed, cells: &[u32], table: &DeviceTable) -> Option<HeldDevices> {
    match &need.request {
        InternedRequest::None => Some(HeldDevices::new()),
        InternedRequest::Whole { count, same_island: false } => whole(need, *count, cells, table),
        InternedRequest::Whole { count, same_island: true } => {
            whole_in_island(need, *count, cells, table)
        }
        InternedRequest::Slice { profile } => slice(need, profile, cells, table),
        _ => partial(need, cells, table),
    }
}

fn usable<'a>(
    need: &'a DeviceNeed,
    cells: &'a [u32],
    table: &'a DeviceTable,
) -> impl Iterator<Item = (u16, &'a DeviceCell)> {
    cells.iter().enumerate().filter(|(_, number)| **number != LOST).filter_map(|(index, number)| {
        let cell = table.cell(*number);
        need.accepts_kind(table.kind(cell.kind)).then_some((index as u16, cell))
    })
}

fn whole(need: &DeviceNeed, count: u16, cells: &[u32], table: &DeviceTable) -> Option<HeldDevices> {
    let free = usable(need, cells, table).filter(|(_, cell)| cell.mode == Mode::Empty);
    first_kinds(need, count, free.map(|(index, cell)| (index, cell.kind)).collect(), table)
}

/// So many of the free devices, the first kinds first; `None` if there are fewer.
fn first_kinds(
    need: &DeviceNeed,
    count: u16,
    mut free: SmallVec<[(u16, u32); 8]>,
    table: &DeviceTable,
) -> Option<HeldDevices> {
    let count = usize::from(count);
    if free.len() < count {
        return None;
    }
    if free.iter().any(|(_, kind)| *kind != free[0].1) {
        free.sort_by_key(|(index, kind)| (table.kind_rank(*kind), *index));
        free[..count].sort_unstable();
    }
    let chosen = free.into_iter().take(count);
    Some(chosen.map(|(index, kind)| (index, need.amount(table.kind(kind)))).collect())
}

/// On a node with counted devices the kubelet may choose any free device: one island is certain
/// only where the node has one, or for a single device.
fn whole_in_island(
    need: &DeviceNeed,
    count: u16,
    cells: &[u32],
    table: &DeviceTable,
) -> Option<HeldDevices> {
    let mut islands: BTreeMap<u16, SmallVec<[(u16, u32); 8]>> = BTreeMap::new();
    let mut counted = false;
    for (index, cell) in usable(need, cells, table) {
        let kind = table.kind(cell.kind);
        counted |= kind.counted;
        let free = islands.entry(kind.island).or_default();
        if cell.mode == Mode::Empty {
            free.push((index, cell.kind));
        }
    }
    if counted && islands.len() > 1 && count > 1 {
        return None;
    }
    islands
        .into_iter()
        .filter(|(_, free)| free.len() >= usize::from(count))
        .min_by_key(|(island, free)| (free.len(), *island))
        .and_then(|(_, free)| first_kinds(need, count, free, table))
}

fn slice(
    need: &DeviceNeed,
    profile: &str,
    cells: &[u32],
    table: &DeviceTable,
) -> Option<HeldDevices> {
    usable(need, cells, table)
        .filter_map(|(index, cell)| {
            let kind = table.kind(cell.kind);
            let (cost, amount) =
                slices::best_slice(profile, cell, kind, &table.mig_tables, slices::alike)?;
            let rank = table.kind_rank(cell.kind);
            Some(((cell.mode == Mode::Empty, cost, rank, index), amount))
        })
        .min_by_key(|(key, _)| *key)
        .map(|((_, _, _, index), amount)| vec![(index, amount)])
}

fn partial(need: &DeviceNeed, cells: &[u32], table: &DeviceTable) -> Option<HeldDevices> {
    usable(need, cells, table)
        .filter(|(_, cell)| need.fits_cell(cell, table.kind(cell.kind)))
        .min_by_key(|(index, cell)| {
            let replicated = matches!(need.request, InternedRequest::Replicas { .. });
            let counters: i64 = cell.counters_left.iter().sum();
            let left = if replicated { i64::from(cell.replicas_left) } else { counters };
            let rank = table.kind_rank(cell.kind);
            match need.request {
                InternedRequest::Share { .. } => (false, cell.compute_left_milli, rank, *index),
                _ => (cell.mode == Mode::Empty, left, rank, *index),
            }
        })
        .map(|(index, cell)| vec![(index, need.amount(table.kind(cell.kind)))])
}

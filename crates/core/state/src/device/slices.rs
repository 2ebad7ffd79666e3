//! MIG: where a slice may start, and which start breaks the fewest other slices.
//!
//! The state of a cut device is its mask of taken memory slices and its free compute slices. Among
//! the legal starts of all devices, the one is chosen that loses the least room: Σ over profiles of
//! weight × compute slices × how many would still fit (the fragmentation growth of arXiv
//! 2511.18906, where all profiles weigh the same). Policies that learn bring weights of their own
//! (`slice_room`).

use dovetail_model::{DeviceAmount, MigProfile, MigTable, Mode};

use crate::device::cell::{DeviceCell, DeviceKind};

/// The media engines, of which a device has one set: a bit beyond those of its memory slices, of
/// which it has at most 15.
const MEDIA: u16 = 1 << 15;

/// What an instance takes of a device: its memory slices, and the media engines if it has them.
fn taken_at(profile: &MigProfile, start: u8) -> u16 {
    profile.mask_at(start) | if profile.has_media() { MEDIA } else { 0 }
}

/// All profiles weigh the same.
pub fn alike(_: &MigProfile) -> i64 {
    1
}

/// A slice on a device in this state that keeps the most room, with the room it costs.
pub fn best_slice(
    profile: &str,
    cell: &DeviceCell,
    kind: &DeviceKind,
    tables: &[MigTable],
    weight: impl Fn(&MigProfile) -> i64,
) -> Option<(i64, DeviceAmount)> {
    if !matches!(cell.mode, Mode::Empty | Mode::Sliced) {
        return None;
    }
    let table = &tables[usize::from(kind.mig_table?)];
    let profile = table.profiles.iter().find(|p| p.name == profile)?;
    if cell.compute_slices_left < i16::from(profile.compute_slices) {
        return None;
    }
    let before = room(table, cell.slice_mask, cell.compute_slices_left, &weight);
    let free_starts =
        profile.starts.iter().filter(|s| cell.slice_mask & taken_at(profile, **s) == 0);
    free_starts
        .map(|start| {
            let mask = taken_at(profile, *start);
            let left = cell.compute_slices_left - i16::from(profile.compute_slices);
            let cost = before - room(table, cell.slice_mask | mask, left, &weight);
            (cost, *start, amount(profile, mask))
        })
        .min_by_key(|(cost, start, _)| (*cost, *start))
        .map(|(cost, _, amount)| (cost, amount))
}

fn amount(profile: &MigProfile, mask: u16) -> DeviceAmount {
    DeviceAmount {
        mode: Mode::Sliced,
        slice_mask: mask,
        compute_slices: profile.compute_slices,
        ..DeviceAmount::default()
    }
}

/// Σ over profiles of weight × compute slices × how many fit one after another from the lowest
/// start. The media engines are left out: room is about slices.
fn room(
    table: &MigTable,
    mask: u16,
    compute_left: i16,
    weight: impl Fn(&MigProfile) -> i64,
) -> i64 {
    let fitting = |profile: &MigProfile| {
        let by_compute = compute_left.max(0) / i16::from(profile.compute_slices.max(1));
        let mut taken = mask;
        let mut count = 0;
        for start in &profile.starts {
            let slice = profile.mask_at(*start);
            if taken & slice == 0 && count < by_compute {
                taken |= slice;
                count += 1;
            }
        }
        i64::from(count)
    };
    table.profiles.iter().map(|p| weight(p) * i64::from(p.compute_slices) * fitting(p)).sum()
}

//! How much there was of something, moment by moment.

use std::collections::{BTreeMap, BTreeSet};

/// An amount for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AmountPeriod {
    pub(super) from_ms: u64,
    pub(super) to_ms: u64,
    pub(super) gpu_milli: i64,
}

/// Pieces in ascending time that do not overlap; two that touch differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Timeline {
    pub(super) pieces: Vec<AmountPeriod>,
}

/// A time in which a pod had the same amounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConstantPeriod {
    pub(super) from_ms: u64,
    pub(super) to_ms: u64,
    /// What it had of each device, ascending.
    pub(super) parts: Vec<i64>,
    /// All devices that it had in this time.
    pub(super) devices: BTreeSet<u32>,
}

impl Timeline {
    /// Adds later pieces, whose amounts add up where they overlap.
    pub(super) fn add_up(&mut self, pieces: &[AmountPeriod]) {
        let mut changes: BTreeMap<u64, i64> = BTreeMap::new();
        for piece in pieces.iter().filter(|piece| piece.from_ms < piece.to_ms) {
            *changes.entry(piece.from_ms).or_default() += piece.gpu_milli;
            *changes.entry(piece.to_ms).or_default() -= piece.gpu_milli;
        }
        let (mut gpu_milli, mut from_ms) = (0, 0);
        for (at_ms, change) in changes {
            if gpu_milli > 0 {
                self.push(AmountPeriod { from_ms, to_ms: at_ms, gpu_milli });
            }
            (gpu_milli, from_ms) = (gpu_milli + change, at_ms);
        }
    }

    /// Adds later pieces, of which only the time counts.
    pub(super) fn see(&mut self, pieces: &[AmountPeriod]) {
        let mut times: Vec<(u64, u64)> =
            pieces.iter().map(|piece| (piece.from_ms, piece.to_ms)).collect();
        times.sort_unstable();
        for (from_ms, to_ms) in times {
            let end_ms = self.pieces.last().map_or(0, |last| last.to_ms);
            let from_ms = from_ms.max(end_ms);
            if from_ms < to_ms {
                self.push(AmountPeriod { from_ms, to_ms, gpu_milli: 1 });
            }
        }
    }

    fn push(&mut self, piece: AmountPeriod) {
        match self.pieces.last_mut() {
            Some(last) if last.to_ms == piece.from_ms && last.gpu_milli == piece.gpu_milli => {
                last.to_ms = piece.to_ms;
            }
            _ => self.pieces.push(piece),
        }
    }

    /// Whether there is something right before a moment.
    pub(super) fn has_before(&self, at_ms: u64) -> bool {
        let next = self.pieces.partition_point(|piece| piece.from_ms < at_ms);
        next.checked_sub(1).is_some_and(|place| self.pieces[place].to_ms >= at_ms)
    }

    /// Whether there is something right after a moment.
    pub(super) fn has_after(&self, at_ms: u64) -> bool {
        let place = self.pieces.partition_point(|piece| piece.to_ms <= at_ms);
        self.pieces.get(place).is_some_and(|piece| piece.from_ms <= at_ms)
    }
}

/// The longest times in which the amounts stay the same, whichever devices they are of.
pub(super) fn runs(devices: &BTreeMap<u32, Timeline>) -> Vec<ConstantPeriod> {
    // What changes at each moment: device, and what there is of it from then on.
    let mut changes: BTreeMap<u64, BTreeMap<u32, i64>> = BTreeMap::new();
    for (device, timeline) in devices {
        for piece in &timeline.pieces {
            changes.entry(piece.to_ms).or_default().entry(*device).or_insert(0);
            changes.entry(piece.from_ms).or_default().insert(*device, piece.gpu_milli);
        }
    }
    let mut now: BTreeMap<u32, i64> = BTreeMap::new();
    let mut runs: Vec<ConstantPeriod> = Vec::new();
    for (at_ms, changed) in changes {
        now.extend(changed);
        now.retain(|_, gpu_milli| *gpu_milli > 0);
        let mut parts: Vec<i64> = now.values().copied().collect();
        parts.sort_unstable();
        let open = runs.last_mut().filter(|run| run.to_ms == u64::MAX);
        if let Some(run) = open {
            if run.parts == parts {
                run.devices.extend(now.keys());
                continue;
            }
            run.to_ms = at_ms;
        }
        if !parts.is_empty() {
            let devices = now.keys().copied().collect();
            runs.push(ConstantPeriod { from_ms: at_ms, to_ms: u64::MAX, parts, devices });
        }
    }
    runs
}

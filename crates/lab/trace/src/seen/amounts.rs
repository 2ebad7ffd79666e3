//! CPU and memory of a pod, from what was kept of them over time.

use std::collections::BTreeMap;

use super::timeline::Timeline;
use crate::limits::{MAX_CPU_MILLI, MAX_MEMORY_BYTES};

/// What was kept for a pod between two moments.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptAmount {
    pub(super) from_ms: u64,
    pub(super) to_ms: u64,
    pub(super) cpu_milli_ms: i128,
    pub(super) memory_byte_ms: i128,
}

/// CPU and memory; 0 where nobody knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PodAmounts {
    pub(super) cpu_milli: i64,
    pub(super) memory_bytes: i64,
}

impl PodAmounts {
    /// The mean over the span in which the pod had its GPUs longest: exact where it had them
    /// throughout.
    pub(super) fn of(kept: &[KeptAmount], devices: &BTreeMap<u32, Timeline>) -> Self {
        let held_ms = |kept: &KeptAmount| {
            let of_device = |timeline: &Timeline| {
                let pieces = timeline.pieces.iter();
                let lengths = pieces.map(|piece| {
                    let from_ms = piece.from_ms.max(kept.from_ms);
                    piece.to_ms.min(kept.to_ms).saturating_sub(from_ms)
                });
                lengths.sum::<u64>()
            };
            devices.values().map(of_device).max().unwrap_or(0)
        };
        let longest = kept.iter().map(|kept| (held_ms(kept), kept));
        // The first of those that are equally long.
        let longest = longest.fold(None, |best: Option<(u64, &KeptAmount)>, next| match best {
            Some(best) if best.0 >= next.0 => Some(best),
            _ => Some(next),
        });
        let Some((held_ms, kept)) = longest.filter(|(held_ms, _)| *held_ms > 0) else {
            return Self::default();
        };
        let mean = |amount_ms: i128, most: i64| {
            let ms = i128::from(held_ms);
            let mean = (amount_ms.max(0) + ms / 2) / ms;
            i64::try_from(mean).unwrap_or(most).min(most)
        };
        Self {
            cpu_milli: mean(kept.cpu_milli_ms, MAX_CPU_MILLI),
            memory_bytes: mean(kept.memory_byte_ms, MAX_MEMORY_BYTES),
        }
    }
}

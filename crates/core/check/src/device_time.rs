//! The conservation law of device-time, judged from a plain list of what each device is said to
//! have been.
//!
//! Nothing is taken from the ledger: the judge knows when each device was there and sees pieces of
//! time. At every moment of the period the pieces of a device must be exactly the device, none may
//! lie outside its time, and what is unavailable is unavailable as a whole.

use std::collections::BTreeMap;

use thiserror::Error;

const DEVICE_MILLI: i64 = 1000;

/// A device and when it was there, in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLife {
    pub device: u32,
    pub from_ms: u64,
    /// End, exclusive.
    pub to_ms: u64,
}

/// A part of a device said to be in one state for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DevicePiece {
    pub device: u32,
    pub from_ms: u64,
    /// End, exclusive.
    pub to_ms: u64,
    /// How much of the device.
    pub gpu_milli: i64,
    pub is_unavailable: bool,
}

/// A broken law of device-time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DeviceTimeViolation {
    /// A piece without length or size.
    #[error("device {device}: a piece at {at_ms} ms has no length or no size")]
    Empty { device: u32, at_ms: u64 },
    /// The pieces are more or less than what is there.
    #[error("device {device}: at {at_ms} ms the pieces are {sum_milli} of {there_milli} milli-GPU")]
    Sum {
        device: u32,
        /// From when on.
        at_ms: u64,
        /// What the pieces add up to.
        sum_milli: i64,
        there_milli: i64,
    },
    /// A part is unavailable and another is not.
    #[error("device {device}: at {at_ms} ms {gpu_milli} milli-GPU are unavailable, not all of it")]
    HalfUnavailable {
        device: u32,
        /// From when on.
        at_ms: u64,
        /// The unavailable part.
        gpu_milli: i64,
    },
}

/// Judges what devices are said to have been from `from_ms` to `to_ms`; all violations, by device
/// and time.
pub fn judge_device_time(
    lives: &[DeviceLife],
    (from_ms, to_ms): (u64, u64),
    pieces: &[DevicePiece],
) -> Vec<DeviceTimeViolation> {
    // By device and moment: what changes of the pieces, of their unavailable part, of what is
    // there.
    let mut changes: BTreeMap<(u32, u64), [i64; 3]> = BTreeMap::new();
    let mut step = |device: u32, at_ms: u64, which: usize, milli: i64| {
        changes.entry((device, at_ms)).or_default()[which] += milli;
    };
    let mut violations = Vec::new();
    for life in lives {
        let (begin_ms, end_ms) = (life.from_ms.max(from_ms), life.to_ms.min(to_ms));
        if begin_ms < end_ms {
            step(life.device, begin_ms, 2, DEVICE_MILLI);
            step(life.device, end_ms, 2, -DEVICE_MILLI);
        }
    }
    for piece in pieces {
        let DevicePiece { device, gpu_milli, .. } = *piece;
        if piece.from_ms >= piece.to_ms || gpu_milli <= 0 {
            violations.push(DeviceTimeViolation::Empty { device, at_ms: piece.from_ms });
            continue;
        }
        for which in [Some(0), piece.is_unavailable.then_some(1)].into_iter().flatten() {
            step(device, piece.from_ms, which, gpu_milli);
            step(device, piece.to_ms, which, -gpu_milli);
        }
    }
    let (mut of, mut levels) = (None, [0; 3]);
    for ((device, at_ms), change) in changes {
        if of != Some(device) {
            (of, levels) = (Some(device), [0; 3]);
        }
        levels.iter_mut().zip(change).for_each(|(level, change)| *level += change);
        let [sum_milli, unavailable_milli, there_milli] = levels;
        if sum_milli != there_milli {
            violations.push(DeviceTimeViolation::Sum { device, at_ms, sum_milli, there_milli });
        }
        if unavailable_milli != 0 && unavailable_milli != sum_milli {
            let gpu_milli = unavailable_milli;
            violations.push(DeviceTimeViolation::HalfUnavailable { device, at_ms, gpu_milli });
        }
    }
    violations
}

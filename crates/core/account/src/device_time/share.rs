//! How much of a device a holder has.

use dovetail_model::device::WHOLE_DEVICE_MILLI;

use dovetail_model::in_proportion;

/// A part of a device, by what the device is cut into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Share {
    Whole,
    /// A MIG slice: compute slices over those of the device (7 on today's).
    MigSlices {
        slices: u32,
        /// Compute slices of the device.
        of: u32,
    },
    /// Replicas of time-slicing or MPS.
    Replicas {
        held: u32,
        /// Replicas the device offers.
        of: u32,
    },
    /// A fraction of the compute (HAMi and the like).
    Fraction {
        /// Thousandths of the device.
        compute_milli: u32,
    },
    /// A DRA share: held and offered amount of each counter; the largest share counts.
    Counters(
        /// Held and offered, by counter.
        Vec<(u64, u64)>,
    ),
}

/// Units of a whole device: every part into 2 to 10, 12, 14, 15, 16, 18, 20, 24, 32, 48 or 64 is
/// whole.
const WHOLE_UNITS: i128 = 5_040_000_000;

impl Share {
    /// Its weight in units; `None` for a part of nothing.
    pub(crate) fn units(&self) -> Option<i128> {
        let part =
            |held: u64, of: u64| (of > 0).then(|| i128::from(held) * WHOLE_UNITS / i128::from(of));
        match self {
            Self::Whole => Some(WHOLE_UNITS),
            Self::MigSlices { slices, of } => part(u64::from(*slices), u64::from(*of)),
            Self::Replicas { held, of } => part(u64::from(*held), u64::from(*of)),
            Self::Fraction { compute_milli } => part(u64::from(*compute_milli), 1000),
            Self::Counters(counters) => {
                let parts: Option<Vec<i128>> =
                    counters.iter().map(|(held, of)| part(*held, *of)).collect();
                parts?.into_iter().max()
            }
        }
    }
}

/// Milli-GPU of each holder, and free. Holders that have more than the device together share all of
/// it.
pub(crate) fn parts_milli(held_units: &[i128]) -> (Vec<i64>, i64) {
    let held: i128 = held_units.iter().sum();
    let whole_milli = i128::from(WHOLE_DEVICE_MILLI);
    let free_milli = (WHOLE_UNITS - held).max(0) * whole_milli / WHOLE_UNITS;
    let held_milli = if held > 0 { whole_milli - free_milli } else { 0 };
    let parts = in_proportion(held_milli, held_units);
    // What weighs nothing leaves the device free.
    let free_milli = if held > 0 { free_milli } else { whole_milli };
    (parts.into_iter().map(|part| part as i64).collect(), free_milli as i64)
}

//! What a pod needs of one node's devices, and whether a device can give it.

use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{DeviceAmount, Mode};
use smallvec::SmallVec;

use crate::device::cell::{DeviceCell, DeviceKind};

/// The device part of a shape, with names interned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeviceNeed {
    pub request: InternedRequest,
    /// Interned model names, ascending; empty is any.
    pub models: SmallVec<[u32; 4]>,
    pub min_memory_bytes: i64,
}

/// [`dovetail_model::DeviceRequest`] with names interned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum InternedRequest {
    None,
    Whole {
        count: u16,
        same_island: bool,
    },
    Share {
        compute_milli: i64,
        memory_bytes: i64,
    },
    Replicas {
        count: u16,
    },
    /// Profile name; profiles of one name may differ between tables.
    Slice {
        profile: String,
    },
    /// Interned counter name and amount.
    Counters {
        amounts: SmallVec<[(u32, i64); 2]>,
    },
}

impl DeviceNeed {
    /// Whether the device is of a kind this need may use at all.
    pub fn accepts_kind(&self, kind: &DeviceKind) -> bool {
        (self.models.is_empty() || self.models.binary_search(&kind.model).is_ok())
            && kind.memory_bytes >= self.min_memory_bytes
    }

    /// Whether a device in this state can give the part of the need that one device gives.
    /// Slices are judged by [`crate::device::slices`].
    pub fn fits_cell(&self, cell: &DeviceCell, kind: &DeviceKind) -> bool {
        match &self.request {
            InternedRequest::None | InternedRequest::Slice { .. } => false,
            InternedRequest::Whole { .. } => cell.mode == Mode::Empty,
            InternedRequest::Share { compute_milli, memory_bytes } => {
                matches!(cell.mode, Mode::Empty | Mode::Shared)
                    && cell.compute_left_milli >= *compute_milli
                    && cell.memory_left_bytes >= *memory_bytes
            }
            InternedRequest::Replicas { count } => {
                matches!(cell.mode, Mode::Empty | Mode::Replicated)
                    && cell.replicas_left >= i32::from(*count)
            }
            InternedRequest::Counters { amounts } => {
                matches!(cell.mode, Mode::Empty | Mode::Counted)
                    && amounts.iter().all(|(name, amount)| {
                        kind.counters
                            .iter()
                            .zip(&cell.counters_left)
                            .any(|((have, _), left)| have == name && left >= amount)
                    })
            }
        }
    }

    /// The amount one device gives; slices come from [`crate::device::slices`].
    pub fn amount(&self, kind: &DeviceKind) -> DeviceAmount {
        match &self.request {
            InternedRequest::None | InternedRequest::Slice { .. } => DeviceAmount::default(),
            InternedRequest::Whole { .. } => {
                DeviceAmount::share(WHOLE_DEVICE_MILLI, kind.memory_bytes)
            }
            InternedRequest::Share { compute_milli, memory_bytes } => {
                DeviceAmount::share(*compute_milli, *memory_bytes)
            }
            InternedRequest::Replicas { count } => {
                DeviceAmount { mode: Mode::Replicated, replicas: *count, ..DeviceAmount::default() }
            }
            InternedRequest::Counters { amounts } => DeviceAmount {
                mode: Mode::Counted,
                counters: kind
                    .counters
                    .iter()
                    .map(|(have, _)| {
                        amounts.iter().find(|(name, _)| name == have).map_or(0, |(_, a)| *a)
                    })
                    .collect(),
                ..DeviceAmount::default()
            },
        }
    }

    /// Milli-GPU one such pod takes, 0 where the need is not counted in milli.
    pub fn gpu_milli(&self) -> i64 {
        match self.request {
            InternedRequest::Whole { count, .. } => i64::from(count) * WHOLE_DEVICE_MILLI,
            InternedRequest::Share { compute_milli, .. } => compute_milli,
            _ => 0,
        }
    }
}

//! Whether a device was active: which signal is believed, and when none is.
//!
//! [`Signal`] lists what exporters publish, as data, best first. [`judge`] looks at all readings of
//! one device at one moment and answers active, idle or unknown with the signal it rests on; the
//! signal is part of every number. Missing and contradictory readings give *unknown*, never idle.
//! [`activity_over`] turns moments into segments of time.

pub mod dcgm;
mod decision;
mod kind;
mod mixed;
mod reading;
mod segment;
#[cfg(test)]
mod tests;

pub use decision::{Activity, ActivityRule, ActivityVerdict, DeviceMoment, UnknownReason, judge};
pub use kind::{Scale, Signal, mig_compute_slices};
pub use mixed::{ActiveShare, Mixed, Peaks, mixed};
pub use reading::{ReadingProblem, micro_percent};
pub use segment::{ActivitySegment, activity_over};

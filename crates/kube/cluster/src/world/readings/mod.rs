//! Readings: what follows from the facts, in the words of the engine. None changes them.

pub(crate) mod decided;
pub(crate) mod device_claims;
pub(crate) mod device_copies;
pub(crate) mod device_kinds;
mod device_mix;
pub(crate) mod extended;
pub(crate) mod gang;
pub(crate) mod requirements;
pub(crate) mod roll;
pub(crate) mod standing;

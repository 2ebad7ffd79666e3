//! What a ledger on disk holds, without the disk: device-time by the hour, read again and again,
//! and its money under every split method.
//!
//! A source is read window by window, and windows overlap, repeat, come late and leave gaps. Three
//! rules make a second count once whatever happens:
//!
//! - Of one moment of one device the last reading counts ([`overlay`]), and only where it saw the
//!   device.
//! - An hour of a node is added up anew from its devices whenever one of them changes
//!   ([`roll_up`]); nothing is added to a sum that was stored before.
//! - What was read is a set of spans ([`Coverage`]), not a high-water mark: a gap is known as one,
//!   and can be filled later.
//!
//! Exporters do not say why what is free is free; objects do, now and then. What they said of a
//! node is kept beside its devices ([`FreeLook`]), and laid over them whenever they are read
//! ([`with_causes`]).

mod coverage;
mod free_looks;
mod node_hour;
mod overlay;
#[cfg(test)]
mod tests;

pub use coverage::{Coverage, DAY_MS, HOUR_MS, hours};
pub use free_looks::{FreeLook, looks_over, with_causes};
pub use node_hour::{ByMethod, NodeTerms, RolledUp, roll_up};
pub use overlay::overlay;

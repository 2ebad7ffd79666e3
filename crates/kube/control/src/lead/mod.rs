//! Who may write: leader election on a Lease.
//!
//! [`Candidate`] decides, as a pure state machine. Whoever writes has a [`Permit`] from right before, and ends each
//! write by its deadline.

mod candidate;
mod terms;
#[cfg(test)]
mod world;

pub use candidate::{Candidate, Lease, Phase, Record, Step};
pub use terms::{Terms, TermsError};

/// Leave to begin one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// Counts leaderships; goes with every write.
    pub epoch: u64,
    /// Time on the holder's own clock at which the write must be over.
    pub deadline_ms: u64,
}

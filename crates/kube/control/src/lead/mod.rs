//! Who may write: leader election on a Lease.
//!
//! [`Candidate`] decides, as a pure state machine. Whoever writes has a [`Permit`] from right
//! before, and ends each write by its deadline.

mod candidate;
mod requests;
mod times;
mod trouble;
#[cfg(test)]
mod world;

pub use candidate::{Candidate, ElectionPhase, ElectionStep, Lease, LeaseRecord};
pub use requests::LeaseAnswer;
pub use times::{LeaseTimes, TermsError};
pub use trouble::Trouble;

use crate::learned::ConfigMapName;

/// Where the lease is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseName {
    pub namespace: String,
    pub name: String,
}

impl LeaseName {
    /// Where its holder keeps what it learns.
    pub fn learned(&self) -> ConfigMapName {
        let (namespace, name) = (self.namespace.clone(), format!("{}-learned", self.name));
        ConfigMapName { namespace, name }
    }
}

/// Leave to begin one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// Counts leaderships; goes with every write.
    pub epoch: u64,
    /// Time on the holder's own clock at which the write must be over.
    pub deadline_ms: u64,
}

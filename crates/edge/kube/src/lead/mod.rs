//! Who may write: leader election on a Lease.
//!
//! [`Candidate`] decides, as a pure state machine; [`Keeper`] drives it against a server. Whoever
//! writes asks [`Leadership`] right before, and ends each write by the permit's deadline.
//!
//! The crate `kube-lease-manager` was looked at first. It compares the other holder's wall clock with
//! its own, tells only whether it leads and not until when, and counts no epochs for its user; so it
//! cannot give what [`candidate`](Candidate) promises.

mod candidate;
mod clock;
mod keeper;
mod lease;
mod terms;
mod trouble;
#[cfg(test)]
mod world;

pub use candidate::{Candidate, Lease, Phase, Record, Step};
pub use clock::Clock;
pub use keeper::{Keeper, LeaseName};
pub use terms::{Terms, TermsError};

/// Leave to begin one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// Counts leaderships; goes with every write.
    pub epoch: u64,
    /// Time on the holder's [`Clock`] at which the write must be over.
    pub deadline_ms: u64,
}

/// Says whether this process may write now.
pub trait Leadership: Send + Sync {
    /// Leave to begin a write at this very moment, or none.
    fn permit(&self) -> Option<Permit>;

    /// The clock of [`Permit::deadline_ms`].
    fn clock(&self) -> &Clock;
}

/// Leadership without election: for a process that is the only one by other means.
#[derive(Debug)]
pub struct Alone {
    clock: Clock,
    write_timeout_ms: u64,
}

impl Alone {
    /// Every write may take this long.
    pub fn new(clock: Clock, write_timeout_ms: u64) -> Self {
        Self { clock, write_timeout_ms }
    }
}

impl Leadership for Alone {
    fn permit(&self) -> Option<Permit> {
        let deadline_ms = self.clock.now_ms().saturating_add(self.write_timeout_ms);
        Some(Permit { epoch: 0, deadline_ms })
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }
}

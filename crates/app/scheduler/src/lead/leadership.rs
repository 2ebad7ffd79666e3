//! Whether this process may write now.

use dovetail_control::lead::Permit;

use super::Clock;

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

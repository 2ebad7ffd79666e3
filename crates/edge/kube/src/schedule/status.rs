//! Where a process stands, for probes.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// A process that decides and has not come round for so long hangs.
const ROUND_WITHIN: Duration = Duration::from_secs(60);

/// Where a process stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has not reached the server yet.
    Starting,
    /// Another process leads; this one is ready to take over.
    StandingBy,
    /// It leads, or decides without election, and reads the first lists.
    Listing,
    /// It decides.
    Deciding,
    /// It was asked to stop.
    Stopping,
}

/// Shared between the one who knows and those who ask.
#[derive(Debug)]
pub struct Status {
    inner: Mutex<(Standing, Instant)>,
}

impl Default for Status {
    fn default() -> Self {
        Self { inner: Mutex::new((Standing::Starting, Instant::now())) }
    }
}

impl Status {
    /// Where the process stands.
    pub fn standing(&self) -> Standing {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Whether it does what it is there for, or stands by to do it.
    pub fn is_ready(&self) -> bool {
        matches!(self.standing(), Standing::StandingBy | Standing::Deciding)
    }

    /// False when it should be restarted: it decides, and its loop has not come round for long.
    pub fn is_alive(&self) -> bool {
        let (standing, round) = *self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        standing != Standing::Deciding || round.elapsed() < ROUND_WITHIN
    }

    /// Notes where it stands, and that its loop has come round.
    pub(super) fn set(&self, standing: Standing) {
        *self.inner.lock().unwrap_or_else(PoisonError::into_inner) = (standing, Instant::now());
    }
}

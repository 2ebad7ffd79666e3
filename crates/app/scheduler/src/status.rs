//! Where a process stands, for probes.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A process that decides and has not come round for so long hangs.
const ROUND_WITHIN: Duration = Duration::from_secs(60);

/// Where a process stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessPhase {
    /// It has not reached the server yet.
    Starting,
    /// Another process leads; this one is ready to take over.
    StandingBy,
    /// It leads, or decides without election, and reads the first lists.
    Listing,
    Deciding,
    /// It was asked to stop.
    Stopping,
}

/// Shared between the one who knows and those who ask.
#[derive(Debug)]
pub struct Status {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    standing: ProcessPhase,
    /// When its loop came round.
    round: Instant,
    trouble: Option<String>,
}

impl Default for Status {
    fn default() -> Self {
        let (standing, round) = (ProcessPhase::Starting, Instant::now());
        Self { inner: Mutex::new(Inner { standing, round, trouble: None }) }
    }
}

impl Status {
    /// Where the process stands.
    pub fn standing(&self) -> ProcessPhase {
        self.lock().standing
    }

    /// What keeps it from going on, for people.
    pub fn trouble(&self) -> Option<String> {
        self.lock().trouble.clone()
    }

    /// Whether it does what it is there for, or stands by to do it.
    pub fn is_ready(&self) -> bool {
        let inner = self.lock();
        matches!(inner.standing, ProcessPhase::StandingBy | ProcessPhase::Deciding)
            && inner.trouble.is_none()
    }

    /// False when it should be restarted: it decides, and its loop has not come round for long.
    pub fn is_alive(&self) -> bool {
        let inner = self.lock();
        inner.standing != ProcessPhase::Deciding || inner.round.elapsed() < ROUND_WITHIN
    }

    /// Notes where it stands, and that its loop has come round.
    pub(super) fn set(&self, standing: ProcessPhase) {
        self.set_with(standing, None);
    }

    /// As [`Status::set`], with what keeps it from going on.
    pub(super) fn set_with(&self, standing: ProcessPhase, trouble: Option<String>) {
        *self.lock() = Inner { standing, round: Instant::now(), trouble };
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

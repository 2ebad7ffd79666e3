//! The clocks of a process. Its own never jumps and never stops, not even while the machine sleeps;
//! the one on the wall is for people.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A monotonic clock in milliseconds since an arbitrary moment.
#[derive(Clone)]
pub struct Clock {
    source: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl Clock {
    /// The clock of the machine (`CLOCK_BOOTTIME`): unlike `std::time::Instant` it goes on while
    /// the machine is suspended, so that a leader that was asleep knows that its lease is over.
    pub fn machine() -> Self {
        let read = || {
            let time = clock_gettime(ClockId::Boottime);
            // Neither part of a time since boot is negative.
            let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
            let nanos = u64::try_from(time.tv_nsec).unwrap_or_default();
            seconds * 1_000 + nanos / 1_000_000
        };
        Self { source: Arc::new(read) }
    }

    /// A clock that shows what it is told, for tests.
    pub fn told(shown_ms: Arc<AtomicU64>) -> Self {
        Self { source: Arc::new(move || shown_ms.load(Ordering::SeqCst)) }
    }

    /// The present.
    pub fn now_ms(&self) -> u64 {
        (self.source)()
    }

    /// How long it is until a time; zero if it has passed.
    pub fn until(&self, time_ms: u64) -> Duration {
        Duration::from_millis(time_ms.saturating_sub(self.now_ms()))
    }
}

/// The time for people and for the engine: milliseconds since 1970.
pub(crate) fn wall_ms() -> u64 {
    jiff::Timestamp::now().as_millisecond().max(0).cast_unsigned()
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Clock({} ms)", self.now_ms())
    }
}

//! The clock that leases are measured by: it never jumps and never stops, not even while the
//! machine sleeps. The time of day is another one (`dovetail_console::clock`).

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The clock of the machine since it booted (`CLOCK_BOOTTIME`): unlike `std::time::Instant` it
/// goes on while the machine is suspended, so that a leader that was asleep knows that its lease is
/// over.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock;

impl Clock {
    /// The present, in milliseconds.
    pub fn now_ms(&self) -> u64 {
        let time = clock_gettime(ClockId::Boottime);
        // Neither part of a time since boot is negative.
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        let nanos = u64::try_from(time.tv_nsec).unwrap_or_default();
        seconds * 1_000 + nanos / 1_000_000
    }

    /// How long it is until a time; zero if it has passed.
    pub fn until(&self, time_ms: u64) -> Duration {
        Duration::from_millis(time_ms.saturating_sub(self.now_ms()))
    }
}

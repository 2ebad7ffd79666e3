//! Pauses that double with each failure in a row.

/// The pause after so many failures, between the first and the longest, in milliseconds.
pub(crate) fn doubled((first_ms, longest_ms): (u64, u64), times: u32) -> u64 {
    first_ms.saturating_mul(1 << times.min(16)).min(longest_ms)
}

/// The pause of everything that is sent while the server is in trouble.
#[derive(Debug, Default)]
pub(crate) struct ServerPause {
    failures: u32,
    until_ms: u64,
}

impl ServerPause {
    /// The server is in trouble, or asks for a pause. What was on its way together fails together,
    /// which is one failure.
    pub(crate) fn begin(&mut self, range: (u64, u64), now_ms: u64, retry_after_ms: Option<u64>) {
        if now_ms < self.until_ms {
            return;
        }
        let own_ms = doubled(range, self.failures);
        self.failures = self.failures.saturating_add(1);
        let pause_ms = retry_after_ms.map_or(own_ms, |asked_ms| asked_ms.max(own_ms));
        self.until_ms = now_ms.saturating_add(pause_ms);
    }

    /// The server does what it is asked.
    pub(crate) fn answers(&mut self) {
        self.failures = 0;
    }

    /// When something may be sent.
    pub(crate) fn until_ms(&self) -> u64 {
        self.until_ms
    }
}

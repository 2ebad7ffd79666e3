//! Starting the engine again after it and the world disagreed.

use crate::pause::doubled;

/// First and longest pause before an engine is started again. A bug that lasts must not rebuild
/// everything at every round.
const PAUSES_MS: (u64, u64) = (100, 60_000);
/// An engine that has served for so long is no longer suspected.
const TRUSTED_AFTER_MS: u64 = 600_000;

/// When an engine may be started.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    failures: u32,
    failed_ms: u64,
    until_ms: u64,
}

impl Restarts {
    /// An engine had to be given up.
    pub(super) fn failed(&mut self, now_ms: u64) {
        if now_ms >= self.failed_ms.saturating_add(TRUSTED_AFTER_MS) {
            self.failures = 0;
        }
        self.failed_ms = now_ms;
        self.until_ms = now_ms.saturating_add(doubled(PAUSES_MS, self.failures));
        self.failures = self.failures.saturating_add(1);
    }

    /// From when on one may be started.
    pub(super) fn until_ms(&self) -> u64 {
        self.until_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_that_fail_in_a_row_are_started_later_each_time() {
        let mut anew = Restarts::default();
        let mut pause_after = |now_ms: u64| {
            anew.failed(now_ms);
            anew.until_ms() - now_ms
        };
        assert_eq!([1_000, 1_100, 1_300, 1_700].map(&mut pause_after), [100, 200, 400, 800]);
        assert_eq!((0..9).map(|_| pause_after(2_000)).last(), Some(60_000));
        assert_eq!(pause_after(602_000), 100, "it served for ten minutes");
    }
}

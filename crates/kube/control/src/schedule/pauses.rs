//! Pauses after binds that had no effect: of single pods, and of everything that is sent.

use dovetail_cluster::world::PodKey;

use crate::backoffs::Backoffs;
use crate::pause::ServerPause;

/// First and longest pause, in milliseconds; each failure in a row doubles it.
const SERVER_MS: (u64, u64) = (100, 5_000);
const POD_MS: (u64, u64) = (100, 10_000);
/// A pod that the server refuses to bind is refused again until an object or a policy changes.
const REFUSED_MS: (u64, u64) = (1_000, 60_000);
/// How long a pod is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PauseLength {
    /// It may go well the next moment.
    Short,
    /// It fails again unless an object or a policy changes.
    Long,
}

/// Pauses of single pods, and of everything that is sent.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    pub(super) pods: Backoffs<PodKey>,
    server: ServerPause,
}

impl Pauses {
    /// The server is in trouble, or asks for a pause: nothing is sent for a while.
    pub(super) fn pause_server(&mut self, now_ms: u64, retry_after_ms: Option<u64>) {
        self.server.begin(SERVER_MS, now_ms, retry_after_ms);
    }

    /// The server does what it is asked.
    pub(super) fn server_answers(&mut self) {
        self.server.answers();
    }

    /// When something may be sent.
    pub(super) fn server_until_ms(&self) -> u64 {
        self.server.until_ms()
    }

    /// A pod could not start: it is left alone for a while.
    pub(super) fn pause_pod(&mut self, now_ms: u64, pod: &PodKey, pause: PauseLength) {
        let range = match pause {
            PauseLength::Short => POD_MS,
            PauseLength::Long => REFUSED_MS,
        };
        self.pods.fail(pod, range, now_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binds_that_fail_together_lengthen_the_pause_once_and_the_server_may_ask_for_more() {
        let mut pauses = Pauses::default();
        (0..64).for_each(|_| pauses.pause_server(10, None));
        assert_eq!(pauses.server_until_ms(), 110);
        pauses.pause_server(110, Some(2_000));
        assert_eq!(pauses.server_until_ms(), 2_110);
        pauses.server_answers();
        pauses.pause_server(3_000, None);
        assert_eq!(pauses.server_until_ms(), 3_100);
    }
}

//! Who is left alone for how long after something went wrong.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_cluster::world::PodKey;

use crate::pause::{ServerPause, doubled};

/// First and longest pause, in milliseconds; each failure in a row doubles it.
const SERVER_MS: (u64, u64) = (100, 5_000);
const POD_MS: (u64, u64) = (100, 10_000);
/// A pod that the server refuses to bind is refused again until somebody changes something.
const REFUSED_MS: (u64, u64) = (1_000, 60_000);
/// Who cannot be stopped, such as by a policy, stays so for long.
const VICTIM_MS: (u64, u64) = (600_000, 6 * 3_600_000);

/// Failures of pods that are gone are forgotten when there are twice as many as after the last time.
const LEAST_SWEPT: usize = 64;

/// How long a pod is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// It may go well the next moment.
    Short,
    /// It fails again unless somebody does something.
    Long,
    /// It was to be stopped, and the server does not let it go.
    Victim,
}

/// Pauses of single pods, and of everything that is sent.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    /// Failures in a row of pods that have had any.
    failures: BTreeMap<PodKey, u32>,
    left_by_last_sweep: usize,
    due: BTreeSet<(u64, PodKey)>,
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

    /// A pod could not start: it is left alone until the time given back.
    pub(super) fn pause_pod(&mut self, now_ms: u64, pod: &PodKey, pause: Pause) -> u64 {
        let failures = self.failures.entry(pod.clone()).or_default();
        let range = match pause {
            Pause::Short => POD_MS,
            Pause::Long => REFUSED_MS,
            Pause::Victim => VICTIM_MS,
        };
        let until_ms = now_ms.saturating_add(doubled(range, *failures));
        *failures = failures.saturating_add(1);
        self.due.insert((until_ms, pod.clone()));
        until_ms
    }

    /// A pod could not be stopped at that time: it is left alone for as long as then, if that is not over.
    pub(super) fn pause_victim_since(&mut self, now_ms: u64, pod: &PodKey, since_ms: u64) -> bool {
        let until_ms = since_ms.min(now_ms).saturating_add(VICTIM_MS.0);
        if until_ms <= now_ms {
            return false;
        }
        self.failures.entry(pod.clone()).or_insert(1);
        self.due.insert((until_ms, pod.clone()));
        true
    }

    /// Pods that are left alone, and until when.
    pub(super) fn paused(&self) -> impl Iterator<Item = (u64, &PodKey)> {
        self.due.iter().map(|(until_ms, pod)| (*until_ms, pod))
    }

    /// A pod whose pause is over.
    pub(super) fn pop_due(&mut self, now_ms: u64) -> Option<PodKey> {
        self.due.first().filter(|(until_ms, _)| *until_ms <= now_ms)?;
        self.due.pop_first().map(|(_, pod)| pod)
    }

    /// Forgets pods that are gone, now and then.
    pub(super) fn sweep(&mut self, is_there: impl Fn(&PodKey) -> bool) {
        if self.failures.len() < 2 * self.left_by_last_sweep.max(LEAST_SWEPT) {
            return;
        }
        self.failures.retain(|pod, _| is_there(pod));
        self.due.retain(|(_, pod)| is_there(pod));
        self.left_by_last_sweep = self.failures.len();
    }

    /// When the first pause of a pod is over.
    pub(super) fn next_due_ms(&self) -> Option<u64> {
        self.due.first().map(|(until_ms, _)| *until_ms)
    }

    /// A pod is bound.
    pub(super) fn forget(&mut self, pod: &PodKey) {
        if self.failures.remove(pod).is_some() {
            self.due.retain(|(_, paused)| paused != pod);
        }
    }

    /// Whether no pod has failed.
    pub(super) fn is_empty(&self) -> bool {
        self.failures.is_empty()
    }

    /// How many pods are left alone now.
    pub(super) fn paused_pods(&self) -> usize {
        self.due.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_end() {
        let mut pauses = Pauses::default();
        let pod = PodKey { namespace: "n".into(), name: "p".into(), uid: "u".into() };
        let lengths: Vec<u64> = (0..9).map(|_| pauses.pause_pod(0, &pod, Pause::Short)).collect();
        assert_eq!(lengths, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
        assert_eq!((pauses.pop_due(99), pauses.pop_due(100)), (None, Some(pod.clone())));
        pauses.forget(&pod);
        assert_eq!((pauses.next_due_ms(), pauses.pause_pod(5, &pod, Pause::Short)), (None, 105));
    }

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

//! Backoffs: what has failed is left alone for a while, for longer after each failure in a row.

use std::collections::{BTreeMap, BTreeSet};

use super::pause::doubled;

/// Failures of keys that are gone are forgotten when there are twice as many as after the last
/// time.
const LEAST_SWEPT: usize = 64;

/// Keys that have failed, and until when each is left alone.
#[derive(Debug)]
pub(crate) struct Backoffs<K> {
    failed: BTreeMap<K, Failed>,
    due: BTreeSet<(u64, K)>,
    left_by_last_sweep: usize,
}

#[derive(Debug, Default)]
struct Failed {
    times: u32,
    /// Until when it is left alone; `None`: not now.
    until_ms: Option<u64>,
}

impl<K> Default for Backoffs<K> {
    fn default() -> Self {
        Self { failed: BTreeMap::new(), due: BTreeSet::new(), left_by_last_sweep: 0 }
    }
}

impl<K: Clone + Ord> Backoffs<K> {
    /// It has failed: it is left alone until the time given back. `range`: first and longest pause,
    /// in milliseconds.
    pub(crate) fn fail(&mut self, key: &K, range: (u64, u64), now_ms: u64) -> u64 {
        let failed = self.failed.entry(key.clone()).or_default();
        let until_ms = now_ms.saturating_add(doubled(range, failed.times));
        failed.times = failed.times.saturating_add(1);
        self.pause(key, until_ms);
        until_ms
    }

    /// It has failed, as others have seen: it is left alone until then.
    pub(crate) fn pause(&mut self, key: &K, until_ms: u64) {
        let failed = self.failed.entry(key.clone()).or_default();
        failed.times = failed.times.max(1);
        if let Some(before_ms) = failed.until_ms.replace(until_ms) {
            self.due.remove(&(before_ms, key.clone()));
        }
        self.due.insert((until_ms, key.clone()));
    }

    /// Until when a key is left alone, if it is.
    pub(crate) fn until_ms(&self, key: &K) -> Option<u64> {
        self.failed.get(key)?.until_ms
    }

    /// Keys that are left alone, and until when.
    pub(crate) fn paused(&self) -> impl Iterator<Item = (u64, &K)> {
        self.due.iter().map(|(until_ms, key)| (*until_ms, key))
    }

    /// A key whose pause is over.
    pub(crate) fn pop_due(&mut self, now_ms: u64) -> Option<K> {
        self.due.first().filter(|(until_ms, _)| *until_ms <= now_ms)?;
        let (_, key) = self.due.pop_first()?;
        if let Some(failed) = self.failed.get_mut(&key) {
            failed.until_ms = None;
        }
        Some(key)
    }

    /// When the first pause is over.
    pub(crate) fn next_due_ms(&self) -> Option<u64> {
        self.due.first().map(|(until_ms, _)| *until_ms)
    }

    /// It has not failed, or its failures count no more.
    pub(crate) fn forget(&mut self, key: &K) {
        if let Some(Failed { until_ms: Some(until_ms), .. }) = self.failed.remove(key) {
            self.due.remove(&(until_ms, key.clone()));
        }
    }

    /// Forgets keys that are gone, now and then.
    pub(crate) fn sweep(&mut self, is_there: impl Fn(&K) -> bool) {
        if self.failed.len() < 2 * self.left_by_last_sweep.max(LEAST_SWEPT) {
            return;
        }
        self.failed.retain(|key, _| is_there(key));
        self.due.retain(|(_, key)| is_there(key));
        self.left_by_last_sweep = self.failed.len();
    }

    /// Whether nothing has failed.
    pub(crate) fn is_empty(&self) -> bool {
        self.failed.is_empty()
    }

    /// How many are left alone now.
    pub(crate) fn count(&self) -> usize {
        self.due.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_end() {
        let mut pauses = Backoffs::default();
        let (one, other) = ("one", "other");
        let mut now_ms = 0;
        for pause_ms in [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000] {
            assert_eq!(pauses.fail(&one, (100, 10_000), now_ms), now_ms + pause_ms);
            now_ms += pause_ms;
            assert_eq!(pauses.next_due_ms(), Some(now_ms));
            assert_eq!((pauses.pop_due(now_ms - 1), pauses.pop_due(now_ms)), (None, Some(one)));
        }
        pauses.fail(&other, (100, 10_000), now_ms);
        pauses.forget(&other);
        assert_eq!((pauses.count(), pauses.fail(&other, (100, 10_000), 5)), (0, 105));
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let mut pauses = Backoffs::default();
        (0..2 * LEAST_SWEPT).for_each(|key| pauses.pause(&key, 100));
        pauses.sweep(|key| *key == 7);
        assert_eq!(pauses.paused().collect::<Vec<_>>(), [(100, &7)]);
    }
}

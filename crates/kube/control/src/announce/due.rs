//! What is to be checked, and when.

use std::collections::BTreeSet;

/// Keys in the order of their moments. Each keeps its own moment in a slot beside it, so that it
/// can be moved.
#[derive(Debug)]
pub(super) struct Due<K>(BTreeSet<(u64, K)>);

impl<K> Default for Due<K> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<K: Clone + Ord> Due<K> {
    /// The first whose moment has come.
    pub(super) fn first(&self, now_ms: u64) -> Option<K> {
        let (_, key) = self.0.first().filter(|(due_ms, _)| *due_ms <= now_ms)?;
        Some(key.clone())
    }

    /// The first moment of all.
    pub(super) fn first_ms(&self) -> Option<u64> {
        self.0.first().map(|(due_ms, _)| *due_ms)
    }

    /// It is to be checked then, and not when it was to be before.
    pub(super) fn set(&mut self, slot: &mut Option<u64>, key: &K, due_ms: u64) {
        self.clear(slot, key);
        *slot = Some(due_ms);
        self.0.insert((due_ms, key.clone()));
    }

    /// It is not to be checked any more.
    pub(super) fn clear(&mut self, slot: &mut Option<u64>, key: &K) {
        if let Some(due_ms) = slot.take() {
            self.0.remove(&(due_ms, key.clone()));
        }
    }
}

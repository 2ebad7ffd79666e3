//! Warnings about what goes on going wrong: told once, and again after a while.

use std::collections::BTreeMap;

/// The same warning is told again after so long, unless something else is wanted.
const AGAIN_MS: u64 = 60_000;

/// What was told of late, about what. What stays wrong is tried again with pauses, so that few texts are kept.
#[derive(Debug)]
pub(crate) struct Repeats<K> {
    again_ms: u64,
    told: BTreeMap<(K, String), u64>,
}

impl<K: Ord> Default for Repeats<K> {
    fn default() -> Self {
        Self::every(AGAIN_MS)
    }
}

impl<K: Ord> Repeats<K> {
    /// The same is told again after so long.
    pub(crate) fn every(again_ms: u64) -> Self {
        Self { again_ms, told: BTreeMap::new() }
    }

    /// Whether this is to be told now: it has not been told of late. The caller then tells it.
    pub(crate) fn is_due(&mut self, about: K, text: &str, now_ms: u64) -> bool {
        let again_ms = self.again_ms;
        self.told.retain(|_, told_ms| now_ms < told_ms.saturating_add(again_ms));
        let key = (about, text.to_owned());
        if self.told.contains_key(&key) {
            return false;
        }
        self.told.insert(key, now_ms);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_told_once_a_minute_and_something_else_at_once() {
        let mut repeats = Repeats::default();
        let mut told = Vec::new();
        for second in 0..120 {
            let text = if second == 30 { "gone" } else { "forbidden" };
            for about in ["pods", "nodes"] {
                if repeats.is_due(about, text, second * 1_000) {
                    told.push((second, about));
                }
            }
        }
        let at = |second| [(second, "pods"), (second, "nodes")];
        assert_eq!(told, [at(0), at(30), at(60)].concat());
    }
}

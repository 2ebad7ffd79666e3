//! Warnings about what goes on going wrong: reported once, and again after a while.

use std::collections::BTreeMap;

/// The same warning is reported again after so long, unless something else is wanted.
const AGAIN_MS: u64 = 60_000;

/// What was reported lately, about what. What stays wrong is tried again with pauses, so that few
/// texts are kept.
#[derive(Debug)]
pub struct Repeats<K> {
    again_ms: u64,
    told: BTreeMap<(K, String), u64>,
}

impl<K: Ord> Default for Repeats<K> {
    fn default() -> Self {
        Self::every(AGAIN_MS)
    }
}

impl<K: Ord> Repeats<K> {
    /// The same is reported again after so long.
    pub fn every(again_ms: u64) -> Self {
        Self { again_ms, told: BTreeMap::new() }
    }

    /// Whether this is to be reported now: it has not been reported lately. The caller then reports
    /// it.
    pub fn is_due(&mut self, about: K, text: &str, now_ms: u64) -> bool {
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

/// A text about an object as it would be about another one: without these names where they stand as
/// words.
pub fn without_names(text: &str, names: [&str; 2]) -> String {
    // Names have letters, digits, dashes and dots.
    let is_of_name = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '.');
    let words = text.split_inclusive(|one| !is_of_name(one));
    let unnamed = words.map(|word| {
        let name = word.trim_end_matches(|one| !is_of_name(one));
        if names.contains(&name) && !name.is_empty() { &word[name.len()..] } else { word }
    });
    unnamed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_about_one_object_is_that_about_another() {
        let text = |pod: &str| format!("pods \"{pod}\" is forbidden: pods of b stay as b-1 does");
        let one = without_names(&text("a"), ["b", "a"]);
        assert_eq!(one, "pods \"\" is forbidden: pods of  stay as b-1 does");
        assert_eq!(without_names(&text("other"), ["b", "other"]), one);
    }

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

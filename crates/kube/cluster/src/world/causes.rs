//! What was reported recently, by its cause: a text that only names other pods is nothing new.

use std::hash::{DefaultHasher, Hash, Hasher};

use dovetail_translate::NotYet;

/// The same cause is said again after so long.
const AGAIN_MS: u64 = 300_000;

/// A cause in brief.
pub(crate) type Cause = u64;

/// Causes that were said of one object within [`AGAIN_MS`], and when.
#[derive(Debug, Default)]
pub(crate) struct RecentCauses(Vec<(Cause, u64)>);

impl RecentCauses {
    /// Whether this was said of late; if not, it is said now.
    pub(crate) fn is_repeat(&mut self, cause: Cause, now_ms: u64) -> bool {
        self.0.retain(|(_, said_ms)| now_ms < said_ms.saturating_add(AGAIN_MS));
        let known = self.0.iter().any(|(said, _)| *said == cause);
        if !known {
            self.0.push((cause, now_ms));
        }
        known
    }
}

/// The cause in a text about pods: its words in any order, pods without their names. Which of
/// the pods that differ are named depends on which came first.
pub(crate) fn cause_of(reason: &NotYet, is_pod: impl Fn(&str) -> bool) -> Cause {
    let text = reason.to_string();
    let is_in_word = |of: char| of.is_ascii_alphanumeric() || matches!(of, '-' | '.' | '/');
    let words = text.split(|of: char| !is_in_word(of)).map(|word| word.trim_end_matches('.'));
    let mut words: Vec<&str> =
        words.map(|word| if is_pod(word) { "a pod" } else { word }).collect();
    words.sort_unstable();
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}

//! What marks a node as one that needs a repair, or on which one is in progress: words in its
//! taints, and what its conditions and annotations report. A node that was cordoned for such a
//! reason accepts no pods before the repair.

use dovetail_facts::{Facts, Node};
use dovetail_model::Taint;

use crate::notation::taint_text;

const MINUTE_MS: u64 = 60_000;

const WORDS: [&str; 9] = [
    "unhealthy",
    "xid",
    "broken",
    "faulty",
    "maintenance",
    "out-of-service",
    "ecc",
    "repair",
    "quarantine",
];

/// The word in a text for hardware that does not work, or that is under repair.
pub fn repair_word(text: &str) -> Option<&'static str> {
    let text = text.to_ascii_lowercase();
    WORDS.into_iter().find(|word| text.contains(word))
}

/// Whether a text contains such a word.
pub fn names_a_repair(text: &str) -> bool {
    repair_word(text).is_some()
}

/// Whether a taint keeps pods from a node because something of it does not work.
pub(crate) fn tells_of_health(taint: &Taint) -> bool {
    names_a_repair(&taint.key) || names_a_repair(&taint.value)
}

/// All that marks a node, in words.
pub(crate) fn repair_marks(node: &Node) -> Vec<String> {
    let taints = node.node.taints.iter().filter(|taint| tells_of_health(taint));
    let taints = taints.map(|taint| format!("taint {}", taint_text(taint)));
    taints.chain(node.repair_marks.iter().cloned()).collect()
}

/// Whether a node has been cordoned for long, for no reason that it shows.
pub(crate) fn is_forgotten(facts: &Facts, node: &Node) -> bool {
    is_long(facts, node) && !node.is_being_removed && repair_marks(node).is_empty()
}

/// Whether a node has been cordoned for long.
pub(crate) fn is_long(facts: &Facts, node: &Node) -> bool {
    let least_ms = facts.thresholds.cordoned_minutes * MINUTE_MS;
    let is_long = |since_ms| facts.now_ms.saturating_sub(since_ms) > least_ms;
    node.cordoned_since_ms.is_some_and(is_long)
}

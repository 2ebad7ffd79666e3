//! What a service has told of doubts about objects: each kind once, and again a day later while it
//! lasts. Pods come and go, and with them the words.

use std::collections::BTreeMap;

use dovetail_console::shortened::shortened;
use dovetail_sources::doubts::Doubt;

/// What lasts is told again after so long.
const AGAIN_MS: u64 = 86_400_000;

/// More kinds at a time are not told.
const MOST_KINDS: usize = 1_000;

/// When each kind was told.
#[derive(Debug, Default)]
pub struct DoubtsTold {
    at_ms: BTreeMap<String, u64>,
}

impl DoubtsTold {
    pub(crate) fn due(&mut self, doubts: Vec<Doubt>, now_ms: u64) -> Vec<String> {
        self.at_ms.retain(|_, at_ms| now_ms < at_ms.saturating_add(AGAIN_MS));
        let mut due = Vec::new();
        for Doubt { kind, text } in doubts {
            if self.at_ms.len() < MOST_KINDS && !self.at_ms.contains_key(&kind) {
                self.at_ms.insert(kind, now_ms);
                due.push(shortened(&text));
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubt_is_told_once_a_day_however_its_words_change() {
        let mut told = DoubtsTold::default();
        let mut due = |now_ms, doubts: &[(&str, &str)]| {
            let doubt = |(kind, text): &(&str, &str)| Doubt {
                kind: (*kind).to_owned(),
                text: (*text).to_owned(),
            };
            told.due(doubts.iter().map(doubt).collect(), now_ms)
        };
        assert_eq!(due(5, &[("clamped", "n1"), ("unjudged odd", "a; b")]), ["n1", "a; b"]);
        assert_eq!(due(60_005, &[("clamped", "n1; n2")]), [""; 0]);
        assert_eq!(
            due(60_005, &[("unjudged new", "a; b; c; d; e; f")]),
            ["a; b; c; d; e; and 1 more"]
        );
        assert_eq!(due(5 + AGAIN_MS, &[("clamped", "n2"), ("unjudged new", "a")]), ["n2"]);
    }
}

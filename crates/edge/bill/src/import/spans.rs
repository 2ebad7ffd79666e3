//! Times that lie beside and over each other, as one.

use std::collections::BTreeMap;

/// Times as a set: what is added twice is there once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spans {
    /// Ends by begins; no two of them touch.
    ends: BTreeMap<u64, u64>,
}

impl Spans {
    /// Adds the time from one moment to another.
    pub(super) fn add(&mut self, mut from_ms: u64, mut to_ms: u64) {
        // What begins before its end and does not end before its begin touches it, from the last
        // one on backwards.
        while let Some((begin, end)) = self.ends.range(..=to_ms).next_back() {
            let (begin, end) = (*begin, *end);
            if end < from_ms {
                break;
            }
            (from_ms, to_ms) = (from_ms.min(begin), to_ms.max(end));
            self.ends.remove(&begin);
        }
        self.ends.insert(from_ms, to_ms);
    }

    /// How much of it lies in a span of time.
    pub(super) fn inside_ms(&self, from_ms: u64, to_ms: u64) -> u64 {
        if to_ms <= from_ms {
            return 0;
        }
        // What begins before the span may reach into it: the last of these alone, since no two
        // touch.
        let first = self.ends.range(..=from_ms).next_back().map_or(from_ms, |(begin, _)| *begin);
        let reach = self.ends.range(first..to_ms);
        reach.map(|(begin, end)| (*end).min(to_ms).saturating_sub((*begin).max(from_ms))).sum()
    }

    pub(super) fn all_ms(&self) -> u64 {
        self.inside_ms(0, u64::MAX)
    }

    /// Its begin and its end.
    pub(super) fn bounds(&self) -> Option<(u64, u64)> {
        Some((*self.ends.first_key_value()?.0, *self.ends.last_key_value()?.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_touches_is_one_and_what_is_twice_counts_once() {
        let mut spans = Spans::default();
        for (from, to) in [(30, 40), (10, 20), (15, 18), (20, 25), (50, 60), (12, 22)] {
            spans.add(from, to);
        }
        assert_eq!((spans.all_ms(), spans.bounds()), (15 + 10 + 10, Some((10, 60))));
        assert_eq!([spans.inside_ms(24, 35), spans.inside_ms(41, 49)], [1 + 5, 0]);
        spans.add(22, 55);
        assert_eq!((spans.all_ms(), spans.ends.len()), (50, 1));
    }
}

//! Which time was read, and its hours.

use std::collections::BTreeMap;

use crate::device_time::Span;

/// Milliseconds of an hour.
pub const HOUR_MS: u64 = 3_600_000;

/// Milliseconds of a day (UTC: all are equally long).
pub const DAY_MS: u64 = 24 * HOUR_MS;

/// A set of moments as spans that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// End by begin.
    spans: BTreeMap<u64, u64>,
}

impl Coverage {
    /// Adds a span; one without length adds nothing.
    pub fn add(&mut self, span: Span) {
        let Span { mut from_ms, mut to_ms } = span;
        if to_ms <= from_ms {
            return;
        }
        while let Some((&begin, &end)) = self.spans.range(..=to_ms).next_back() {
            if end < from_ms {
                break;
            }
            self.spans.remove(&begin);
            (from_ms, to_ms) = (from_ms.min(begin), to_ms.max(end));
        }
        self.spans.insert(from_ms, to_ms);
    }

    /// The spans, ascending.
    pub fn spans(&self) -> impl Iterator<Item = Span> {
        self.spans.iter().map(|(from_ms, to_ms)| Span { from_ms: *from_ms, to_ms: *to_ms })
    }

    /// What of a period is not in it, ascending.
    pub fn missing(&self, period: Span) -> Vec<Span> {
        let mut missing = Vec::new();
        let mut at_ms = period.from_ms;
        for Span { from_ms, to_ms } in self.spans() {
            let until_ms = from_ms.min(period.to_ms);
            if until_ms > at_ms {
                missing.push(Span { from_ms: at_ms, to_ms: until_ms });
            }
            at_ms = at_ms.max(to_ms);
        }
        if period.to_ms > at_ms {
            missing.push(Span { from_ms: at_ms, to_ms: period.to_ms });
        }
        missing
    }
}

impl FromIterator<Span> for Coverage {
    fn from_iter<I: IntoIterator<Item = Span>>(spans: I) -> Self {
        let mut coverage = Self::default();
        spans.into_iter().for_each(|span| coverage.add(span));
        coverage
    }
}

/// A span cut at the ends of hours, ascending.
pub fn hours(span: Span) -> impl Iterator<Item = Span> {
    let mut from_ms = span.from_ms;
    std::iter::from_fn(move || {
        let to_ms = ((from_ms / HOUR_MS + 1) * HOUR_MS).min(span.to_ms);
        let hour = Span { from_ms, to_ms };
        from_ms = to_ms;
        (hour.from_ms < hour.to_ms).then_some(hour)
    })
}

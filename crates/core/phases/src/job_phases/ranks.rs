//! Which devices of a job took over from each other.

use dovetail_account::device_time::Span;

/// Who takes over may come before the other one is quite gone.
const HANDOVER_MS: u64 = 120_000;

/// The ranks of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranks {
    /// The rank of each holding.
    pub of: Vec<u32>,
    /// How many there are: as many as there were holdings at one time, but for handovers.
    pub count: u32,
}

/// Gives each holding a rank, so that two have the same only if one took over from the other: of
/// those that are free the one whose last holder had the same name, else the first. Holdings are
/// told by the name of their pod with that of the device, and by their time.
pub fn ranks(holdings: &[(&str, Span)]) -> Ranks {
    let mut order: Vec<usize> = (0..holdings.len()).collect();
    order.sort_by_key(|place| (holdings[*place].1.from_ms, holdings[*place].0, *place));
    let mut of = vec![0; holdings.len()];
    // By rank: the last holder.
    let mut last: Vec<usize> = Vec::new();
    for place in order {
        let (name, span) = holdings[place];
        let is_free = |rank: &usize| {
            holdings[last[*rank]].1.to_ms <= span.from_ms.saturating_add(HANDOVER_MS)
        };
        let mut free = (0..last.len()).filter(is_free).peekable();
        let first = free.peek().copied();
        let same = free.find(|rank| holdings[last[*rank]].0 == name);
        match same.or(first) {
            Some(rank) => {
                last[rank] = place;
                of[place] = rank as u32;
            }
            None => {
                of[place] = last.len() as u32;
                last.push(place);
            }
        }
    }
    Ranks { of, count: last.len() as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_cases::cases;
    use proptest::prelude::*;

    const MINUTE_MS: u64 = 60_000;

    proptest! {
        #![proptest_config(cases(256))]

        /// As many ranks as holdings that overlap by more than a handover, and no two of these have
        /// the same.
        #[test]
        fn no_two_at_one_time_have_the_same_rank(
            times in prop::collection::vec((0u64..200, 3u64..60), 1..25),
        ) {
            let spans: Vec<Span> = times
                .iter()
                .map(|(from, length)| Span {
                    from_ms: from * MINUTE_MS,
                    to_ms: (from + length) * MINUTE_MS,
                })
                .collect();
            let holdings: Vec<(&str, Span)> = spans.iter().map(|span| ("pod gpu 0", *span)).collect();
            let found = ranks(&holdings);
            // Without the time in which the next one may come, none overlaps that shares a rank.
            let short = |span: &Span| (span.from_ms, span.to_ms - HANDOVER_MS);
            let both = |one: &Span, other: &Span| {
                let ((a, b), (c, d)) = (short(one), short(other));
                a < d && c < b
            };
            for (one, span) in spans.iter().enumerate() {
                for (other, before) in spans.iter().enumerate().take(one) {
                    prop_assert!(found.of[one] != found.of[other] || !both(span, before));
                }
            }
            let at_once = |at: &Span| {
                let at_ms = at.from_ms;
                spans.iter().filter(|span| short(span).0 <= at_ms && at_ms < short(span).1).count()
            };
            prop_assert_eq!(found.count as usize, spans.iter().map(at_once).max().unwrap_or(0));
        }
    }

    #[test]
    fn who_has_the_name_takes_over() {
        let span = |from_min: u64, to_min: u64| Span {
            from_ms: from_min * MINUTE_MS,
            to_ms: to_min * MINUTE_MS,
        };
        let holdings =
            [("a", span(0, 10)), ("b", span(0, 10)), ("b", span(11, 20)), ("c", span(9, 20))];
        assert_eq!(ranks(&holdings), Ranks { of: vec![0, 1, 1, 0], count: 2 });
    }
}

//! How long work waits for its first and for its last member, from when it was asked for.
//!
//! Pods of one owner that were made within a minute of each other start together ([`starts`]); what
//! their owner makes later is a start of its own. A start waits from its submission until a member
//! got its node (the first), and until every one did (the last). [`spread`] sums up waits by
//! nearest rank.

use std::collections::BTreeMap;

use dovetail_account::device_time::Span;

/// A pod that asked for devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuedPod {
    /// What made it, by any name that no other owner has.
    pub owner: String,
    /// When its owner was asked for, where that starts work by itself and its first pods are what
    /// was waited for.
    pub submitted_ms: Option<u64>,
    pub created_ms: u64,
    /// When it got its node; `None` if it has none yet.
    pub placed_ms: Option<u64>,
    /// When it ended or went without having got one; `None` if it still waits or was placed.
    pub given_up_ms: Option<u64>,
}

/// Pods that start together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Places in the list of pods, ascending.
    pub pods: Vec<usize>,
    /// When it was asked for.
    pub from_ms: u64,
    /// When the first member got its node; `None` if none did.
    pub first_ms: Option<u64>,
    /// When the last one did; `None` if one has none.
    pub last_ms: Option<u64>,
}

/// A controller makes the pods of one start within this of each other.
const TOGETHER_MS: u64 = 60_000;

impl Start {
    /// How long it waited for its first member.
    pub fn first_wait_ms(&self) -> Option<u64> {
        self.first_ms.map(|first_ms| first_ms.saturating_sub(self.from_ms))
    }

    /// How long it waited for its last member.
    pub fn last_wait_ms(&self) -> Option<u64> {
        self.last_ms.map(|last_ms| last_ms.saturating_sub(self.from_ms))
    }

    /// When it waited, as far as until `now_ms`.
    pub fn waiting(&self, now_ms: u64) -> Span {
        let to_ms = self.last_ms.unwrap_or(now_ms);
        Span { from_ms: self.from_ms, to_ms: to_ms.max(self.from_ms) }
    }
}

/// Puts pods that start together into one start each; starts are in the order of owners, then of
/// time.
pub fn starts(pods: &[QueuedPod]) -> Vec<Start> {
    let mut by_owner: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, pod) in pods.iter().enumerate() {
        by_owner.entry(&pod.owner).or_default().push(place);
    }
    let mut found = Vec::new();
    for mut places in by_owner.into_values() {
        places.sort_by_key(|place| (pods[*place].created_ms, *place));
        let mut is_first = true;
        let follows = |one: &usize, next: &usize| {
            pods[*next].created_ms - pods[*one].created_ms <= TOGETHER_MS
        };
        for group in places.chunk_by(follows) {
            found.extend(start(pods, group, is_first));
            is_first = false;
        }
    }
    found
}

/// A start; none where every pod went without a node.
fn start(pods: &[QueuedPod], places: &[usize], is_first: bool) -> Option<Start> {
    let mut places: Vec<usize> =
        places.iter().copied().filter(|place| pods[*place].given_up_ms.is_none()).collect();
    places.sort_unstable();
    let of = |place: &usize| &pods[*place];
    let created_ms = places.iter().map(|place| of(place).created_ms).min()?;
    let submitted_ms = places.iter().filter_map(|place| of(place).submitted_ms).min();
    let from_ms = submitted_ms.filter(|_| is_first).map_or(created_ms, |ms| ms.min(created_ms));
    let placed: Option<Vec<u64>> = places.iter().map(|place| of(place).placed_ms).collect();
    Some(Start {
        from_ms,
        first_ms: places.iter().filter_map(|place| of(place).placed_ms).min(),
        last_ms: placed.and_then(|placed| placed.into_iter().max()),
        pods: places,
    })
}

/// Waits in two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitQuantiles {
    pub samples: usize,
    /// What half of them do not exceed.
    pub p50_ms: u64,
    /// What nine of ten do not exceed.
    pub p90_ms: u64,
}

/// Percentiles by nearest rank: the least value that so many percent do not exceed, which one of
/// them had. `None` without values.
pub fn spread(mut values_ms: Vec<u64>) -> Option<WaitQuantiles> {
    values_ms.sort_unstable();
    let samples = values_ms.len();
    let at = |percent: usize| {
        let rank = (percent * samples).div_ceil(100).max(1);
        values_ms.get(rank - 1).copied()
    };
    Some(WaitQuantiles { samples, p50_ms: at(50)?, p90_ms: at(90)? })
}

/// Spans without overlaps, ascending: moments that lie in any of them.
pub fn union(mut spans: Vec<Span>) -> Vec<Span> {
    spans.retain(|span| span.from_ms < span.to_ms);
    spans.sort_by_key(|span| (span.from_ms, span.to_ms));
    let mut joined: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match joined.last_mut().filter(|last| span.from_ms <= last.to_ms) {
            Some(last) => last.to_ms = last.to_ms.max(span.to_ms),
            None => joined.push(span),
        }
    }
    joined
}

/// How much of a span lies in others, which do not overlap.
pub fn common_ms(span: Span, others: &[Span]) -> u64 {
    let first = others.partition_point(|other| other.to_ms <= span.from_ms);
    let common = others[first..].iter().take_while(|other| other.from_ms < span.to_ms);
    common.map(|other| other.to_ms.min(span.to_ms) - other.from_ms.max(span.from_ms)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(owner: &str, created_s: u64, placed_s: Option<u64>) -> QueuedPod {
        QueuedPod {
            owner: owner.to_owned(),
            created_ms: created_s * 1_000,
            placed_ms: placed_s.map(|s| s * 1_000),
            ..QueuedPod::default()
        }
    }

    #[test]
    fn a_start_waits_for_its_first_and_for_its_last_member() {
        let mut pods = vec![
            pod("train", 105, Some(400)),
            pod("train", 100, Some(130)),
            pod("train", 160, Some(170)),
            // A retry an hour later.
            pod("train", 3_700, Some(3_760)),
            // One member of two has no node.
            pod("big", 50, Some(60)),
            pod("big", 50, None),
            // Nobody waits for what went.
            QueuedPod { given_up_ms: Some(90_000), ..pod("gone", 10, None) },
        ];
        // It was suspended before it had pods.
        pods[1].submitted_ms = Some(40_000);
        let found = starts(&pods);
        let waits: Vec<_> =
            found.iter().map(|start| (start.first_wait_ms(), start.last_wait_ms())).collect();
        assert_eq!(
            waits,
            [(Some(10_000), None), (Some(90_000), Some(360_000)), (Some(60_000), Some(60_000))]
        );
        assert_eq!(found[0].waiting(80_000), Span { from_ms: 50_000, to_ms: 80_000 });
        assert_eq!(found[1].pods, [0, 1, 2]);
        assert_eq!(starts(&[]), []);
    }

    #[test]
    fn ranks_are_values_that_were_there() {
        let spread_of = |values: &[u64]| {
            spread(values.to_vec()).map(|spread| (spread.samples, spread.p50_ms, spread.p90_ms))
        };
        assert_eq!(spread_of(&[]), None);
        assert_eq!(spread_of(&[7]), Some((1, 7, 7)));
        assert_eq!(spread_of(&[4, 1, 3, 2]), Some((4, 2, 4)));
        assert_eq!(spread_of(&(1..=10).rev().collect::<Vec<_>>()), Some((10, 5, 9)));
        assert_eq!(spread_of(&(1..=11).collect::<Vec<_>>()), Some((11, 6, 10)));
    }

    #[test]
    fn time_is_counted_once_however_many_wait() {
        let span = |from_ms, to_ms| Span { from_ms, to_ms };
        let joined = union(vec![span(5, 9), span(0, 3), span(8, 12), span(3, 4), span(7, 7)]);
        assert_eq!(joined, [span(0, 4), span(5, 12)]);
        for (from_ms, to_ms) in [(0, 20), (4, 5), (3, 6), (6, 7), (12, 20), (0, 1)] {
            let wanted = (from_ms..to_ms).filter(|ms| (0..4).contains(ms) || (5..12).contains(ms));
            assert_eq!(common_ms(span(from_ms, to_ms), &joined), wanted.count() as u64);
        }
    }
}

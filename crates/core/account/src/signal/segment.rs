//! From moments to time.

use super::decision::{ActivityRule, ActivityVerdict, UnknownReason};

/// Some time in which a device did one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivitySegment {
    pub from_ms: u64,
    /// End, exclusive.
    pub to_ms: u64,
    /// What it did, and how that is known.
    pub verdict: ActivityVerdict,
}

impl ActivitySegment {
    /// Its length.
    pub fn length_ms(&self) -> u64 {
        self.to_ms - self.from_ms
    }
}

/// What a device did from `from_ms` to `to_ms`, without gaps: a sample holds until the next, or for
/// one interval where the next comes too late; what no sample reaches is unknown. `samples` ascend
/// in time.
pub fn activity_over(
    samples: &[(u64, ActivityVerdict)],
    (from_ms, to_ms): (u64, u64),
    interval_ms: u64,
    rule: &ActivityRule,
) -> Vec<ActivitySegment> {
    let longest_ms = interval_ms.saturating_mul(u64::from(rule.max_gap_intervals));
    let gap = ActivityVerdict::unknown(None, UnknownReason::Gap);
    let mut segments: Vec<ActivitySegment> = Vec::new();
    let mut add = |until_ms: u64, verdict: ActivityVerdict| {
        let at_ms = segments.last().map_or(from_ms, |last| last.to_ms);
        let until_ms = until_ms.min(to_ms);
        if until_ms <= at_ms {
            return;
        }
        match segments.last_mut().filter(|last| last.verdict == verdict) {
            Some(last) => last.to_ms = until_ms,
            None => segments.push(ActivitySegment { from_ms: at_ms, to_ms: until_ms, verdict }),
        }
    };
    for (index, (at_ms, verdict)) in samples.iter().enumerate() {
        add(*at_ms, gap);
        let alone_ms = at_ms.saturating_add(interval_ms);
        let holds_until_ms = match samples.get(index + 1) {
            Some((next_ms, _)) if next_ms - at_ms <= longest_ms => *next_ms,
            Some((next_ms, _)) => alone_ms.min(*next_ms),
            None => alone_ms,
        };
        add(holds_until_ms, *verdict);
    }
    add(to_ms, gap);
    segments
}

//! What GPUs did while pods held them, as far as anybody measured it.

use std::collections::BTreeMap;

use dovetail_account::device_time::{ActiveWork, DeviceState, Span};
use dovetail_account::signal::{Activity, ActivitySegment, Signal, UnknownReason};

/// What one GPU did for one pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuUse {
    /// Index or UUID on its node; a slice has its own.
    pub gpu: String,
    /// How long it computed.
    pub active_ms: u64,
    /// How long it did not.
    pub idle_ms: u64,
    /// How long nobody knows, since the first sample of the pod.
    pub unknown_ms: u64,
    /// Part of that: the signals cannot all be true.
    pub contradicted_ms: u64,
    /// Part of it, too: the API server has the pod on another node, or with fewer GPUs.
    pub misplaced_ms: u64,
    /// Part of it, too: the GPU computed, but it is unknown for which of its pods.
    pub for_any_holder_ms: u64,
    /// The best signal that any of it rests on; `None` where nobody said which it was.
    pub signal: Option<Signal>,
    /// Since when it has not computed, without a gap until the end of the period; `None` if it did
    /// last.
    pub idle_since_ms: Option<u64>,
    /// What 95 of 100 samples do not exceed, in millionths of a percent; `None` where nobody kept
    /// samples.
    pub p95_micro_percent: Option<u32>,
    /// Most memory in use; `None` where nobody measured it.
    pub memory_peak_bytes: Option<u64>,
    /// Whether it is of a device that other pods had, too.
    pub is_of_several: bool,
}

/// The period that uses rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsagePeriod {
    /// From the first sample to the end of the last.
    pub span: Span,
    /// Distance of two samples.
    pub step_ms: u64,
}

/// Uses by namespace and pod, each in the order of the GPUs.
pub type UsesOfPods = BTreeMap<(String, String), Vec<GpuUse>>;

impl GpuUse {
    /// A use from what the signals said, without gaps until the end of the period.
    pub fn of_segments(gpu: String, segments: &[ActivitySegment]) -> Self {
        let mut found = Self { gpu, ..Self::default() };
        for segment in segments {
            let (sum, since_ms) = match segment.verdict.activity {
                Activity::Active => (&mut found.active_ms, None),
                Activity::Unknown => (&mut found.unknown_ms, None),
                Activity::Idle => {
                    let since_ms = found.idle_since_ms.unwrap_or(segment.from_ms);
                    (&mut found.idle_ms, Some(since_ms))
                }
            };
            *sum += segment.length_ms();
            found.idle_since_ms = since_ms;
            match segment.verdict.reason {
                Some(UnknownReason::SignalsContradict) => {
                    found.contradicted_ms += segment.length_ms();
                }
                Some(UnknownReason::PlacementContradicts) => {
                    found.misplaced_ms += segment.length_ms();
                }
                Some(UnknownReason::SharedDevice) => {
                    found.for_any_holder_ms += segment.length_ms();
                }
                _ => {}
            }
            // The best comes first.
            found.signal = found.signal.into_iter().chain(segment.verdict.signal).min();
        }
        found
    }

    /// The same where the pod cannot have had that GPU: nobody knows what it did.
    pub fn misplaced(self) -> Self {
        let all_ms = self.looked_ms();
        Self { gpu: self.gpu, unknown_ms: all_ms, misplaced_ms: all_ms, ..Self::default() }
    }

    /// The same where other pods had that GPU too, and it was measured as a whole: by the rule of
    /// [`of_each_holder`], nobody knows for whom it computed.
    ///
    /// [`of_each_holder`]: dovetail_account::signal::ActivityVerdict::of_each_holder
    pub fn of_each_holder(self) -> Self {
        let unknown_ms = self.unknown_ms + self.active_ms;
        let for_any_holder_ms = self.for_any_holder_ms + self.active_ms;
        Self { active_ms: 0, unknown_ms, for_any_holder_ms, is_of_several: true, ..self }
    }

    /// How long somebody knows what it did.
    pub fn known_ms(&self) -> u64 {
        self.active_ms + self.idle_ms
    }

    /// How long it was looked at, whether or not anybody learned what it did.
    pub fn looked_ms(&self) -> u64 {
        self.known_ms() + self.unknown_ms
    }

    /// How long it may have computed at most: what nobody knows may be work.
    pub fn active_at_most_ms(&self) -> u64 {
        self.active_ms + self.unknown_ms
    }

    /// Whether it was shown not to compute: nearly all of the time was seen idle, and the rest is
    /// lost samples. It was not where it computed for one of several pods, or its signals
    /// contradict each other.
    pub fn never_computed(&self) -> bool {
        let may_be_work_ms = self.active_ms + self.for_any_holder_ms + self.contradicted_ms;
        self.idle_ms > 0 && may_be_work_ms == 0 && self.unknown_ms <= self.looked_ms() / 100
    }

    /// Parts of a span in the proportion of what was measured, idle first: the period as if it went
    /// on. All of it is unknown where nothing was.
    pub(crate) fn spread(&self, span: Span) -> [(DeviceState, Span); 3] {
        let all = u128::from(self.looked_ms());
        let length = u128::from(span.to_ms - span.from_ms);
        let at = |part: u64| match all {
            0 => span.from_ms,
            all => span.from_ms + (length * u128::from(part) / all) as u64,
        };
        let (idle_ms, known_ms) = (at(self.idle_ms), at(self.known_ms()));
        let from_to = |from_ms, to_ms| Span { from_ms, to_ms };
        [
            (DeviceState::Idle, from_to(span.from_ms, idle_ms)),
            (DeviceState::Active(ActiveWork::NotSeparable), from_to(idle_ms, known_ms)),
            (DeviceState::Unknown, from_to(known_ms, span.to_ms)),
        ]
    }
}

/// How much of the time in which GPUs were looked at they may have computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveShare {
    /// At most, rounded down.
    pub percent: u64,
    /// Whether part of it is time of which nobody knows.
    pub is_bound: bool,
}

impl ActiveShare {
    /// That of all uses together; `None` where nobody looked.
    pub fn of<'u>(uses: impl Iterator<Item = &'u GpuUse> + Clone) -> Option<Self> {
        let looked_ms: u64 = uses.clone().map(GpuUse::looked_ms).sum();
        let active_ms: u64 = uses.clone().map(GpuUse::active_at_most_ms).sum();
        let is_bound = uses.into_iter().any(|used| used.unknown_ms > 0);
        let percent = active_ms.saturating_mul(100).checked_div(looked_ms)?;
        Some(Self { percent, is_bound })
    }
}

impl std::fmt::Display for ActiveShare {
    fn fmt(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bound = if self.is_bound { "at most " } else { "" };
        write!(text, "{bound}{}% of the time", self.percent)
    }
}

#[cfg(test)]
mod tests {
    use dovetail_account::signal::{ActivityVerdict, activity_over};

    use super::*;

    fn verdict(activity: Activity) -> ActivityVerdict {
        ActivityVerdict { activity, signal: None, intensity_micro_percent: None, reason: None }
    }

    #[test]
    fn a_use_says_how_long_and_since_when_and_what_is_not_seen_stays_unknown() {
        use Activity::{Active, Idle};
        let samples: Vec<(u64, ActivityVerdict)> =
            [(0, Active), (10, Idle), (20, Active), (30, Idle), (40, Idle)]
                .map(|(at_ms, activity)| (at_ms, verdict(activity)))
                .into();
        let rule = dovetail_account::signal::ActivityRule::default();
        let of = |end_ms| {
            GpuUse::of_segments("0".into(), &activity_over(&samples, (0, end_ms), 10, &rule))
        };
        let seen = of(50);
        assert_eq!((seen.active_ms, seen.idle_ms, seen.unknown_ms), (20, 30, 0));
        assert_eq!(seen.idle_since_ms, Some(30));
        // Behind the last sample nobody knows.
        let cut = of(100);
        assert_eq!((cut.known_ms(), cut.unknown_ms, cut.idle_since_ms), (50, 50, None));
        let spread = cut.spread(Span { from_ms: 1000, to_ms: 3000 });
        let lengths = spread.map(|(_, span)| span.to_ms - span.from_ms);
        assert_eq!(lengths, [600, 400, 1000]);
        let none = GpuUse::default().spread(Span { from_ms: 5, to_ms: 9 });
        assert_eq!(none.map(|(_, span)| span.to_ms - span.from_ms), [0, 0, 4]);
    }
}

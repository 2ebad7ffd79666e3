//! How far active time may be from the truth, because samples are looked at step by step.

use std::ops::AddAssign;

use dovetail_account::signal::{ActiveShare, Activity, ActivityVerdict};

/// Time that was counted as active and may not have been, and the other way round; in milli-GPU ×
/// ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenTime {
    /// Counted as active, at most so much too much.
    pub over: i128,
    /// Not counted as active, at most so much too little.
    pub under: i128,
}

impl OpenTime {
    /// Of a step in which some samples were active: of which `active_ms` were counted as active.
    pub(super) fn of_mixed(
        step_ms: u64,
        active_ms: u64,
        share: ActiveShare,
        gpu_milli: i64,
    ) -> Self {
        const ALL: u64 = 1_000_000;
        let least_ms = step_ms * u64::from(share.least) / ALL;
        let most_ms = (step_ms * u64::from(share.most)).div_ceil(ALL);
        let of = |ms: u64| i128::from(gpu_milli) * i128::from(ms);
        Self {
            over: of(active_ms.saturating_sub(least_ms)),
            under: of(most_ms.saturating_sub(active_ms)),
        }
    }

    /// Of time without a sample. The one before it stood in, unless it is too long: `None`.
    pub(super) fn of_gap(gap_ms: u64, verdict: Option<ActivityVerdict>, gpu_milli: i64) -> Self {
        let time = i128::from(gpu_milli) * i128::from(gap_ms);
        match verdict.map(|verdict| verdict.activity) {
            Some(Activity::Active) => Self { over: time, under: 0 },
            Some(Activity::Unknown) => Self::default(),
            Some(Activity::Idle) | None => Self { over: 0, under: time },
        }
    }
}

impl AddAssign for OpenTime {
    fn add_assign(&mut self, other: Self) {
        self.over += other.over;
        self.under += other.under;
    }
}

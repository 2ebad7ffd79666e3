//! What it costs to stop a job and start it again: checkpoints, and the time to come back.
//!
//! An attempt that is not the first begins with the time to come back. Then it works, and after
//! each interval of work it writes a checkpoint, during which it does not work. The end needs none.
//! A job without an interval writes none: stopping it loses all that it did, unless it saves its
//! work when it is told to stop. It is told before a preemption, and not when its node fails.

use serde::{Deserialize, Serialize};

/// What it costs to stop a job and start it again. `None` is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterruptionCost {
    /// Work between checkpoints.
    pub checkpoint_interval_ms: Option<u64>,
    /// Time to write one.
    pub checkpoint_cost_ms: Option<u64>,
    /// Time to come back.
    pub restart_cost_ms: Option<u64>,
    /// What that time counts as when it is decided whom to preempt, as far as what the user stated
    /// before was true; `None` as declared. It changes nothing of how long a restart takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weighed_restart_ms: Option<u64>,
    /// Time to save all work once the job is told to stop; `None` if it saves nothing then. This
    /// time is all that a preemption loses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub save_on_notice_ms: Option<u64>,
    /// When the last one was written.
    pub last_checkpoint_ms: Option<u64>,
}

/// What an attempt did with the time that it ran; all in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptTime {
    /// Work that its checkpoints keep.
    pub saved_ms: u64,
    /// Work since the last of them.
    pub unsaved_ms: u64,
    pub checkpoints_ms: u64,
    pub restart_ms: u64,
}

impl AttemptTime {
    /// The same if the job is told before it is stopped, and saves its work in this time.
    #[must_use]
    pub fn with_notice(self, save_ms: Option<u64>) -> Self {
        let unsaved_ms = self.unsaved_ms.min(save_ms.unwrap_or(u64::MAX));
        Self { saved_ms: self.saved_ms + self.unsaved_ms - unsaved_ms, unsaved_ms, ..self }
    }
}

impl InterruptionCost {
    /// Time to come back, for an attempt that is not the first.
    pub fn restart_ms(&self, is_first: bool) -> u64 {
        if is_first { 0 } else { self.restart_cost_ms.unwrap_or(0) }
    }

    /// What coming back counts as when it is decided whom to preempt.
    pub fn restart_weighs_ms(&self) -> u64 {
        self.weighed_restart_ms.unwrap_or_else(|| self.restart_ms(false))
    }

    /// How long an attempt takes that does so much work to the end of its job. Absurd times stop at
    /// the limit of their type.
    pub fn attempt_ms(&self, work_ms: u64, is_first: bool) -> u64 {
        let checkpoints = match self.interval_ms() {
            Some(interval_ms) => work_ms.saturating_sub(1) / interval_ms,
            None => 0,
        };
        let writing_ms = checkpoints.saturating_mul(self.checkpoint_cost_ms.unwrap_or(0));
        self.restart_ms(is_first).saturating_add(work_ms).saturating_add(writing_ms)
    }

    /// What an attempt did that ran so long and has not come to its end.
    pub fn stopped_after(&self, ran_ms: u64, is_first: bool) -> AttemptTime {
        let restart_ms = self.restart_ms(is_first).min(ran_ms);
        let busy_ms = ran_ms - restart_ms;
        let Some(interval_ms) = self.interval_ms() else {
            return AttemptTime { unsaved_ms: busy_ms, restart_ms, ..AttemptTime::default() };
        };
        let round_ms = interval_ms.saturating_add(self.checkpoint_cost_ms.unwrap_or(0));
        let (rounds, rest_ms) = (busy_ms / round_ms, busy_ms % round_ms);
        let unsaved_ms = rest_ms.min(interval_ms);
        let saved_ms = rounds * interval_ms;
        AttemptTime {
            saved_ms,
            unsaved_ms,
            checkpoints_ms: busy_ms - saved_ms - unsaved_ms,
            restart_ms,
        }
    }

    /// The same of an attempt that is preempted.
    pub fn preempted_after(&self, ran_ms: u64, is_first: bool) -> AttemptTime {
        self.stopped_after(ran_ms, is_first).with_notice(self.save_on_notice_ms)
    }

    /// The most work and writing that a preemption can cost an attempt, wherever it stands; `None`
    /// if that has no limit.
    pub fn most_at_stake_ms(&self) -> Option<u64> {
        let round_ms = |ms: u64| ms.saturating_add(self.checkpoint_cost_ms.unwrap_or(0));
        self.interval_ms().map(round_ms).into_iter().chain(self.save_on_notice_ms).min()
    }

    /// How long an attempt must run until a preemption leaves any of its work; `None` if none ever
    /// does.
    pub fn first_kept_ms(&self, is_first: bool) -> Option<u64> {
        let on_notice = self
            .save_on_notice_ms
            .map(|save_ms| self.restart_ms(is_first).saturating_add(save_ms).saturating_add(1));
        self.next_checkpoint_ms(0, is_first).into_iter().chain(on_notice).min()
    }

    /// The work that checkpoints keep of so many attempts that were stopped, of which so much time
    /// was not lost: without the time to come back and to write them.
    pub fn saved_ms(&self, not_lost_ms: u64, attempts: u32) -> u64 {
        let restarts = u64::from(attempts.saturating_sub(1));
        let restarts_ms = self.restart_ms(false).saturating_mul(restarts);
        let busy_ms = not_lost_ms.saturating_sub(restarts_ms);
        let Some(interval_ms) = self.interval_ms() else { return busy_ms };
        let round_ms = interval_ms.saturating_add(self.checkpoint_cost_ms.unwrap_or(0));
        let saved_ms = u128::from(busy_ms) * u128::from(interval_ms) / u128::from(round_ms);
        u64::try_from(saved_ms).unwrap_or(busy_ms)
    }

    /// How long after the start of an attempt that has run so long its next checkpoint is written;
    /// `None` if it writes none.
    pub fn next_checkpoint_ms(&self, ran_ms: u64, is_first: bool) -> Option<u64> {
        let round_ms = self.interval_ms()?.saturating_add(self.checkpoint_cost_ms.unwrap_or(0));
        let restart_ms = self.restart_ms(is_first);
        let rounds = ran_ms.saturating_sub(restart_ms) / round_ms + 1;
        Some(restart_ms.saturating_add(rounds.saturating_mul(round_ms)))
    }

    /// An interval of nothing would be no checkpoint.
    fn interval_ms(&self) -> Option<u64> {
        self.checkpoint_interval_ms.filter(|interval_ms| *interval_ms > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One ms after the other, as the file's first lines say.
    fn step_by_step(cost: &InterruptionCost, ran_ms: u64, is_first: bool) -> AttemptTime {
        let mut did = AttemptTime::default();
        let mut writing_ms = 0;
        for _ in 0..ran_ms {
            if !is_first && did.restart_ms < cost.restart_cost_ms.unwrap_or(0) {
                did.restart_ms += 1;
                continue;
            }
            if writing_ms > 0 {
                did.checkpoints_ms += 1;
                writing_ms -= 1;
            } else {
                did.unsaved_ms += 1;
                if Some(did.unsaved_ms) == cost.checkpoint_interval_ms {
                    writing_ms = cost.checkpoint_cost_ms.unwrap_or(0);
                }
            }
            if Some(did.unsaved_ms) == cost.checkpoint_interval_ms && writing_ms == 0 {
                (did.saved_ms, did.unsaved_ms) = (did.saved_ms + did.unsaved_ms, 0);
            }
        }
        did
    }

    #[test]
    fn a_job_that_is_told_loses_the_time_to_save_at_most() {
        for interval in [None, Some(5)] {
            let of = InterruptionCost {
                checkpoint_interval_ms: interval,
                checkpoint_cost_ms: Some(2),
                restart_cost_ms: Some(3),
                save_on_notice_ms: Some(4),
                ..InterruptionCost::default()
            };
            assert_eq!(of.most_at_stake_ms(), Some(4));
            let first_ms = of.first_kept_ms(false).expect("it saves");
            for ran_ms in 0..40 {
                let (stopped, told) =
                    (of.stopped_after(ran_ms, false), of.preempted_after(ran_ms, false));
                assert_eq!(told.unsaved_ms, stopped.unsaved_ms.min(4));
                let work_ms = |did: AttemptTime| did.saved_ms + did.unsaved_ms;
                assert_eq!(work_ms(told), work_ms(stopped));
                assert_eq!(told.saved_ms > 0, ran_ms >= first_ms, "{ran_ms}");
            }
        }
    }

    #[test]
    fn an_attempt_does_what_it_does_ms_by_ms() {
        for (interval, cost, restart) in
            [(Some(5), Some(2), Some(3)), (Some(4), None, None), (None, Some(2), Some(7))]
        {
            let of = InterruptionCost {
                checkpoint_interval_ms: interval,
                checkpoint_cost_ms: cost,
                restart_cost_ms: restart,
                ..InterruptionCost::default()
            };
            for (ran_ms, is_first) in (0..40).flat_map(|ms| [(ms, true), (ms, false)]) {
                let did = step_by_step(&of, ran_ms, is_first);
                assert_eq!(of.stopped_after(ran_ms, is_first), did, "{of:?} {ran_ms}");
                if did.checkpoints_ms == did.saved_ms / interval.unwrap_or(1) * cost.unwrap_or(0) {
                    let not_lost_ms = ran_ms - did.unsaved_ms;
                    let attempts = if is_first { 1 } else { 2 };
                    assert_eq!(of.saved_ms(not_lost_ms, attempts), did.saved_ms, "{of:?} {did:?}");
                }
            }
            // The last ms of an attempt is one of work that no checkpoint keeps.
            for work_ms in 1..30 {
                let took_ms = of.attempt_ms(work_ms, false);
                let before = of.stopped_after(took_ms - 1, false);
                assert_eq!(before.saved_ms + before.unsaved_ms, work_ms - 1, "{of:?} {work_ms}");
            }
        }
    }
}

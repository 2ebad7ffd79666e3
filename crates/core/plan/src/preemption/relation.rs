//! Who may preempt whom, and for which reason.

use dovetail_model::PreemptReason;

use crate::engine::JobRecord;
use crate::order::TurnBook;

/// A waiting job that asks who would make place for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preemptor {
    pub(crate) priority: i32,
    /// Its standing, which other orders than `dovetail` do not know, and when it was submitted.
    standing: (u64, u64),
}

impl Preemptor {
    pub(crate) fn of(record: &JobRecord) -> Self {
        let standing = record.place.map_or(u64::MAX, |((_, standing, _), _)| standing);
        let standing = (standing, record.job.submit_ms);
        Self { priority: record.job.priority, standing }
    }

    /// Whether anybody might make place for its standing; never wrong when it says no.
    pub(crate) fn might_take(self, turns: Option<&TurnBook>) -> bool {
        turns.is_some_and(|turns| turns.might_take(self.standing))
    }

    /// For which reason a job that runs may be preempted for this one, if for any.
    pub(crate) fn reason(
        self,
        turns: Option<&TurnBook>,
        victim: &JobRecord,
        now_ms: u64,
    ) -> Option<PreemptReason> {
        if victim.place.is_some() || victim.job.preemption.is_protected {
            return None;
        }
        if victim.job.priority < self.priority {
            return Some(PreemptReason::Priority);
        }
        let is_equal = victim.job.priority == self.priority;
        let makes_place = is_equal
            && turns.is_some_and(|turns| turns.may_take(self.standing, &victim.job, now_ms));
        makes_place.then_some(PreemptReason::Order)
    }
}

//! Whose reserved room is lent to whom.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{JobId, Reserved};

/// Jobs in the room of each job with a reservation: they run there, or a claim keeps their places
/// there until those have left who are preempted for them.
#[derive(Debug, Default)]
pub(crate) struct LentRooms(BTreeMap<JobId, BTreeSet<JobId>>);

impl LentRooms {
    /// As the reservations of a snapshot say.
    pub(super) fn of(reserved: &[Reserved]) -> Self {
        let lent = reserved.iter().map(|reserved| (reserved.claim.job, reserved.lent.clone()));
        Self(lent.collect())
    }

    /// Jobs in the room of another.
    pub(crate) fn by(&self, job: JobId) -> impl Iterator<Item = JobId> {
        self.0.get(&job).into_iter().flatten().copied()
    }

    /// Jobs in whose room another is.
    pub(super) fn lenders_of(&self, job: JobId) -> Vec<JobId> {
        self.0.iter().filter(|(_, lent)| lent.contains(&job)).map(|(lender, _)| *lender).collect()
    }

    pub(super) fn lend(&mut self, by: JobId, to: JobId) {
        self.0.entry(by).or_default().insert(to);
    }

    /// Nothing is lent any more by one to the other.
    pub(super) fn end_between(&mut self, by: JobId, to: JobId) {
        if let Some(lent) = self.0.get_mut(&by) {
            lent.remove(&to);
        }
    }

    /// Nothing is lent any more to a job; whether anything was.
    pub(super) fn end_to(&mut self, job: JobId) -> bool {
        let mut was_lent = false;
        self.0.values_mut().for_each(|lent| was_lent |= lent.remove(&job));
        was_lent
    }

    /// Jobs in the room of any of those that are not such.
    pub(super) fn of_others(&self, is_such: impl Fn(JobId) -> bool) -> BTreeSet<JobId> {
        let others = self.0.iter().filter(|(lender, _)| !is_such(**lender));
        others.flat_map(|(_, lent)| lent).copied().collect()
    }

    /// A job lends nothing any more.
    pub(super) fn end_by(&mut self, job: JobId) {
        self.0.remove(&job);
    }

    /// Nothing is lent any more by those that do not lend, nor to those that are not such.
    /// Snapshots do not name lenders without a reservation, so nothing may depend on them.
    pub(super) fn retain(
        &mut self,
        lends: impl Fn(JobId) -> bool,
        is_such: impl Fn(JobId) -> bool,
    ) {
        self.0.retain(|lender, _| lends(*lender));
        self.0.values_mut().for_each(|lent| lent.retain(|job| is_such(*job)));
    }
}

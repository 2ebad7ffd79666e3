//! All reservations, and to whom their room is lent.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{Claim, JobId, Reserved};

use super::ReserveConfig;
use crate::engine::{JobRecord, Jobs};
use crate::preemption::Claims;
use crate::state::State;

/// Reservations of jobs that are next. Each is a claim that waits for ends: `until_ms` is when the
/// job is to start.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    pub(crate) config: ReserveConfig,
    pub(crate) claims: Claims,
    /// Running jobs in the room of each.
    lent: BTreeMap<JobId, BTreeSet<JobId>>,
    /// Who gets one may be somebody else than when that was last asked.
    pub(super) is_unsettled: bool,
    /// Jobs for which no time was found, each with how many allocations without a known end there
    /// were. They are searched for again when there are others, or when nodes change.
    pub(crate) hopeless: BTreeMap<JobId, u64>,
    /// Holds and releases left to the searches of this cycle.
    pub(super) operations_left: u64,
    /// The latest expected end of a job that ended before it since reservations were last settled.
    pub(crate) freed_until_ms: u64,
}

impl Reservations {
    pub(crate) fn new(config: ReserveConfig, reserved: &[Reserved]) -> Self {
        let mut all = Self { config, ..Self::default() };
        for Reserved { claim, lent } in reserved {
            all.lent.insert(claim.job, lent.clone());
            all.claims.insert(claim.clone());
        }
        all
    }

    /// Whether anything is reserved at all.
    pub(crate) fn is_on(&self) -> bool {
        self.config.heads > 0
    }

    pub(crate) fn get(&self, job: JobId) -> Option<&Claim> {
        self.claims.get(job)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Claim> {
        self.claims.iter()
    }

    /// Inside a transaction: as if everything were held that is reserved for others.
    pub(super) fn fill_others(&self, job: JobId, state: &mut State, jobs: &Jobs) {
        for claim in self.iter().filter(|claim| claim.job != job) {
            for id in state.holdings.kept_by(claim.reservation) {
                state.release(id);
            }
            self.claims.fill(claim.job, state, jobs);
        }
    }

    /// As plain data.
    pub(crate) fn export(&self) -> Vec<Reserved> {
        let reserved = self.iter().map(|claim| Reserved {
            claim: claim.clone(),
            lent: self.lent.get(&claim.job).cloned().unwrap_or_default(),
        });
        reserved.collect()
    }

    /// Ends the reservation of a job; what it kept is still held.
    pub(crate) fn remove(&mut self, job: JobId) -> Option<Claim> {
        let claim = self.claims.remove(job)?;
        self.is_unsettled = true;
        Some(claim)
    }

    /// A job is over, maybe before it was expected to be.
    pub(crate) fn note_end(&mut self, record: &JobRecord, state: &State) {
        self.forget(record.job.id);
        if self.is_on() {
            let end_ms = |id| state.holdings.get(id).phase.expected_end_ms().unwrap_or(u64::MAX);
            let latest_ms = record.holdings.iter().map(|id| end_ms(*id)).max();
            self.freed_until_ms = self.freed_until_ms.max(latest_ms.unwrap_or(0));
        }
    }

    /// A job starts: it lends nothing any more.
    pub(crate) fn forget_waiting(&mut self, job: JobId) {
        self.hopeless.remove(&job);
        self.lent.remove(&job);
    }

    /// A job leaves: nothing is lent by it any more, or to it.
    fn forget(&mut self, job: JobId) {
        self.hopeless.remove(&job);
        self.lent.remove(&job);
        self.lent.values_mut().for_each(|lent| lent.retain(|to| *to != job));
    }

    /// Jobs that run in the room of another.
    pub(crate) fn lent_by(&self, job: JobId) -> impl Iterator<Item = JobId> {
        self.lent.get(&job).into_iter().flatten().copied()
    }

    pub(super) fn lend(&mut self, by: JobId, to: JobId) {
        self.lent.entry(by).or_default().insert(to);
    }

    /// When expected ends may have passed that reservations count on.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        self.iter().map(|claim| claim.until_ms.saturating_add(1)).min()
    }
}

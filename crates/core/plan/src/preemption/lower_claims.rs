//! Which claims of jobs of a lower priority a job that stops others needs to be given back: those
//! beside which it does not start.

use std::cmp::Reverse;

use dovetail_model::{Claim, JobId};

use super::claims::hold_claim;
use super::search::{Found, Search};
use super::units::Unit;
use crate::gang::PlacedPod;

impl Search<'_> {
    /// Keeps what can stay of these claims, none of which is kept so far, the most important first;
    /// what stays is held from here on. `None` if the search took too long.
    pub(super) fn keep_claims(&mut self, mut found: Found, mut lower: Vec<Claim>) -> Option<Found> {
        lower.sort_by_key(|claim| Reverse(self.priority_of(claim.job)));
        for claim in lower {
            if self.operations_left == 0 {
                return None;
            }
            match self.keep_claim(&found.units, &claim) {
                Some(places) => found.places = places,
                None => found.claims.push(claim.job),
            }
        }
        Some(found)
    }

    /// Where the job starts beside a claim, which is held then.
    fn keep_claim(&mut self, units: &[Unit], claim: &Claim) -> Option<Vec<PlacedPod>> {
        let gang = &self.prey.jobs.get(&claim.job)?.gang;
        let mark = self.state.begin();
        let held = hold_claim(self.state, claim, gang);
        self.operations_left = self.operations_left.saturating_sub(held.len() as u64);
        let places = self.suffices(units);
        match places {
            Some(_) => self.state.commit(mark),
            None => self.state.rollback(mark),
        }
        places
    }

    fn priority_of(&self, job: JobId) -> i32 {
        self.prey.jobs.get(&job).map_or(i32::MIN, |record| record.job.priority)
    }
}

//! Which claims of jobs of a lower priority a job that stops others needs to be given back: those
//! beside which it does not start.

use std::cmp::Reverse;

use dovetail_model::{JobId, PreemptionReservation};

use super::claims::hold_claim;
use super::search::{FoundVictims, Search};
use crate::gang::PlacedPod;

impl FoundVictims {
    /// Keeps what can stay of these claims, none of which is kept so far, the most important first;
    /// what stays is held from here on. `None` if the search took too long.
    pub(super) fn beside_claims(
        mut self,
        search: &mut Search<'_>,
        mut lower: Vec<PreemptionReservation>,
    ) -> Option<Self> {
        let jobs = search.prey.jobs;
        let priority = |job: JobId| jobs.get(&job).map_or(i32::MIN, |record| record.job.priority);
        lower.sort_by_key(|claim| Reverse(priority(claim.job)));
        for claim in lower {
            if search.operations_left == 0 {
                return None;
            }
            match self.places_beside(search, &claim) {
                Some(places) => self.places = places,
                None => self.claims.push(claim.job),
            }
        }
        Some(self)
    }

    /// Where the job starts beside a claim, which is held then.
    fn places_beside(
        &self,
        search: &mut Search<'_>,
        claim: &PreemptionReservation,
    ) -> Option<Vec<PlacedPod>> {
        let gang = &search.prey.jobs.get(&claim.job)?.gang;
        let mark = search.state.begin();
        let held = hold_claim(search.state, claim, gang);
        search.operations_left = search.operations_left.saturating_sub(held.len() as u64);
        let places = search.suffices(&self.units);
        match places {
            Some(_) => search.state.commit(mark),
            None => search.state.rollback(mark),
        }
        places
    }
}

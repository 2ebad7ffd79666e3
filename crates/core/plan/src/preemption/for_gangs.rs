//! Cheaper victims for gangs. Pod by pod, the search takes what is cheapest for each; but one job
//! may leave room for several pods and lose less than the cheapest ones for each of them together.
//! Where work weighs most and few jobs may go, two more ways are tried, and the cheapest counts.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use dovetail_model::NodeId;

use super::cost::{self, BudgetTally, MOST_UNITS, Weighs};
use super::search::{FoundVictims, Search, by_job};
use super::units::Unit;
use dovetail_state::scope::Scope;

/// Of more units than this, only what the search finds pod by pod counts.
const MOST_FOR_GANGS: usize = 64;

/// Everything that may go for a gang of several pods, if that is not too much; nothing for one pod,
/// for which every set of each node has been tried.
#[derive(Default)]
pub(super) struct FewUnits {
    units: Vec<Unit>,
    /// The same as whole jobs, the one that loses the most per GPU first.
    jobs: Vec<Unit>,
}

impl FewUnits {
    pub(super) fn of(search: &mut Search<'_>, tally: &BudgetTally) -> Self {
        if tally.weighs() != Weighs::Work || search.gang.min_pods() <= 1 {
            return Self::default();
        }
        let mut few = Vec::new();
        for units in search.prey.that_may_stop(search.state, tally) {
            search.operations_left = search.operations_left.saturating_sub(1);
            few.extend(units.into_iter().filter(|unit| search.may_go(unit, tally)));
            if few.len() > MOST_FOR_GANGS {
                return Self::default();
            }
        }
        let mut jobs = by_job(few.clone());
        jobs.sort_by_cached_key(|unit| {
            let lost = unit.work_lost_gpu_milli_ms.saturating_add(unit.requeue_gpu_milli_ms);
            Reverse((unit.priority, lost / unit.gpu_milli.max(1), unit.job))
        });
        Self { units: few, jobs }
    }

    /// All jobs are gone from a scope but those that are put back.
    pub(super) fn by_loss_per_gpu(
        &self,
        search: &mut Search<'_>,
        scope: Scope,
        tally: &BudgetTally,
    ) -> Option<FoundVictims> {
        let nodes: BTreeSet<NodeId> = scope.nodes(search.state).into_iter().collect();
        let is_there = |unit: &Unit| {
            unit.holdings.iter().any(|id| nodes.contains(&search.state.holdings.get(*id).node))
        };
        let units: Vec<Unit> = self.jobs.iter().filter(|unit| is_there(unit)).cloned().collect();
        (!units.is_empty()).then(|| search.spare_in_order(units, tally))?
    }

    /// The cheapest set of all if there are no more than [`MOST_UNITS`]; else, and where half of
    /// the operations that are left do not suffice, what was `found` before.
    pub(super) fn cheapest_of_all_sets(
        &self,
        search: &mut Search<'_>,
        found: Option<FoundVictims>,
        tally: &BudgetTally,
    ) -> Option<FoundVictims> {
        let now_ms = search.prey.relation.now_ms;
        let enough = search.operations_left / 2;
        if self.units.is_empty() || self.units.len() > MOST_UNITS {
            return found;
        }
        // Where nothing was found, not even everything may suffice.
        if found.is_none() && search.suffices(&self.units).is_none() {
            return None;
        }
        let than = found.as_ref().map(|found| found.cost);
        for set in cost::cheaper_sets(&self.units, than.as_ref(), tally, now_ms) {
            if search.operations_left <= enough {
                break;
            }
            let goes = self.units.iter().zip(set).filter(|(_, goes)| *goes);
            let units = by_job(goes.map(|(unit, _)| unit.clone()).collect());
            let cost = cost::of(units.iter(), tally, now_ms);
            if !search.keeps_budgets(&units, &cost)
                || !tally.protects(units.iter())
                || !search.worth().is_worth(&units)
            {
                continue;
            }
            if let Some(places) = search.suffices(&units) {
                return Some(FoundVictims { cost, units, ..FoundVictims::at(places) });
            }
        }
        found
    }
}

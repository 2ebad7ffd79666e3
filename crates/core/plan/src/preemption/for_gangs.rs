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

impl Search<'_> {
    /// Everything that may go for a gang of several pods; nothing for others, for which every set
    /// of each node has been tried, or if it is too much.
    pub(super) fn few_that_may_go(&mut self, tally: &BudgetTally) -> Vec<Unit> {
        let pods: u32 = self.gang.sets.iter().map(|set| set.min).sum();
        if tally.weighs() != Weighs::Work || pods <= 1 {
            return Vec::new();
        }
        let mut few = Vec::new();
        for units in self.prey.that_may_stop(self.state, tally) {
            self.operations_left = self.operations_left.saturating_sub(1);
            few.extend(units.into_iter().filter(|unit| self.may_go(unit, tally)));
            if few.len() > MOST_FOR_GANGS {
                return Vec::new();
            }
        }
        few
    }

    /// All jobs are gone from a scope but those that are put back, the one that loses the most per
    /// GPU first.
    pub(super) fn by_loss_per_gpu(
        &mut self,
        few: &[Unit],
        scope: Scope,
        tally: &BudgetTally,
    ) -> Option<FoundVictims> {
        let nodes: BTreeSet<NodeId> = scope.nodes(self.state).into_iter().collect();
        let is_there = |unit: &Unit| {
            unit.holdings.iter().any(|id| nodes.contains(&self.state.holdings.get(*id).node))
        };
        let mut units = by_job(few.to_vec());
        units.retain(is_there);
        units.sort_by_cached_key(|unit| {
            let lost = unit.work_lost_gpu_milli_ms.saturating_add(unit.requeue_gpu_milli_ms);
            Reverse((unit.priority, lost / unit.gpu_milli.max(1), unit.job))
        });
        (!units.is_empty()).then(|| self.spare_in_order(units, tally))?
    }

    /// The cheapest set of all if there are no more than [`MOST_UNITS`]; else, and where half of
    /// the operations that are left do not suffice, what was `found` before.
    pub(super) fn cheapest_of_all_sets(
        &mut self,
        few: &[Unit],
        found: Option<FoundVictims>,
        tally: &BudgetTally,
    ) -> Option<FoundVictims> {
        let now_ms = self.prey.relation.now_ms;
        let enough = self.operations_left / 2;
        // Where nothing was found, not even everything may suffice.
        if few.len() > MOST_UNITS || found.is_none() && self.suffices(few).is_none() {
            return found;
        }
        let than = found.as_ref().map(|found| found.cost);
        for set in cost::cheaper_sets(few, than.as_ref(), tally, now_ms) {
            if self.operations_left <= enough {
                break;
            }
            let goes = few.iter().zip(set).filter(|(_, goes)| *goes);
            let units = by_job(goes.map(|(unit, _)| unit.clone()).collect());
            let cost = cost::of(units.iter(), tally, now_ms);
            if !self.keeps_budgets(&units, &cost) || !tally.protects(units.iter()) {
                continue;
            }
            if let Some(places) = self.suffices(&units) {
                return Some(FoundVictims { cost, units, ..FoundVictims::at(places) });
            }
        }
        found
    }
}

//! The search for victims: the pods of a gang are placed one after the other, each where that costs
//! least; then the whole gang is placed as it would be, and whoever can be spared is.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{JobId, NodeId, PreemptionCost, PreemptionReservation};
use rustc_hash::FxHashMap;

use super::bounds::is_refuted;
use super::cost::{self, BudgetTally};
use super::for_gangs::FewUnits;
use super::prey::{Prey, Toll};
use super::put_back::put_back_order;
use super::sparing::SparingBound;
use super::survey::OutlookSurvey;
use super::units::Unit;
use super::worth::Worth;
use crate::gang::{Gang, GangSet, PlacedPod, Placer};
use dovetail_finder::Finder;
use dovetail_policy::Policy;
use dovetail_state::State;
use dovetail_state::holdings::HoldingRecord;
use dovetail_state::scope::Scope;

/// Who is stopped, and where the job then starts.
#[derive(Clone, Debug)]
pub(super) struct FoundVictims {
    pub(super) cost: PreemptionCost,
    pub(super) units: Vec<Unit>,
    pub(super) places: Vec<PlacedPod>,
    /// Jobs of a lower priority whose claims are given back for that.
    pub(super) claims: Vec<JobId>,
    /// Names of what is kept for jobs of a lower priority and must be given up for that.
    pub(super) rooms: Vec<String>,
}

impl FoundVictims {
    /// There without anybody having to go.
    pub(super) fn at(places: Vec<PlacedPod>) -> Self {
        let (units, claims, rooms) = (Vec::new(), Vec::new(), Vec::new());
        Self { cost: Default::default(), units, places, claims, rooms }
    }
}

/// One search. Everything it does to the state is undone.
pub(super) struct Search<'e> {
    pub(super) state: &'e mut State,
    pub(super) policy: &'e mut dyn Policy,
    pub(super) finder: &'e mut dyn Finder,
    pub(super) prey: Prey<'e>,
    pub(super) job: JobId,
    /// The gang at its smallest size.
    pub(super) gang: &'e Gang,
    pub(super) respect_budgets: bool,
    /// Of each node when nobody has gone yet.
    pub(super) survey: &'e mut OutlookSurvey,
    /// Of jobs with several pods.
    pub(super) tolls: FxHashMap<JobId, Option<Toll>>,
    pub(super) operations_left: u64,
}

impl Search<'_> {
    /// What the job is worth to those that make place for it.
    pub(super) fn worth(&self) -> Worth<'_> {
        let (relation, jobs) = (&self.prey.relation, self.prey.jobs);
        Worth { relation, jobs, gang: self.gang, state: self.state }
    }

    /// Where the gang would be placed without these units; nothing changes.
    pub(super) fn places_without(&mut self, units: &[Unit]) -> Option<Vec<PlacedPod>> {
        let mark = self.state.begin();
        let holdings = units.iter().flat_map(|unit| &unit.holdings);
        for id in holdings {
            self.state.release(*id);
            self.operations_left = self.operations_left.saturating_sub(1);
        }
        let pods = u64::from(self.gang.min_pods());
        self.operations_left = self.operations_left.saturating_sub(pods);
        let placer = Placer::new(self.state, self.policy, self.finder, self.job);
        let placed = placer.place(self.gang);
        self.state.rollback(mark);
        placed
    }

    /// Where the gang would be placed without these units, if its queues' bounds allow it to start
    /// then.
    pub(super) fn suffices(&mut self, units: &[Unit]) -> Option<Vec<PlacedPod>> {
        self.prey.shortage.is_repaid(units).then(|| self.places_without(units))?
    }

    /// The cheapest victims, if anybody must go at all, and what of `lower` and `rooms` must be
    /// given up beside them; and whether bounds showed that a search is in vain.
    pub(super) fn find(
        &mut self,
        tally: &BudgetTally,
        lower: Vec<PreemptionReservation>,
        rooms: Vec<HoldingRecord>,
    ) -> (Option<FoundVictims>, bool) {
        let found = match self.suffices(&[]) {
            Some(places) => Some(FoundVictims::at(places)),
            None if is_refuted(self.gang, &self.prey, self.state) => return (None, true),
            None => self.run(tally),
        };
        let found = found.and_then(|found| found.beside_claims(self, lower));
        (found.and_then(|found| found.beside_rooms(self, rooms)), false)
    }

    /// The cheapest victims; `None` if nobody's going would start the gang, or the search took too
    /// long.
    fn run(&mut self, tally: &BudgetTally) -> Option<FoundVictims> {
        let paying = self.paying(&[], tally)?;
        let scopes = match self.gang.required {
            None => vec![Scope::Everywhere],
            Some(depth) => {
                let mut domains = Scope::Everywhere.domains(self.state, depth);
                domains.sort_by_cached_key(|domain| domain.name(self.state));
                domains
            }
        };
        let few = FewUnits::of(self, tally);
        let mut best: Option<FoundVictims> = None;
        for scope in scopes {
            let mut ways: Vec<Option<FoundVictims>> = Vec::new();
            for units in self.sufficient(scope, &paying, tally) {
                ways.push(self.spare(units, tally));
            }
            ways.push(few.by_loss_per_gpu(self, scope, tally));
            for found in ways.into_iter().flatten() {
                if best.as_ref().is_none_or(|best| found.cost < best.cost) {
                    best = Some(found);
                }
            }
        }
        let best = best.filter(|_| self.operations_left > 0);
        let mut best = few.cheapest_of_all_sets(self, best, tally)?;
        best.cost = cost::of(best.units.iter(), &tally.in_full(), self.prey.relation.now_ms);
        Some(best)
    }

    /// Sets of units without which the gang may start and fits, maybe more than need go.
    fn sufficient(&mut self, scope: Scope, paying: &[Unit], tally: &BudgetTally) -> Vec<Vec<Unit>> {
        if self.prey.shortage.is_empty() {
            return self.candidates(scope, tally).into_iter().collect();
        }
        // Who pays may make room, and who makes room may pay: each in turn goes first.
        let room = |search: &mut Self, tally: &BudgetTally| match search.places_without(&[]) {
            Some(_) => Some(Vec::new()),
            None => search.candidates(scope, tally),
        };
        let mut found = Vec::new();
        if let Some(more) = self.after(paying, tally, room) {
            found.push(by_job(paying.iter().cloned().chain(more).collect()));
        }
        if let Some(near) = room(self, tally) {
            let more = self.after(&near, tally, |search, tally| search.paying(&near, tally));
            found.extend(more.map(|more| by_job(near.iter().cloned().chain(more).collect())));
        }
        found
    }

    /// Asks something as if these units had gone.
    fn after<T>(
        &mut self,
        gone: &[Unit],
        tally: &BudgetTally,
        ask: impl FnOnce(&mut Self, &BudgetTally) -> T,
    ) -> T {
        let mut tally = tally.clone();
        let survey = std::mem::take(self.survey);
        let mark = self.state.begin();
        for unit in gone {
            tally.take(unit);
            for id in &unit.holdings {
                self.state.release(*id);
                self.operations_left = self.operations_left.saturating_sub(1);
            }
        }
        let answer = ask(self, &tally);
        self.state.rollback(mark);
        *self.survey = survey;
        answer
    }

    /// The least important units that give back what is short when some have gone; `None` if all of
    /// them do not.
    fn paying(&mut self, gone: &[Unit], tally: &BudgetTally) -> Option<Vec<Unit>> {
        let mut open = self.prey.shortage.left(gone);
        let is_open = |open: &[i64]| open.iter().any(|amount| *amount > 0);
        if !is_open(&open) {
            return Some(Vec::new());
        }
        let mut units = self.prey.that_repay(self.state, tally);
        units.retain(|unit| self.may_go(unit, tally));
        self.operations_left = self.operations_left.saturating_sub(units.len() as u64);
        let mut chosen = vec![false; units.len()];
        for at in put_back_order(&units, tally).into_iter().rev() {
            let repays = |(open, repaid): (&i64, &i64)| *open > 0 && *repaid > 0;
            if chosen[at] || !open.iter().zip(&units[at].repays).any(repays) {
                continue;
            }
            // Of a job that goes nothing stays.
            let goes = |other: &Unit| units[at].is_rest && other.job == units[at].job;
            for (place, unit) in units.iter().enumerate() {
                if (place == at || goes(unit)) && !std::mem::replace(&mut chosen[place], true) {
                    open.iter_mut().zip(&unit.repays).for_each(|(open, repaid)| *open -= repaid);
                }
            }
            if !is_open(&open) {
                let mut chosen = chosen.into_iter();
                units.retain(|_| chosen.next().unwrap_or(false));
                return Some(by_job(units));
            }
        }
        None
    }

    /// Units without which the gang fits, maybe more than need go.
    fn candidates(&mut self, scope: Scope, tally: &BudgetTally) -> Option<Vec<Unit>> {
        if let Some(units) = self.one_after_the_other(scope, tally) {
            let units = by_job(units);
            if self.places_without(&units).is_some() {
                return Some(units);
            }
        }
        // Equal pods that look at amounts alone go where there is room for them one by one, or
        // nowhere.
        let mut wanted = self.gang.sets.iter().filter(|set| set.min > 0);
        let only = wanted.next().filter(|_| wanted.next().is_none());
        let is_plain = |set: &GangSet| {
            !set.has_topology() && self.state.shapes.get(set.shape).demand.is_plain()
        };
        if only.is_some_and(is_plain) {
            return None;
        }
        let nodes: Vec<NodeId> = self.nodes_of(scope);
        let mut units = self.prey.on_nodes(self.state, tally, &nodes);
        units.retain(|unit| self.may_go(unit, tally));
        let places = self.places_without(&units)?;
        let used: BTreeSet<NodeId> = places.iter().map(|placed| placed.node).collect();
        let there = |unit: &Unit| {
            unit.holdings.iter().any(|id| used.contains(&self.state.holdings.get(*id).node))
        };
        let near: Vec<Unit> = units.iter().filter(|unit| there(unit)).cloned().collect();
        let suffices = self.places_without(&near).is_some();
        Some(if suffices { near } else { units })
    }

    /// Whether a unit may go at all, by budgets and by the quotas of others.
    pub(super) fn may_go(&self, unit: &Unit, tally: &BudgetTally) -> bool {
        let asks_budgets = self.respect_budgets || unit.keeps_budgets;
        !(tally.breaks_quota(&unit.takes) || asks_budgets && tally.is_exhausted_for(unit))
    }

    /// Whether the budgets allow what these units cost together. Beyond them only priority goes:
    /// whoever is evicted for another reason is evicted through the API, which refuses it.
    pub(super) fn keeps_budgets(&self, units: &[Unit], cost: &PreemptionCost) -> bool {
        let ask_budgets = self.respect_budgets || units.iter().any(|unit| unit.keeps_budgets);
        !ask_budgets || cost.budget_violations == 0
    }

    /// Nodes of a scope, by their rank.
    pub(super) fn nodes_of(&self, scope: Scope) -> Vec<NodeId> {
        let mut nodes = scope.nodes(self.state);
        nodes.sort_by_key(|node| self.state.nodes.hot(*node).rank);
        nodes
    }

    /// Spares whoever can be spared, in stretches that grow while all of one can, the most
    /// important first.
    fn spare(&mut self, units: Vec<Unit>, tally: &BudgetTally) -> Option<FoundVictims> {
        let order = put_back_order(&units, tally);
        self.spare_in_order(order.into_iter().map(|at| units[at].clone()).collect(), tally)
    }

    /// The same in the order of these units.
    pub(super) fn spare_in_order(
        &mut self,
        mut units: Vec<Unit>,
        tally: &BudgetTally,
    ) -> Option<FoundVictims> {
        let mut places = self.suffices(&units)?;
        let mut bound = SparingBound::of(self.gang, &units, self.state);
        let (mut from, mut stretch) = (0, units.len().div_ceil(2));
        while from < units.len() {
            if self.operations_left == 0 {
                return None;
            }
            stretch = stretch.clamp(1, units.len() - from);
            let staying = &units[from..from + stretch];
            let found = match &bound {
                Some(bound) if bound.refutes(staying, self.state) => {
                    self.operations_left = self.operations_left.saturating_sub(stretch as u64);
                    None
                }
                _ => {
                    let without = [&units[..from], &units[from + stretch..]].concat();
                    self.suffices(&without).map(|places| (without, places))
                }
            };
            match found {
                Some((without, found)) => {
                    if let Some(bound) = &mut bound {
                        bound.keep(staying, self.state);
                    }
                    (units, places) = (without, found);
                    stretch *= 2;
                }
                None if stretch == 1 => from += 1,
                None => stretch /= 2,
            }
        }
        let cost = cost::of(units.iter(), tally, self.prey.relation.now_ms);
        let is_allowed = self.keeps_budgets(&units, &cost)
            && tally.protects(units.iter())
            && self.worth().is_worth(&units);
        is_allowed.then(|| FoundVictims { cost, units, ..FoundVictims::at(places) })
    }
}

/// Units of jobs that end become one per job; pods that their jobs can do without stay single.
pub(super) fn by_job(units: Vec<Unit>) -> Vec<Unit> {
    let ends: BTreeSet<JobId> = units.iter().filter(|u| u.is_rest).map(|u| u.job).collect();
    let mut whole: BTreeMap<JobId, Unit> = BTreeMap::new();
    let mut all = Vec::new();
    for unit in units {
        match whole.get_mut(&unit.job) {
            _ if !ends.contains(&unit.job) => all.push(unit),
            Some(known) => known.absorb(unit),
            None => {
                whole.insert(unit.job, unit);
            }
        }
    }
    all.extend(whole.into_values());
    all
}

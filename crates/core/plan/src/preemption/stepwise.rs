//! Pods one after the other, each where nobody must go, else where that costs least.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use dovetail_model::{HoldingPhase, NodeId, Owner, PodId, PreemptionCost};

use super::cost::BudgetTally;
use super::search::Search;
use super::survey::{NodePlan, Outlook, OutlookSurvey, Outlooks};
use super::units::Unit;
use crate::gang::GangSet;
use dovetail_state::holdings::HoldingRecord;
use dovetail_state::scope::Scope;
use dovetail_state::shapes::{Demand, ShapeId};

/// The books of one pass over the pods of a gang.
struct Pass {
    scope: Scope,
    /// By rank.
    nodes: Vec<NodeId>,
    /// What is known of nodes that this pass has changed, of all of them if `is_apart`; of the
    /// others the survey knows it.
    own: Outlooks,
    changed: BTreeSet<NodeId>,
    is_apart: bool,
    tally: BudgetTally,
    chosen: Vec<Unit>,
}

impl Pass {
    /// What was known of a node is out of date.
    fn change(&mut self, node: NodeId) {
        self.changed.insert(node);
        self.own.remove(node);
    }

    /// What was known of any node is out of date.
    fn part(&mut self) {
        self.is_apart = true;
        self.own.clear();
    }

    fn outlooks<'p>(&'p mut self, survey: &'p mut OutlookSurvey, node: NodeId) -> &'p mut Outlooks {
        match self.is_apart || self.changed.contains(&node) {
            true => &mut self.own,
            false => &mut survey.nodes,
        }
    }

    /// The cheapest way on a node, if it is known.
    fn way<'p>(&'p mut self, survey: &'p mut OutlookSurvey, node: NodeId) -> Option<&'p NodePlan> {
        match self.outlooks(survey, node).get(node) {
            Some(Outlook::Way(plan)) => Some(plan),
            _ => None,
        }
    }
}

impl Search<'_> {
    /// Places pod after pod, in the order of the placement itself; who must go for that.
    pub(super) fn one_after_the_other(
        &mut self,
        scope: Scope,
        tally: &BudgetTally,
    ) -> Option<Vec<Unit>> {
        let mut sets: Vec<GangSet> =
            self.gang.sets.iter().filter(|set| set.min > 0).cloned().collect();
        sets.sort_by_key(|set| std::cmp::Reverse(set.weight));
        let mut pass = Pass {
            scope,
            nodes: self.nodes_of(scope),
            own: Outlooks::default(),
            changed: BTreeSet::new(),
            is_apart: false,
            tally: tally.clone(),
            chosen: Vec::new(),
        };
        let mark = self.state.begin();
        let placed = sets.iter().enumerate().all(|(at, set)| {
            if at == 0 && self.state.shapes.get(set.shape).demand.rules.is_empty() {
                self.survey.turn_to(set.shape, &self.prey.relation.preemptor);
            } else {
                pass.part();
            }
            (0..set.min).all(|ordinal| {
                let pod = PodId { job: self.job, pod_set: set.pod_set, ordinal };
                self.place_one(pod, set.shape, &mut pass)
            })
        });
        self.state.rollback(mark);
        placed.then_some(pass.chosen)
    }

    fn place_one(&mut self, pod: PodId, shape: ShapeId, pass: &mut Pass) -> bool {
        self.operations_left = self.operations_left.saturating_sub(1);
        let free = self.finder.best(self.state, self.policy, shape, pass.scope);
        let Some(node) = free.or_else(|| self.make_room(shape, pass)) else { return false };
        let devices = self.policy.devices(self.state, shape, node);
        let shape = self.state.shapes.get(shape);
        let record = HoldingRecord {
            node,
            owner: Owner::Pod(pod),
            phase: HoldingPhase::Assumed,
            reservation: None,
            amounts: shape.demand.amounts.clone(),
            devices,
            counts_into: shape.counts_into.clone(),
            attachments: shape.demand.attachments.clone(),
        };
        pass.change(node);
        if !shape.demand.rules.is_empty() {
            pass.part();
        }
        self.state.hold(record);
        self.operations_left > 0
    }

    /// Takes away who must go from the node on which that costs least.
    fn make_room(&mut self, shape: ShapeId, pass: &mut Pass) -> Option<NodeId> {
        let (node, plan) = self.cheapest(shape, pass)?;
        let mut moves_all = !self.state.shapes.get(shape).demand.rules.is_empty();
        for unit in plan.units {
            moves_all |= !unit.budgets.is_empty();
            pass.tally.take(&unit);
            // What is left of its job is another unit on every node.
            for node in self.prey.nodes_of(self.state, unit.job) {
                pass.change(node);
            }
            for id in &unit.holdings {
                self.state.release(*id);
            }
            pass.chosen.push(unit);
        }
        if moves_all {
            pass.part();
        }
        Some(node)
    }

    /// The node on which room for one more pod costs least, and how. Of equals it is the first by
    /// rank, but of one job that can do without some of its pods the last goes.
    fn cheapest(&mut self, shape: ShapeId, pass: &mut Pass) -> Option<(NodeId, NodePlan)> {
        // Costs and places in `nodes`, so that the first by rank is the least of equals.
        let mut best: Option<(PreemptionCost, usize)> = None;
        let mut open: Vec<Reverse<(PreemptionCost, usize)>> = Vec::new();
        let demand = self.state.shapes.get(shape).demand.clone();
        for at in 0..pass.nodes.len() {
            match self.outlook((shape, &demand), pass.nodes[at], pass) {
                Outlook::Hopeless => {}
                Outlook::AtLeast(cost) => open.push(Reverse((*cost, at))),
                Outlook::Way(plan) => {
                    let way = (plan.cost, at);
                    best = Some(best.map_or(way, |best| best.min(way)));
                }
            }
            if self.operations_left == 0 {
                return None;
            }
        }
        // The lowest bounds come first: once one of them is above the best way, all others are.
        let mut open = BinaryHeap::from(open);
        while let Some(Reverse((at_least, at))) = open.pop() {
            if best.is_some_and(|best| best < (at_least, at)) {
                break;
            }
            if let Some(cost) = self.way_cost(shape, pass.nodes[at], pass) {
                let way = (cost, at);
                best = Some(best.map_or(way, |best| best.min(way)));
            }
            if self.operations_left == 0 {
                return None;
            }
        }
        let (cost, at) = best?;
        let mut node = pass.nodes[at];
        let first = pass.way(self.survey, node).and_then(spare_pod);
        if let Some(mut last) = first {
            for other in self.prey.nodes_of(self.state, last.job) {
                // Those with the same bound were left out above.
                let is_equal = |outlook: &Outlook| match outlook {
                    Outlook::Hopeless => false,
                    Outlook::AtLeast(at_least) => *at_least <= cost,
                    Outlook::Way(plan) => plan.cost == cost,
                };
                let rank = self.state.nodes.hot(other).rank;
                let rank_of = |node: &NodeId| self.state.nodes.hot(*node).rank;
                let is_in_scope = pass.nodes.binary_search_by_key(&rank, rank_of).is_ok();
                let known = pass.outlooks(self.survey, other).get(other);
                if !is_in_scope || !known.is_some_and(is_equal) {
                    continue;
                }
                if self.way_cost(shape, other, pass) != Some(cost) {
                    continue;
                }
                let spare = pass.way(self.survey, other).and_then(spare_pod);
                if let Some(spare) = spare.filter(|spare| spare.job == last.job && *spare > last) {
                    (node, last) = (other, spare);
                }
            }
        }
        Some((node, pass.way(self.survey, node)?.clone()))
    }

    /// What is known of a node for one more pod; at least a bound.
    fn outlook<'p>(
        &'p mut self,
        pod: (ShapeId, &Demand),
        node: NodeId,
        pass: &'p mut Pass,
    ) -> &'p Outlook {
        if pass.outlooks(self.survey, node).get(node).is_none() {
            let glanced = self.glance(pod, node, &pass.tally);
            pass.outlooks(self.survey, node).insert(node, glanced);
        }
        pass.outlooks(self.survey, node).get(node).expect("just looked at")
    }

    /// What the cheapest way costs on a node of which something is known; `None` if there is none.
    fn way_cost(
        &mut self,
        shape: ShapeId,
        node: NodeId,
        pass: &mut Pass,
    ) -> Option<PreemptionCost> {
        if let Some(Outlook::AtLeast(_)) = pass.outlooks(self.survey, node).get(node) {
            let plan = self.node_plan(shape, node, &pass.tally);
            let outlook = plan.map_or(Outlook::Hopeless, Outlook::Way);
            pass.outlooks(self.survey, node).insert(node, outlook);
        }
        pass.way(self.survey, node).map(|plan| plan.cost)
    }
}

/// The only pod that goes, if its job can do without.
fn spare_pod(plan: &NodePlan) -> Option<PodId> {
    match plan.units.as_slice() {
        [unit] if !unit.is_rest => unit.pods.first().copied(),
        _ => None,
    }
}

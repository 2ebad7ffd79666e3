//! Pods one after the other, each where nobody must go, else where that costs least.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{HoldingPhase, NodeId, Owner, PodId, PreemptionCost};

use super::cost::BudgetTally;
use super::search::Search;
use super::survey::{NodePlan, Outlook, OutlookSurvey};
use super::units::Unit;
use crate::gang::GangSet;
use dovetail_state::holdings::HoldingRecord;
use dovetail_state::scope::Scope;
use dovetail_state::shapes::ShapeId;

/// The books of one pass over the pods of a gang.
struct Pass {
    scope: Scope,
    /// By rank.
    nodes: Vec<NodeId>,
    /// What is known of nodes that this pass has changed, of all of them if `is_apart`; of the
    /// others the survey knows it.
    own: BTreeMap<NodeId, Outlook>,
    changed: BTreeSet<NodeId>,
    is_apart: bool,
    tally: BudgetTally,
    chosen: Vec<Unit>,
}

impl Pass {
    /// What was known of a node is out of date.
    fn change(&mut self, node: NodeId) {
        self.changed.insert(node);
        self.own.remove(&node);
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
}

type Outlooks = BTreeMap<NodeId, Outlook>;

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
            own: BTreeMap::new(),
            changed: BTreeSet::new(),
            is_apart: false,
            tally: tally.clone(),
            chosen: Vec::new(),
        };
        let mark = self.state.begin();
        let placed = sets.iter().enumerate().all(|(at, set)| {
            if at == 0 && self.state.shapes.get(set.shape).demand.rules.is_empty() {
                self.survey.turn_to(set.shape, self.prey.relation.preemptor);
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

    /// The node on which room for one more pod costs least, and how. Nodes come by rank: of equals
    /// the first stays, but of one job that can do without some of its pods the last goes.
    fn cheapest(&mut self, shape: ShapeId, pass: &mut Pass) -> Option<(NodeId, NodePlan)> {
        let mut best: Option<Best> = None;
        for at in 0..pass.nodes.len() {
            let node = pass.nodes[at];
            let known = pass.outlooks(self.survey, node).get(&node);
            let glanced = match known {
                Some(_) => None,
                None => Some(self.glance(shape, node, &pass.tally)),
            };
            if let Some(glanced) = glanced {
                pass.outlooks(self.survey, node).insert(node, glanced);
            }
            let may_be_it = |cost: PreemptionCost| {
                best.as_ref().is_none_or(|best| {
                    cost < best.cost || (cost == best.cost && best.rivals.contains(&node))
                })
            };
            match pass.outlooks(self.survey, node).get(&node) {
                Some(Outlook::Way(plan)) if may_be_it(plan.cost) => {}
                Some(Outlook::AtLeast(cost)) if may_be_it(*cost) => {
                    let plan = self.node_plan(shape, node, &pass.tally);
                    let outlook = plan.map_or(Outlook::Hopeless, Outlook::Way);
                    pass.outlooks(self.survey, node).insert(node, outlook);
                }
                _ => continue,
            }
            if self.operations_left == 0 {
                return None;
            }
            let Some(Outlook::Way(plan)) = pass.outlooks(self.survey, node).get(&node) else {
                continue;
            };
            let (cost, spare) = (plan.cost, spare_pod(plan));
            let is_it = |best: &Best| {
                let is_later =
                    spare.map(|pod| pod.job) == best.spare.map(|pod| pod.job) && spare > best.spare;
                cost < best.cost || (cost == best.cost && is_later)
            };
            if best.as_ref().is_none_or(is_it) {
                let rivals = spare.map(|pod| self.prey.nodes_of(self.state, pod.job));
                let rivals = rivals.unwrap_or_default().into_iter().collect();
                best = Some(Best { cost, node, spare, rivals });
            }
        }
        let node = best?.node;
        match pass.outlooks(self.survey, node).get(&node) {
            Some(Outlook::Way(plan)) => Some((node, plan.clone())),
            _ => None,
        }
    }
}

/// The cheapest node so far.
struct Best {
    cost: PreemptionCost,
    node: NodeId,
    /// The only pod that goes, if its job can do without.
    spare: Option<PodId>,
    /// Where other pods of that job are.
    rivals: BTreeSet<NodeId>,
}

/// The only pod that goes, if its job can do without.
fn spare_pod(plan: &NodePlan) -> Option<PodId> {
    match plan.units.as_slice() {
        [unit] if !unit.is_rest => unit.pods.first().copied(),
        _ => None,
    }
}

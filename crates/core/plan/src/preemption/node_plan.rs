//! The cheapest way to make one pod fit on one node, as kube-scheduler finds it: everything that
//! may go is gone; what the pod leaves room for is put back, the most important first.

use dovetail_model::NodeId;

use super::cost::{self, BudgetTally, Weighs};
use super::covering;
use super::glance::Glance;
use super::put_back::put_back_order;
use super::search::Search;
use super::survey::{NodePlan, Outlook};
use super::units::Unit;
use dovetail_state::holdings::HoldingRecord;
use dovetail_state::shapes::{Demand, ShapeId};

impl Search<'_> {
    /// The cheapest way to make a pod fit on a node; `None` if there is none.
    pub(super) fn node_plan(
        &mut self,
        shape: ShapeId,
        node: NodeId,
        tally: &BudgetTally,
    ) -> Option<NodePlan> {
        let demand = self.state.shapes.get(shape).demand.clone();
        let mut units = self.units_on(&demand, node, tally);
        if units.is_empty() {
            return None;
        }
        let mark = self.state.begin();
        let mut records: Vec<Vec<HoldingRecord>> = Vec::with_capacity(units.len());
        for unit in &units {
            records.push(self.release_on(&demand, node, unit));
        }
        let fits = self.fits(shape, node);
        let stays =
            if fits { self.put_back(shape, node, &units, records, tally) } else { Vec::new() };
        self.state.rollback(mark);
        if !fits {
            return None;
        }
        let mut goes: Vec<bool> = stays.iter().map(|stays| !stays).collect();
        let of_greedy = cost::of(chosen(&units, &goes), tally, self.prey.relation.now_ms);
        let is_greedy_worth = self.worth().is_worth_on((shape, node), chosen(&units, &goes));
        let than = is_greedy_worth.then_some(&of_greedy);
        // What is put back in the order of importance is no more than need be, but others may cost
        // less together.
        let now_ms = self.prey.relation.now_ms;
        for set in cost::cheaper_sets(&units, than, tally, now_ms) {
            let leaving: Vec<Unit> = chosen(&units, &set).cloned().collect();
            if !tally.protects(leaving.iter())
                || !self.worth().is_worth_on((shape, node), leaving.iter())
                || !self.might_fit(&demand, node, &leaving)
            {
                continue;
            }
            let mark = self.state.begin();
            leaving.iter().for_each(|unit| drop(self.release_on(&demand, node, unit)));
            let fits = self.fits(shape, node);
            self.state.rollback(mark);
            if fits {
                goes = set;
                break;
            }
        }
        let mut goes = goes.into_iter();
        units.retain(|_| goes.next().unwrap_or(false));
        let cost = cost::of(units.iter(), tally, self.prey.relation.now_ms);
        let is_allowed = self.keeps_budgets(&units, &cost)
            && tally.protects(units.iter())
            && self.worth().is_worth_on((shape, node), units.iter());
        (is_allowed && self.operations_left > 0).then_some(NodePlan { cost, units })
    }

    /// What is known at a glance of a node that has no room for a pod: somebody must go, and costs
    /// something; and as many must go as hold the devices that the pod lacks.
    pub(super) fn glance(
        &mut self,
        (shape, demand): (ShapeId, &Demand),
        node: NodeId,
        tally: &BudgetTally,
    ) -> Outlook {
        let (prey, tolls) = (&self.prey, &mut self.tolls);
        let mut glance = Glance { state: &mut *self.state, prey, tolls };
        if let Some(known) = glance.of((shape, demand), node, tally) {
            self.operations_left = self.operations_left.saturating_sub(1);
            return known;
        }
        let units = self.units_on(demand, node, tally);
        let alone = |unit: &Unit| cost::of(std::iter::once(unit), tally, self.prey.relation.now_ms);
        let Some(least) = units.iter().map(alone).min() else { return Outlook::Hopeless };
        if !self.worth().might_be_worth_on((shape, node), &units) {
            return Outlook::Hopeless;
        }
        Outlook::AtLeast(match tally.weighs() {
            Weighs::Work => least.max(covering::of_devices(self.state, (shape, node), &units)),
            Weighs::Pods | Weighs::Age => least,
        })
    }

    /// Who may go from a node; nobody if that would not help.
    fn units_on(&mut self, demand: &Demand, node: NodeId, tally: &BudgetTally) -> Vec<Unit> {
        let mut units = self.prey.on_node(self.state, tally, node);
        units.retain(|unit| self.may_go(unit, tally));
        if !self.might_fit(demand, node, &units) {
            units.clear();
        }
        units
    }

    /// A quick look: whether the amounts that may go and what is free suffice.
    fn might_fit(&mut self, demand: &Demand, node: NodeId, units: &[Unit]) -> bool {
        let obstacle = demand.obstacle_aside_rules(self.state, node);
        self.operations_left = self.operations_left.saturating_sub(1);
        if obstacle.outlasts_everybody() {
            return false;
        }
        let hot = self.state.nodes.hot(node);
        let (mut cpu_milli, mut memory_bytes) = (hot.cpu_left_milli, hot.memory_left_bytes);
        for id in units.iter().flat_map(|unit| &unit.holdings) {
            let record = self.state.holdings.get(*id);
            if record.node == node {
                cpu_milli += record.amounts.cpu_milli;
                memory_bytes += record.amounts.memory_bytes;
            }
        }
        let enough = |left: i64, asked: i64| asked <= 0 || asked <= left;
        enough(cpu_milli, demand.amounts.cpu_milli)
            && enough(memory_bytes, demand.amounts.memory_bytes)
    }

    /// Takes a unit away, as far as the pod notices it: without rules that is what it holds on the
    /// node.
    fn release_on(&mut self, demand: &Demand, node: NodeId, unit: &Unit) -> Vec<HoldingRecord> {
        let mut records = Vec::new();
        for id in &unit.holdings {
            if !demand.rules.is_empty() || self.state.holdings.get(*id).node == node {
                records.push(self.state.release(*id));
                self.operations_left = self.operations_left.saturating_sub(1);
            }
        }
        records
    }

    /// Puts back what need not go; true for each unit that stays. Of a job that goes nothing stays.
    fn put_back(
        &mut self,
        shape: ShapeId,
        node: NodeId,
        units: &[Unit],
        records: Vec<Vec<HoldingRecord>>,
        tally: &BudgetTally,
    ) -> Vec<bool> {
        let mut stays = vec![false; units.len()];
        for at in put_back_order(units, tally) {
            let unit = &units[at];
            let rest_goes =
                |(other, stays): (&Unit, &bool)| other.job == unit.job && other.is_rest && !*stays;
            if !unit.is_rest && units.iter().zip(&stays).any(rest_goes) {
                continue;
            }
            let held: Vec<_> =
                records[at].iter().map(|record| self.state.hold_again(record.clone())).collect();
            self.operations_left = self.operations_left.saturating_sub(2 * held.len() as u64);
            stays[at] = self.fits(shape, node);
            if !stays[at] {
                for id in held.into_iter().rev() {
                    self.state.release(id);
                }
            }
        }
        stays
    }

    fn fits(&mut self, shape: ShapeId, node: NodeId) -> bool {
        self.operations_left = self.operations_left.saturating_sub(1);
        shape.fits(self.state, node)
    }
}

/// The units that go.
fn chosen<'u>(units: &'u [Unit], goes: &'u [bool]) -> impl Iterator<Item = &'u Unit> {
    units.iter().zip(goes).filter(|(_, goes)| **goes).map(|(unit, _)| unit)
}

//! What a set of victims costs.

use std::collections::BTreeMap;
use std::rc::Rc;

use dovetail_model::PreemptionCost;

use super::guarantees::{LendableParts, Takes};
use super::units::Unit;

/// What decides among victims of one priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Weighs {
    /// How many pods are preempted, as with kube-scheduler.
    #[default]
    Pods,
    /// The work that is lost.
    Work,
    /// Where the order divides the whole cluster, as KAI does: the jobs that were submitted last.
    Age,
}

/// How many pods each budget has lost so far, and what it allows.
#[derive(Clone, Debug, Default)]
pub(super) struct BudgetTally {
    /// By number of the selector.
    allowed: Rc<BTreeMap<u32, i64>>,
    weighs: Weighs,
    taken: BTreeMap<u32, i64>,
    /// What queues may lose ([`super::guarantees::Lendable`]), and have lost.
    lendable: Rc<LendableParts>,
    lost: BTreeMap<u16, i64>,
}

impl BudgetTally {
    pub(super) fn new(
        allowed: BTreeMap<u32, i64>,
        weighs: Weighs,
        lendable: Rc<LendableParts>,
    ) -> Self {
        let (taken, lost) = (BTreeMap::new(), BTreeMap::new());
        Self { allowed: Rc::new(allowed), weighs, taken, lendable, lost }
    }

    /// The same, with every part of the cost told.
    pub(super) fn in_full(&self) -> Self {
        Self { weighs: Weighs::Pods, ..self.clone() }
    }

    /// What decides among victims of one priority.
    pub(super) fn weighs(&self) -> Weighs {
        self.weighs
    }

    /// Whether any pod is in a budget.
    pub(super) fn has_budgets(&self) -> bool {
        !self.allowed.is_empty()
    }

    /// Whether a pod that these selectors count is in any budget.
    pub(super) fn counts(&self, selector: u32) -> bool {
        self.allowed.contains_key(&selector)
    }

    /// Whether the unit can never be stopped without a violation.
    pub(super) fn is_exhausted_for(&self, unit: &Unit) -> bool {
        unit.budgets.iter().any(|selector| self.is_exhausted(*selector))
    }

    /// Whether a budget allows nothing.
    pub(super) fn is_exhausted(&self, selector: u32) -> bool {
        self.allowed.get(&selector).is_some_and(|allowed| *allowed <= 0)
    }

    /// Whether a unit that takes so much takes of what its queues hold within their quotas.
    pub(super) fn breaks_quota(&self, takes: &Takes) -> bool {
        self.lendable.lack(takes, &self.lost)
    }

    /// Whether these units leave all queues what they hold within their quotas.
    pub(super) fn protects<'u>(&self, units: impl Iterator<Item = &'u Unit>) -> bool {
        let mut tally = self.clone();
        let mut units = units.filter(|unit| !unit.takes.is_empty());
        units.all(|unit| {
            let breaks = tally.breaks_quota(&unit.takes);
            tally.take(unit);
            !breaks
        })
    }

    /// Counts the pods of a unit; how many of them are beyond what a budget or a quota allows.
    pub(super) fn take(&mut self, unit: &Unit) -> u64 {
        let mut violations = u64::from(self.breaks_quota(&unit.takes));
        for (number, amount) in &unit.takes {
            *self.lost.entry(*number).or_default() += amount;
        }
        for selector in &unit.budgets {
            let taken = self.taken.entry(*selector).or_default();
            *taken += 1;
            let allowed = self.allowed.get(selector).copied().unwrap_or(i64::MAX);
            violations += u64::from(*taken > allowed.max(0));
        }
        violations
    }
}

/// What these victims cost together, with what was taken before them.
pub(super) fn of<'u>(
    units: impl Iterator<Item = &'u Unit>,
    tally: &BudgetTally,
    now_ms: u64,
) -> PreemptionCost {
    let mut tally = tally.clone();
    let mut cost =
        PreemptionCost { highest_priority: i64::from(i32::MIN), ..PreemptionCost::default() };
    for unit in units {
        let (priority, pods) = (i64::from(unit.priority), unit.pods.len() as u64);
        cost.budget_violations += tally.take(unit);
        let run_ms = now_ms.saturating_sub(unit.since_ms);
        if priority > cost.highest_priority {
            (cost.highest_priority, cost.longest_run_ms) = (priority, run_ms);
        } else if priority == cost.highest_priority {
            cost.longest_run_ms = cost.longest_run_ms.max(run_ms);
        }
        if tally.weighs != Weighs::Work {
            cost.priorities += (priority - i64::from(i32::MIN)).unsigned_abs() * pods;
            cost.pods += pods;
        }
        if tally.weighs != Weighs::Age {
            cost.work_lost_gpu_milli_ms =
                cost.work_lost_gpu_milli_ms.saturating_add(unit.work_lost_gpu_milli_ms);
            cost.requeue_gpu_milli_ms =
                cost.requeue_gpu_milli_ms.saturating_add(unit.requeue_gpu_milli_ms);
        }
    }
    cost
}

/// Of more units than this, not every set is tried.
pub(super) const MOST_UNITS: usize = 10;

/// Every set of units that costs less than this, if anything, the cheapest first, where work weighs
/// most. Of a job that goes nothing stays.
pub(super) fn cheaper_sets(
    units: &[Unit],
    than: Option<&PreemptionCost>,
    tally: &BudgetTally,
    now_ms: u64,
) -> Vec<Vec<bool>> {
    if tally.weighs != Weighs::Work || units.len() > MOST_UNITS {
        return Vec::new();
    }
    let mut sets: Vec<(PreemptionCost, u32)> = Vec::new();
    for set in 1..1_u32 << units.len() {
        let goes = |at: usize| set >> at & 1 == 1;
        let is_torn = units.iter().enumerate().any(|(at, unit)| {
            let others = units.iter().enumerate().filter(|(_, other)| other.job == unit.job);
            goes(at) && unit.is_rest && others.clone().any(|(other, _)| !goes(other))
        });
        let chosen = units.iter().enumerate().filter(|(at, _)| goes(*at)).map(|(_, unit)| unit);
        let cost = of(chosen, tally, now_ms);
        if !is_torn && than.is_none_or(|than| cost < *than) {
            sets.push((cost, set));
        }
    }
    sets.sort_unstable();
    let places = |set: u32| (0..units.len()).map(|at| set >> at & 1 == 1).collect();
    sets.into_iter().map(|(_, set)| places(set)).collect()
}

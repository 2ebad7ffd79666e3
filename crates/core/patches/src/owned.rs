//! Facts with the workloads of each owner and the owners that each budget protects: a large cluster
//! has as many patches as owners, and each asks for its own.

use std::collections::BTreeMap;
use std::ops::Deref;

use dovetail_facts::{Facts, ObjectRef, Workload};

/// Facts in which workloads are found by their owner, and what a budget protects by the budget.
#[derive(Debug)]
pub struct FactsByOwner<'f> {
    facts: &'f Facts,
    workloads: BTreeMap<&'f ObjectRef, Vec<&'f Workload>>,
    protected: BTreeMap<&'f ObjectRef, Vec<&'f ObjectRef>>,
}

impl<'f> FactsByOwner<'f> {
    /// Groups the workloads and budgets of these facts.
    pub fn of(facts: &'f Facts) -> Self {
        let mut workloads: BTreeMap<&ObjectRef, Vec<&Workload>> = BTreeMap::new();
        for workload in &facts.workloads {
            workloads.entry(&workload.owner).or_default().push(workload);
        }
        let mut protected: BTreeMap<&ObjectRef, Vec<&ObjectRef>> = BTreeMap::new();
        for budget in &facts.budgets {
            protected.entry(&budget.object).or_default().push(&budget.protects);
        }
        Self { facts, workloads, protected }
    }

    /// The workloads that a budget protects, by their owners.
    pub(super) fn protected_by(&self, budget: &ObjectRef) -> impl Iterator<Item = &[&'f Workload]> {
        let owners = self.protected.get(budget).into_iter().flatten();
        owners.map(move |owner| self.workloads_of(owner))
    }

    /// The workloads of an owner, in the order in which the facts have them.
    pub(super) fn workloads_of(&self, owner: &ObjectRef) -> &[&'f Workload] {
        self.workloads.get(owner).map(Vec::as_slice).unwrap_or_default()
    }
}

impl Deref for FactsByOwner<'_> {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        self.facts
    }
}

//! Facts with the workloads of each owner: a large cluster has as many patches as owners, and each
//! asks for its own.

use std::collections::BTreeMap;
use std::ops::Deref;

use crate::facts::{Facts, ObjectRef, Workload};

/// Facts in which workloads are found by their owner.
#[derive(Debug)]
pub struct FactsByOwner<'f> {
    facts: &'f Facts,
    workloads: BTreeMap<&'f ObjectRef, Vec<&'f Workload>>,
}

impl<'f> FactsByOwner<'f> {
    /// Groups the workloads of these facts.
    pub fn of(facts: &'f Facts) -> Self {
        let mut workloads: BTreeMap<&ObjectRef, Vec<&Workload>> = BTreeMap::new();
        for workload in &facts.workloads {
            workloads.entry(&workload.owner).or_default().push(workload);
        }
        Self { facts, workloads }
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

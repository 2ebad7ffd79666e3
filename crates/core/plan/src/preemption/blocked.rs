//! Which disruption budgets alone keep a job from making room for itself.

use std::collections::BTreeMap;

use dovetail_model::{JobId, PodId};

use super::decide::Preemption;
use super::units::Unit;
use crate::engine::Books;
use crate::reserve::Reservations;

/// More pods than are preempted at a time.
const UNLIMITED: i64 = i64::MAX / 2;

/// Budgets that allow fewer disruptions than a job needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockingBudgets {
    /// Their names, as those of [`dovetail_model::Budget`].
    pub budgets: Vec<String>,
    /// Pods of theirs that would be preempted otherwise.
    pub victims: Vec<PodId>,
}

impl Preemption {
    /// The budgets that a waiting job would have to exceed to start in the place of others; `None`
    /// if it would not start then either, or the search for that took too long. This is for a job
    /// for which a search found nothing. Asking changes nothing.
    pub(crate) fn blocking_budgets(
        &mut self,
        (books, reserve): (&mut Books, &Reservations),
        job: JobId,
        max_operations: u64,
    ) -> Option<BlockingBudgets> {
        let record = books.jobs.waiting(job)?;
        // Priority alone goes beyond budgets.
        let keeps_any = self.config.respect_budgets || books.turns.is_some();
        if self.budgets.is_empty() || !keeps_any || !books.might_preempt(record) {
            return None;
        }
        // Those that go for it were told already: budgets count them, and hold up nothing.
        if books.kept.claims.get(job).is_some() {
            return None;
        }
        let unlimited = self.budgets.keys().map(|name| (name.clone(), UNLIMITED)).collect();
        let found = self.search_under((books, reserve), job, unlimited, max_operations)?;
        let keeps =
            self.config.respect_budgets || found.units.iter().any(|unit| unit.keeps_budgets);
        let exceeded = self.exceeded(books, &found.units);
        if !keeps || exceeded.is_empty() {
            return None;
        }
        let is_theirs =
            |unit: &&Unit| unit.budgets.iter().any(|selector| exceeded.contains_key(selector));
        let theirs = found.units.iter().filter(is_theirs);
        let mut victims: Vec<PodId> = theirs.flat_map(|unit| &unit.pods).copied().collect();
        victims.sort_unstable();
        let mut budgets: Vec<String> = exceeded.into_values().collect();
        budgets.sort_unstable();
        Some(BlockingBudgets { budgets, victims })
    }

    /// Budgets that allow fewer disruptions than these units are pods, by number of their selector:
    /// what they allow beside the pods that were told to stop, as the search counts it.
    fn exceeded(&self, books: &mut Books, units: &[Unit]) -> BTreeMap<u32, String> {
        let mut taken: BTreeMap<u32, i64> = BTreeMap::new();
        for selector in units.iter().flat_map(|unit| &unit.budgets) {
            *taken.entry(*selector).or_default() += 1;
        }
        let allowed = self.disruptions_allowed(books);
        let counters = &mut books.placement.state.counters;
        let exceeded = self.budgets.keys().filter_map(|name| {
            let selector = counters.selector(name);
            let allowed = allowed.get(&selector).copied().unwrap_or(0);
            let is_exceeded = *taken.get(&selector)? > allowed.max(0);
            is_exceeded.then(|| (selector, name.clone()))
        });
        exceeded.collect()
    }
}

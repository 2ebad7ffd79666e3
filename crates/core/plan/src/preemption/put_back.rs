//! Who of those that may go is tried first, whether it can stay.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use dovetail_model::JobId;

use super::cost::BudgetTally;
use super::units::Unit;

/// Places of units in the order in which it is tried whether they can stay: those that would
/// violate a budget first, then the most important; what cannot go without the others of its job
/// before any of these.
pub(super) fn put_back_order(units: &[Unit], tally: &BudgetTally) -> Vec<usize> {
    let mut order: Vec<usize> = (0..units.len()).collect();
    order.sort_by_key(|at| Reverse(units[*at].importance(tally.weighs())));
    let mut violates = vec![false; units.len()];
    let mut of_budgets = tally.clone();
    for at in &order {
        let breaks_quota = u64::from(of_budgets.breaks_quota(&units[*at].takes));
        violates[*at] = of_budgets.take(&units[*at]) > breaks_quota;
    }
    // What a queue may lose, the least important lose first.
    let mut of_quotas = tally.clone();
    for at in order.iter().rev() {
        violates[*at] |= of_quotas.breaks_quota(&units[*at].takes);
        of_quotas.take(&units[*at]);
    }
    order.sort_by_key(|at| !violates[*at]);
    let mut ranks = vec![0; units.len()];
    let mut first_of: BTreeMap<JobId, usize> = BTreeMap::new();
    for (rank, at) in order.iter().enumerate() {
        ranks[*at] = rank;
        first_of.entry(units[*at].job).or_insert(rank);
    }
    order.sort_by_key(|at| match units[*at].is_rest {
        true => (first_of[&units[*at].job], false),
        false => (ranks[*at], true),
    });
    order
}

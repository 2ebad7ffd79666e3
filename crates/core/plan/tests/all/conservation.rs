//! Work conservation: after a step, no waiting job fits. What fits is asked of the naive search,
//! which knows nothing of sleeping classes.

use dovetail_model::JobId;
use dovetail_plan::Order;
use proptest::prelude::*;

use crate::differential::Twins;
use crate::drive;
use crate::recipe::{Recipe, cases, recipes};

/// Waiting jobs that fit and are within quota.
fn idle_chances(twins: &mut Twins) -> Vec<JobId> {
    let waiting = twins.indexed.snapshot().jobs.into_iter().filter(|job| job.start_ms.is_none());
    waiting.filter(|job| twins.naive.ask().fits_without(job, &[])).map(|job| job.id).collect()
}

proptest! {
    #![proptest_config(cases(4_000))]

    #[test]
    fn no_job_waits_that_fits(mut recipe in recipes(5, 5, 25)) {
        // All orders but one skip; a random pick may succeed the next time it is tried.
        recipe.config[7] %= 3;
        let name = drive::policy(&recipe, None).name;
        let policy = if name == "random" { "best-fit" } else { name.as_str() };
        prop_assert_ne!(drive::order(&recipe), Order::Fifo);
        let mut twins = Twins::of(&recipe, Some(policy));
        for bytes in &recipe.events {
            twins.step(bytes)?;
            let chances = idle_chances(&mut twins);
            prop_assert!(chances.is_empty(), "{:?} fit and wait", chances);
        }
    }
}

/// In strict submission order nobody overtakes: the first that waits does not fit.
fn first_of_fifo(recipe: &Recipe) -> Result<(), TestCaseError> {
    let mut twins = Twins::of(recipe, Some("first-fit"));
    for bytes in &recipe.events {
        twins.step(bytes)?;
        let jobs = twins.indexed.snapshot().jobs;
        let waiting = jobs.iter().filter(|job| job.start_ms.is_none());
        let first = waiting.min_by_key(|job| (std::cmp::Reverse(job.priority), job.id));
        if let Some(first) = first {
            prop_assert!(
                !twins.naive.ask().fits_without(first, &[]),
                "{:?} fits and waits",
                first.id
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn the_first_in_strict_order_does_not_fit(mut recipe in recipes(5, 5, 25)) {
        recipe.config[7] = 2;
        first_of_fifo(&recipe)?;
    }
}

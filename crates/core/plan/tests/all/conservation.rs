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

/// After no event of a recipe does a job wait that fits.
fn conserves_work(recipe: Recipe) -> Result<(), TestCaseError> {
    // A random pick may succeed the next time it is tried.
    let name = drive::policy(&recipe, None).name;
    let policy = if name == "random" { "best-fit" } else { name.as_str() };
    prop_assert_ne!(drive::order(&recipe), Order::Fifo);
    let mut twins = Twins::of(&recipe, Some(policy));
    for bytes in &recipe.events {
        twins.step(bytes)?;
        let chances = idle_chances(&mut twins);
        prop_assert!(chances.is_empty(), "{:?} fit and wait", chances);
    }
    Ok(())
}

/// What is kept for less important jobs is given back for a job that would go where somebody
/// leaves: it starts at once where that was.
#[test]
fn what_is_given_back_is_used_at_once() {
    let text = include_str!("recipes/given-back-beside-one-that-leaves.txt");
    conserves_work(skipping(Recipe::read(text))).unwrap_or_else(|problem| panic!("{problem}"));
}

/// What is given up for a job whose other pods must wait may have room for more than it asked.
#[test]
fn the_rest_of_what_is_given_up_goes_to_the_next() {
    let text = include_str!("recipes/given-up-beyond-need.txt");
    conserves_work(skipping(Recipe::read(text))).unwrap_or_else(|problem| panic!("{problem}"));
}

/// A node with counted devices, cut and whole ones: room that is given up there was needed.
#[test]
fn room_on_a_node_with_whole_and_cut_devices_is_needed() {
    let text = include_str!("recipes/room-beside-slices.txt");
    conserves_work(skipping(Recipe::read(text))).unwrap_or_else(|problem| panic!("{problem}"));
}

proptest! {
    #![proptest_config(cases(1_500))]

    #[test]
    fn no_job_waits_that_fits(recipe in recipes(5, 5, 25)) {
        conserves_work(skipping(recipe))?;
    }

    /// Its terms grow with time and its presets preempt: no class of jobs sleeps through a start.
    #[test]
    fn no_job_waits_that_fits_in_order_dovetail(mut recipe in recipes(5, 5, 25)) {
        let settings: Vec<u8> = (0..=u8::MAX).filter(|&byte| by_turns(byte)).collect();
        recipe.config[7] = settings[usize::from(recipe.config[7]) % settings.len()];
        prop_assert_eq!(drive::order(&recipe), Order::Dovetail);
        conserves_work(recipe)?;
    }
}

/// Whether a byte means order `dovetail` without reservations, for which room is kept free.
fn by_turns(byte: u8) -> bool {
    byte % 6 >= 4 && byte / 8 % 4 < 2
}

/// One of the orders that skip what does not fit.
fn skipping(mut recipe: Recipe) -> Recipe {
    recipe.config[7] %= 3;
    recipe
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

//! Up to 1,000 shapes at once: both searches still decide alike, with room for all trees and for one.

use std::sync::Arc;

use dovetail_model::Requirement;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::differential::Twins;
use crate::recipe::{Recipe, cases, recipes};

/// So many distinct shapes made from those of a recipe.
fn multiplied(recipe: &Recipe, shapes: usize) -> Vec<Arc<Requirement>> {
    let few = recipe.shapes();
    let distinct = |index: usize| {
        let mut shape = Requirement::clone(&few[index % few.len()]);
        shape.resources.cpu_milli += (index / few.len()) as i64;
        Arc::new(shape)
    };
    (0..shapes).map(distinct).collect()
}

fn all_decide_alike(recipe: &Recipe, shapes: usize) -> Result<(), TestCaseError> {
    let mut twins = Twins::of(recipe, None);
    twins.history.use_shapes(multiplied(recipe, shapes));
    // Every shape comes once, with the recipe's events in between.
    for round in 0..shapes {
        twins.step(&submit_of(round))?;
        if round % 8 == 0 {
            twins.step(&recipe.events[round / 8 % recipe.events.len()])?;
        }
    }
    Ok(())
}

/// A job of one pod of the given shape.
fn submit_of(shape: usize) -> [u8; 4] {
    let [low, high, ..] = (shape as u32).to_le_bytes();
    [0, 0, low, high]
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 100, ..cases(8) })]

    #[test]
    fn a_thousand_shapes(recipe in recipes(8, 12, 40)) {
        all_decide_alike(&recipe, 1_000)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 1_000, ..cases(100) })]

    #[test]
    fn a_hundred_shapes(recipe in recipes(8, 12, 40)) {
        all_decide_alike(&recipe, 100)?;
    }
}

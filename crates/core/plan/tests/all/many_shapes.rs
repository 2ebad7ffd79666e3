//! From one shape to 1,000 at once: both searches still decide alike, with room for all trees and
//! for one.
//!
//! Few shapes with long and varied histories are in [`crate::differential`]; here the number of
//! shapes varies.

use std::sync::Arc;

use dovetail_model::Requirement;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{TestCaseError, TestRunner};

use crate::differential::Twins;
use crate::recipe::{Recipe, cases, recipes};

/// Most shapes of a case.
const MOST: usize = 1_000;

/// Numbers of shapes from 1 to [`MOST`]: each power of two alike often, and both ends by
/// themselves.
fn shape_counts() -> impl Strategy<Value = usize> {
    let between = (0..10_u32).prop_flat_map(|twos| 1 << twos..=MOST.min((2 << twos) - 1));
    prop_oneof![3 => Just(1), 5 => between, 2 => Just(MOST)]
}

/// So many distinct shapes made from those of a recipe. Shapes of a recipe that differ in CPU alone
/// differ by 500 or more, and two of them make at most 500 each.
fn multiplied(recipe: &Recipe, shapes: usize) -> Vec<Arc<Requirement>> {
    let mut few: Vec<Arc<Requirement>> = Vec::new();
    for shape in recipe.shapes() {
        if !few.contains(&shape) {
            few.push(shape);
        }
    }
    let distinct = |index: usize| {
        let mut shape = Requirement::clone(&few[index % few.len()]);
        shape.resources.cpu_milli += (index / few.len()) as i64;
        Arc::new(shape)
    };
    (0..shapes).map(distinct).collect()
}

/// Every shape is asked for in one instant; then the recipe's events wake who sleeps.
fn all_decide_alike_at_once(recipe: &Recipe, shapes: usize) -> Result<(), TestCaseError> {
    let mut twins = Twins::of(recipe, None);
    twins.history.use_shapes(multiplied(recipe, shapes));
    let jobs: Vec<[u8; 3]> = (0..shapes).map(single_pod).collect();
    twins.submit_together(jobs.iter().map(|bytes| &bytes[..]))?;
    let mut last = None;
    for bytes in &recipe.events {
        last = Some(twins.decide(bytes)?);
    }
    last.map_or(Ok(()), |event| twins.recheck(&event))
}

/// Every shape comes once, one after the other, with the recipe's events in between.
fn all_decide_alike_in_turn(recipe: &Recipe, shapes: usize) -> Result<(), TestCaseError> {
    let mut twins = Twins::of(recipe, None);
    twins.history.use_shapes(multiplied(recipe, shapes));
    for round in 0..shapes {
        let [low, high, _] = single_pod(round);
        twins.step(&[0, 0, low, high])?;
        if round % 8 == 0 {
            twins.step(&recipe.events[round / 8 % recipe.events.len()])?;
        }
    }
    Ok(())
}

/// A job of one pod of the given shape.
fn single_pod(shape: usize) -> [u8; 3] {
    let [low, high, ..] = (shape as u32).to_le_bytes();
    [low, high, 0]
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 5_000, ..cases(1_500) })]

    #[test]
    fn one_to_a_thousand_shapes(recipe in recipes(3, 6, 4), shapes in shape_counts()) {
        all_decide_alike_at_once(&recipe, shapes)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 100, ..cases(2) })]

    #[test]
    fn a_thousand_shapes_in_turn(recipe in recipes(8, 12, 40)) {
        all_decide_alike_in_turn(&recipe, MOST)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 1_000, ..cases(40) })]

    #[test]
    fn a_hundred_shapes_in_turn(recipe in recipes(8, 12, 40)) {
        all_decide_alike_in_turn(&recipe, 100)?;
    }
}

#[test]
fn the_cases_have_the_shapes_they_are_said_to_have() {
    let mut runner = TestRunner::new(cases(1));
    let (mut of_one, mut of_hundreds, mut of_most) = (0, 0, 0);
    for _ in 0..10_000 {
        let shapes = shape_counts().new_tree(&mut runner).expect("no filter rejects").current();
        of_one += u32::from(shapes == 1);
        of_hundreds += u32::from((100..=MOST).contains(&shapes));
        of_most += u32::from(shapes == MOST);
    }
    assert!(
        of_one >= 2_800 && of_hundreds >= 3_000 && of_most >= 1_900,
        "{of_one} {of_hundreds} {of_most}"
    );
    for _ in 0..100 {
        let recipe = recipes(3, 6, 4).new_tree(&mut runner).expect("no filter rejects").current();
        let mut shapes: Vec<String> =
            multiplied(&recipe, MOST).iter().map(|shape| format!("{shape:?}")).collect();
        shapes.sort_unstable();
        shapes.dedup();
        assert_eq!(shapes.len(), MOST, "{recipe:?}");
    }
}

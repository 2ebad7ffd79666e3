//! Looks for a short history in which the same goes wrong.

use std::collections::BTreeSet;

use crate::play::{HistoryFailure, play};
use crate::recipe::Recipe;

/// The shortest history that it finds in which the same kind of thing goes wrong, with what that
/// is. `None` if nothing goes wrong in the history itself.
pub fn shrink(recipe: &Recipe) -> Option<(Recipe, HistoryFailure)> {
    let mut failure = play(recipe).failure?;
    let kind = kind_of(&failure.problem);
    let mut best = only(recipe, &failure.happened);
    let mut part = failure.happened.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut is_shorter = false;
        while at < failure.happened.len() {
            let mut names = failure.happened.clone();
            names.drain(at..names.len().min(at + part));
            let shorter = only(recipe, &names);
            match play(&shorter).failure.filter(|it| kind_of(&it.problem) == kind) {
                Some(it) => {
                    (best, failure, is_shorter) = (shorter, it, true);
                }
                None => at += part,
            }
        }
        if part == 1 && !is_shorter {
            return Some((best, failure));
        }
        part = (part / 2).max(1);
    }
}

fn only(recipe: &Recipe, names: &[String]) -> Recipe {
    let names: BTreeSet<String> = names.iter().cloned().collect();
    Recipe { only: Some(names), ..recipe.clone() }
}

/// A problem without the numbers and names in it.
fn kind_of(problem: &str) -> String {
    let is_name = |word: &&str| word.bytes().any(|byte| byte.is_ascii_digit());
    let words = problem.split(' ').filter(|word| !is_name(word));
    words.take(8).collect::<Vec<_>>().join(" ")
}

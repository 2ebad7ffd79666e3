//! Which history is played.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A seed, and what of its history happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// All that is drawn follows from it.
    pub seed: u64,
    /// What the scene has besides pods and nodes.
    pub extras: Extras,
    /// Names of the steps and faults that happen; `None`: all of them.
    pub only: Option<BTreeSet<String>>,
}

/// What a scene has besides pods and nodes: scenes of one seed differ in nothing else, so a history
/// that was kept stays what it was when scenes are given more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extras {
    None,
    /// Queues and disruption budgets.
    Queues,
    /// These, orders and reservations.
    All,
}

impl Extras {
    /// What stands before `seed`.
    fn word(self) -> &'static str {
        match self {
            Self::None => "plain ",
            Self::Queues => "unordered ",
            Self::All => "",
        }
    }
}

/// A text that is no recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipeError;

impl fmt::Display for RecipeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(
            "a recipe begins with `seed NUMBER`, `unordered seed NUMBER` or `plain seed NUMBER`, \
             then `only` and one step or fault per line",
        )
    }
}

impl std::error::Error for RecipeError {}

impl Recipe {
    /// Everything that follows from a seed.
    pub fn all_of(seed: u64) -> Self {
        Self { seed, extras: Extras::All, only: None }
    }

    /// Whether a step or fault of this name happens.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(name))
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}seed {}", self.extras.word(), self.seed)?;
        let Some(only) = &self.only else { return Ok(()) };
        writeln!(out, "only")?;
        only.iter().try_for_each(|name| writeln!(out, "{name}"))
    }
}

impl FromStr for Recipe {
    type Err = RecipeError;

    /// As it is shown. Lines that begin with `#` say what the history is for.
    fn from_str(text: &str) -> Result<Self, RecipeError> {
        let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let first = lines.next().ok_or(RecipeError)?;
        let all = [Extras::None, Extras::Queues, Extras::All];
        let (extras, seed) = all
            .into_iter()
            .find_map(|extras| Some((extras, first.strip_prefix(extras.word())?)))
            .and_then(|(extras, rest)| Some((extras, rest.strip_prefix("seed ")?)))
            .ok_or(RecipeError)?;
        let seed = seed.parse().map_err(|_| RecipeError)?;
        let only = match lines.next() {
            None => None,
            Some("only") => Some(lines.map(str::to_owned).collect()),
            Some(_) => return Err(RecipeError),
        };
        Ok(Self { seed, extras, only })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_read_as_it_is_shown() {
        let only = Some(["step 3".to_owned(), "lost POST x 2".to_owned()].into());
        let of = |extras| Recipe { seed: 8, extras, only: only.clone() };
        for recipe in [Recipe::all_of(7), of(Extras::None), of(Extras::Queues), of(Extras::All)] {
            assert_eq!(format!("# why\n{recipe}").parse(), Ok(recipe));
        }
        assert_eq!("seed x".parse::<Recipe>(), Err(RecipeError));
    }
}

//! Which history is played.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A seed, and what of its history happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// All that is drawn follows from it.
    pub seed: u64,
    /// The scene has pods and nodes alone.
    pub is_plain: bool,
    /// Names of the steps and faults that happen; `None`: all of them.
    pub only: Option<BTreeSet<String>>,
}

/// A text that is no recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipeError;

impl fmt::Display for RecipeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(
            "a recipe begins with `seed NUMBER` or `plain seed NUMBER`, then `only` and one step or \
             fault per line",
        )
    }
}

impl std::error::Error for RecipeError {}

impl Recipe {
    /// Everything that follows from a seed.
    pub fn all_of(seed: u64) -> Self {
        Self { seed, is_plain: false, only: None }
    }

    /// Whether a step or fault of this name happens.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(name))
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = if self.is_plain { "plain " } else { "" };
        writeln!(out, "{plain}seed {}", self.seed)?;
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
        let plain = first.strip_prefix("plain ");
        let (is_plain, seed) = (plain.is_some(), plain.unwrap_or(first).strip_prefix("seed "));
        let seed = seed.and_then(|seed| seed.parse().ok()).ok_or(RecipeError)?;
        let only = match lines.next() {
            None => None,
            Some("only") => Some(lines.map(str::to_owned).collect()),
            Some(_) => return Err(RecipeError),
        };
        Ok(Self { seed, is_plain, only })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_read_as_it_is_shown() {
        let only = Some(["step 3".to_owned(), "lost POST x 2".to_owned()].into());
        for recipe in [Recipe::all_of(7), Recipe { seed: 8, is_plain: true, only }] {
            assert_eq!(format!("# why\n{recipe}").parse(), Ok(recipe));
        }
        assert_eq!("seed x".parse::<Recipe>(), Err(RecipeError));
    }
}

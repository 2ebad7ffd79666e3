//! The regimes by name, for `dovetail sim arena --list`.

use std::collections::BTreeMap;

use dovetail_console::table::whole;
use dovetail_sim::arena::{ArenaData, Regime};
use serde::Serialize;

/// The regimes that were asked for, as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct RegimesDocument {
    regimes: Vec<Listed>,
}

#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    family: &'static str,
    figure: &'static str,
    unit: &'static str,
    higher_is_better: bool,
    /// Whether it is in the quick subset.
    quick: bool,
    /// What its data lacks: it would be left out.
    lacks: Option<String>,
}

impl RegimesDocument {
    pub(crate) fn of(regimes: &[Regime], data: &ArenaData) -> Self {
        let listed = |regime: &Regime| {
            let figure = regime.figure();
            Listed {
                name: regime.name.clone(),
                family: regime.family,
                figure: figure.key,
                unit: figure.unit,
                higher_is_better: figure.higher_is_better,
                quick: regime.is_quick,
                lacks: regime.recipe.lacks(data),
            }
        };
        Self { regimes: regimes.iter().map(listed).collect() }
    }

    /// One regime a line, its name first and whole, so that it can be copied; then why some are
    /// left out.
    pub(crate) fn text(&self) -> String {
        let width = self.regimes.iter().map(|one| one.name.len()).max().unwrap_or(0);
        let mut text = String::new();
        for one in &self.regimes {
            let Listed { name, figure, .. } = one;
            let quick = if one.quick { ", quick" } else { "" };
            let left_out = if one.lacks.is_some() { ", skipped" } else { "" };
            text += &format!("{name:width$}  {figure}{quick}{left_out}\n");
        }
        for (lacks, regimes) in by_reason(self.regimes.iter().filter_map(|one| one.lacks.as_ref()))
        {
            text += &format!("\nskipped {}: {lacks}", whole(regimes as u64));
        }
        text.trim_end().to_owned() + "\n"
    }
}

/// How many regimes lack what.
pub(crate) fn by_reason<'a>(lacks: impl Iterator<Item = &'a String>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for lacks in lacks {
        *counts.entry(lacks.as_str()).or_default() += 1;
    }
    counts
}

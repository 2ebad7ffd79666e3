//! The regimes by name, for `dovetail sim arena --list`.

use dovetail_console::table::table;
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

    pub(crate) fn text(&self) -> String {
        let row = |one: &Listed| {
            let quick = if one.quick { "quick" } else { "" };
            let lacks = one.lacks.clone().unwrap_or_default();
            vec![
                one.name.clone(),
                one.family.to_owned(),
                one.figure.to_owned(),
                quick.to_owned(),
                lacks,
            ]
        };
        let header = ["regime", "family", "judged by", "", "left out because"];
        table(&header, self.regimes.iter().map(row).collect())
    }
}

//! The rules of the house, checked. One file per rule; each has a test that breaks it.

mod clock;
mod conflicts;
mod cycles;
mod direction;
mod docs;
mod examples;
mod formats;
mod fuzz;
mod labels;
mod licences;
pub(crate) mod lines;
mod links;
mod lints;
mod machine;
mod map_order;
mod names;
mod outcome;
mod platform;
mod purity;
mod shown;
mod sizes;
mod source;
mod spdx;
mod types;
mod unit_tests;
mod unused;
mod widths;
mod words;
mod workspace;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};

use outcome::{Outcome, Violation};
use workspace::Workspace;

/// A rule: its name, and the function that looks for what breaks it.
struct Rule {
    name: &'static str,
    check: fn(&Workspace) -> Result<Outcome>,
}

const RULES: [Rule; 23] = [
    Rule { name: "direction", check: direction::check },
    Rule { name: "purity", check: purity::check },
    Rule { name: "platform", check: platform::check },
    Rule { name: "clock", check: clock::check },
    Rule { name: "map-order", check: map_order::check },
    Rule { name: "licences", check: licences::check },
    Rule { name: "lints", check: lints::check },
    Rule { name: "sizes", check: sizes::check },
    Rule { name: "types", check: types::check },
    Rule { name: "cycles", check: cycles::check },
    Rule { name: "unused", check: unused::check },
    Rule { name: "unit-tests", check: unit_tests::check },
    Rule { name: "names", check: names::check },
    Rule { name: "machine", check: machine::check },
    Rule { name: "fuzz", check: fuzz::check },
    Rule { name: "formats", check: formats::check },
    Rule { name: "labels", check: labels::check },
    Rule { name: "links", check: links::check },
    Rule { name: "conflicts", check: conflicts::check },
    Rule { name: "docs", check: docs::check },
    Rule { name: "examples", check: examples::check },
    Rule { name: "words", check: words::check },
    Rule { name: "widths", check: widths::check },
];

/// Checks the named rules, or all where none is named, and prints every violation.
pub(crate) fn run(names: &[&str]) -> Result<ExitCode> {
    if let Some(unknown) = names.iter().find(|name| RULES.iter().all(|rule| rule.name != **name)) {
        let known: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
        bail!("no rule is named `{unknown}`: the rules are {}", known.join(", "));
    }
    let workspace = Workspace::load()?;
    let mut out = std::io::stdout().lock();
    let mut wrong = 0;
    for rule in RULES.iter().filter(|rule| names.is_empty() || names.contains(&rule.name)) {
        let outcome = (rule.check)(&workspace)?;
        for Violation { path, line, message, mend } in &outcome.violations {
            writeln!(out, "{path}:{line}: {}: {message}: {mend}", rule.name)?;
        }
        let verdict = match outcome.violations.len() {
            0 => "ok".to_owned(),
            count => format!("{count} wrong"),
        };
        writeln!(out, "{:<10} {verdict:<9} {}", rule.name, outcome.looked_at)?;
        wrong += outcome.violations.len();
    }
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

//! The result of `dovetail sim arena` as JSON, text and HTML.

use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_comparison::arena::{ArenaParts, page as arena_page};
use dovetail_console::table::{plural, table};
use dovetail_policy::named::POLICIES;
use dovetail_sim::arena::{Bound, RegimeGroup, RegimeVerdict, Summary};
use dovetail_units::amount::figure;
use serde::Serialize;

use dovetail_replays::recording::BUILD;

/// What is said in place of the targets where the policy that they are for was not run.
const NO_TARGETS: &str =
    "The targets of the default policy are not judged, because dovetail was not run.";

fn orders_of(count: u64) -> String {
    plural(count as usize, "order of the nodes", "orders of the nodes")
}

/// The result, as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct ArenaDocument {
    pub(crate) regimes: Vec<RegimeVerdict>,
    pub(crate) summary: BTreeMap<String, Summary>,
    /// Regimes of one kind together.
    pub(crate) groups: Vec<RegimeGroup>,
    /// What the default policy must reach.
    pub(crate) bounds: Vec<Bound>,
    pub(crate) seeds: Vec<u64>,
    pub(crate) orders: u64,
    /// Regimes whose data is not there.
    pub(crate) left_out: Vec<String>,
    /// What it lacks, by regime.
    pub(crate) lacks: BTreeMap<String, String>,
    /// Simple policies that were not run, without which references were chosen.
    pub(crate) simple_not_run: Vec<&'static str>,
}

impl ArenaDocument {
    /// The matrix as one file.
    pub(crate) fn html(&self) -> Result<String> {
        let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
        let mut notes =
            vec![format!("Seeds {}, {} each.", seeds.join(" "), orders_of(self.orders))];
        if !self.left_out.is_empty() {
            let left_out = self.left_out.len();
            notes.push(plural(left_out, "regime has no data here.", "regimes have no data here."));
        }
        if !self.has_default() {
            notes.push(NO_TARGETS.to_owned());
        }
        if !self.simple_not_run.is_empty() {
            let names = self.simple_not_run.join(", ");
            notes.push(format!("References and easy regimes were determined without {names}."));
        }
        let program = format!("dovetail {BUILD}");
        Ok(arena_page(self.parts(), &program, &notes)?)
    }

    fn parts(&self) -> ArenaParts<'_> {
        let (verdicts, summary, bounds) = (&self.regimes, &self.summary, &self.bounds);
        ArenaParts { verdicts, summary, bounds }
    }

    /// What a person wants to see: the default against the reference, regime by regime, all
    /// policies in sum, and what the default must reach.
    pub(crate) fn text(&self) -> String {
        let targets =
            if self.has_default() { self.bounds_text() } else { format!("{NO_TARGETS}\n") };
        let tables = [self.regimes_text(), self.summary_text(), targets];
        tables.into_iter().filter(|table| !table.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// Whether the default policy was run, which the targets are for.
    fn has_default(&self) -> bool {
        self.regimes.iter().any(|verdict| verdict.by_policy.contains_key(POLICIES[0].0))
    }

    /// Without the columns of the default policy where it was not run.
    fn regimes_text(&self) -> String {
        let (name, _) = POLICIES[0];
        let has_default = self.has_default();
        let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), figure);
        let row = |verdict: &RegimeVerdict| {
            let own = verdict.by_policy.get(name).map(|estimate| estimate.mean);
            let reference = verdict.reference.as_deref();
            let best = reference.and_then(|name| verdict.by_policy.get(name)).map(|e| e.mean);
            let regret = verdict.regret_percent.get(name);
            let none = if has_default { "-" } else { "" };
            let regret = regret.map_or_else(|| none.to_owned(), |regret| format!("{regret:+.1}"));
            let mut cells = vec![verdict.name.clone(), verdict.unit.to_owned()];
            cells.extend(has_default.then(|| shown(own)));
            cells.extend([
                shown(best),
                reference.unwrap_or("-").to_owned(),
                if verdict.easy { "easy".to_owned() } else { regret },
            ]);
            cells
        };
        let mut header = vec!["regime", "unit"];
        header.extend(has_default.then_some(name));
        let regret = if has_default { "regret %" } else { "" };
        header.extend(["reference's", "reference", regret]);
        let regimes = table(&header, self.regimes.iter().map(row).collect());
        format!(
            "{regimes}Regret: on every other seed; the reference was chosen on the rest. Other \
             columns: over all seeds.\n"
        )
    }

    /// Nothing where no regime has a reference.
    fn summary_text(&self) -> String {
        if self.summary.is_empty() {
            return String::new();
        }
        let header = ["policy", "mean regret %", "worst regret %", "wins", "of"];
        let row = |(policy, summary): (&String, &Summary)| {
            vec![
                policy.clone(),
                format!("{:.2}", summary.mean_regret_percent),
                format!("{:.1}", summary.worst_regret_percent),
                summary.wins.to_string(),
                summary.regimes.to_string(),
            ]
        };
        table(&header, self.summary.iter().map(row).collect())
    }

    fn bounds_text(&self) -> String {
        if self.bounds.is_empty() {
            return String::new();
        }
        let row = |bound: &Bound| {
            vec![
                bound.group.clone(),
                bound.what.clone(),
                bound.unit.to_owned(),
                bound.shown(),
                format!("{} {}", if bound.at_most { "<=" } else { ">=" }, bound.target),
                bound.judged(),
                bound.regime.clone().unwrap_or_default(),
            ]
        };
        let header = ["group", POLICIES[0].0, "unit", "is", "target", "", "regime"];
        table(&header, self.bounds.iter().map(row).collect())
    }
}

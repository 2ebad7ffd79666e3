//! The matrix of regimes and policies as one HTML file.

use std::collections::BTreeMap;

use dovetail_units::amount::figure;

use crate::ReportError;
use crate::page::{PageBlock, PageHeader, PageTable, Section, TableCell, TableRow, laid_out};
use dovetail_sim::arena::Bound;
use dovetail_sim::arena::{ORACLE, RegimeVerdict, Summary, TIE_PERCENT};

/// What a page shows.
#[derive(Clone, Copy, Debug)]
pub struct ArenaParts<'p> {
    pub verdicts: &'p [RegimeVerdict],
    /// Every policy.
    pub summary: &'p BTreeMap<String, Summary>,
    /// What the default must reach.
    pub bounds: &'p [Bound],
}

/// The result as one HTML file: no script, no outside resource.
///
/// # Errors
/// [`ReportError`] if the page cannot be laid out.
pub fn page(parts: ArenaParts<'_>, program: &str, notes: &[String]) -> Result<String, ReportError> {
    let ArenaParts { verdicts, summary, bounds } = parts;
    let mut policies: Vec<&String> =
        verdicts.iter().flat_map(|verdict| verdict.by_policy.keys()).collect();
    policies.sort_unstable();
    policies.dedup();
    let mut sections = vec![in_sum(summary)];
    if !bounds.is_empty() {
        sections.push(required(bounds));
    }
    let mut families: Vec<&str> = Vec::new();
    for verdict in verdicts {
        if !families.contains(&verdict.family) {
            families.push(verdict.family);
        }
    }
    for family in families {
        let of_family = verdicts.iter().filter(|verdict| verdict.family == family);
        let rows = of_family.map(|verdict| row(verdict, &policies)).collect();
        let mut header = vec!["regime".to_owned()];
        header.extend(policies.iter().map(|policy| title(policy)));
        let caption =
            "Mean over seeds and node orders, and the regret in percent of the reference (for \
             allocation: in percentage points)"
                .to_owned();
        sections.push(Section {
            id: family.to_owned(),
            title: family.to_owned(),
            intro: "In each row one simple policy is the reference; the others show how much worse they are, \
                    on the seeds on which it was not chosen. Negative is better than the reference."
                .to_owned(),
            blocks: vec![PageBlock::Table { table: PageTable { caption, header, rows } }],
        });
    }
    let head = PageHeader { title: "dovetail arena", program, command: None, notes };
    laid_out(&head, &sections)
}

fn title(policy: &str) -> String {
    match policy {
        ORACLE => format!("{policy} (oracle)"),
        _ => policy.to_owned(),
    }
}

fn in_sum(summary: &BTreeMap<String, Summary>) -> Section {
    let row = |(policy, summary): (&String, &Summary)| TableRow {
        head: title(policy),
        class: "",
        cells: vec![
            TableCell::plain(format!("{:.2}", summary.mean_regret_percent)),
            TableCell::plain(format!("{:.1}", summary.worst_regret_percent)),
            TableCell::plain(summary.wins.to_string()),
            TableCell::plain(summary.regimes.to_string()),
        ],
    };
    let header = ["policy", "mean regret, %", "worst regret, %", "wins", "of regimes"];
    let table = PageTable {
        caption: "Over the regimes that are not easy".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows: summary.iter().map(row).collect(),
    };
    Section {
        id: "all".to_owned(),
        title: "All regimes".to_owned(),
        intro: "Regret is how much worse a policy is than the best simple one of the regime. A win: no policy \
                but the oracle is better by more than 0.1%."
            .to_owned(),
        blocks: vec![PageBlock::Table { table }],
    }
}

fn required(bounds: &[Bound]) -> Section {
    let row = |bound: &Bound| {
        let sign = if bound.at_most { "at most" } else { "at least" };
        let words = |text: &str| TableCell { is_words: true, ..TableCell::plain(text) };
        TableRow {
            head: format!("{}: {}", bound.group, bound.what),
            class: "",
            cells: vec![
                TableCell { note: bound.unit.to_owned(), ..TableCell::plain(bound.shown()) },
                TableCell { note: sign.to_owned(), ..TableCell::plain(bound.target.to_string()) },
                words(&bound.judged()),
                words(bound.regime.as_deref().unwrap_or("")),
            ],
        }
    };
    let header = ["group and figure", "is", "target", "", "regime"];
    let table = PageTable {
        caption: "The default policy by group of regimes".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows: bounds.iter().map(row).collect(),
    };
    Section {
        id: "required".to_owned(),
        title: "Targets of the default policy".to_owned(),
        intro: "Means over the regimes of a group; waits below 6 minutes count as 6 minutes."
            .to_owned(),
        blocks: vec![PageBlock::Table { table }],
    }
}

fn row(verdict: &RegimeVerdict, policies: &[&String]) -> TableRow {
    let cell = |policy: &&String| {
        let Some(estimate) = verdict.by_policy.get(*policy) else { return TableCell::plain("-") };
        let regret = verdict.regret_percent.get(*policy).copied();
        let (note, class) = match regret {
            _ if verdict.reference.as_ref() == Some(*policy) => {
                ("reference".to_owned(), "reference")
            }
            _ if verdict.easy => ("easy".to_owned(), ""),
            Some(regret) if regret > TIE_PERCENT => (format!("{regret:+.1}"), "worse"),
            Some(regret) if regret < -TIE_PERCENT => (format!("{regret:+.1}"), "better"),
            Some(regret) => (format!("{regret:+.1}").replace("-0.0", "+0.0"), ""),
            None => (String::new(), ""),
        };
        TableCell { text: figure(estimate.mean), note, class, ..TableCell::default() }
    };
    TableRow {
        head: format!("{}, {}", verdict.name, verdict.unit),
        class: "",
        cells: policies.iter().map(cell).collect(),
    }
}

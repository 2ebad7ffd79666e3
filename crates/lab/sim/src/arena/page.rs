//! The matrix of regimes and policies as one HTML file.

use std::collections::BTreeMap;

use crate::arena::verdict::{ORACLE, Summary, Verdict};
use crate::report::ReportError;
use crate::report::page::{Block, Cell, Head, Row, Section, Table, laid_out};

/// The result as one HTML file: no script, no outside resource.
///
/// # Errors
/// [`ReportError`] if the page cannot be laid out.
pub fn page(
    verdicts: &[Verdict],
    summary: &BTreeMap<String, Summary>,
    program: &str,
    notes: &[String],
) -> Result<String, ReportError> {
    let policies: Vec<&String> = summary.keys().collect();
    let mut sections = vec![in_sum(summary)];
    let mut families: Vec<&str> = verdicts.iter().map(|verdict| verdict.family).collect();
    families.dedup();
    for family in families {
        let of_family = verdicts.iter().filter(|verdict| verdict.family == family);
        let rows = of_family.map(|verdict| row(verdict, &policies)).collect();
        let mut header = vec!["regime".to_owned()];
        header.extend(policies.iter().map(|policy| title(policy)));
        let caption = "Mean over seeds and node orders, and the regret in percent of the reference"
            .to_owned();
        sections.push(Section {
            id: family.to_owned(),
            title: family.to_owned(),
            intro: "In each row one simple policy is the reference; the others show how much worse they are, \
                    on the seeds on which it was not chosen. Negative is better than the reference."
                .to_owned(),
            blocks: vec![Block::Table { table: Table { caption, header, rows } }],
        });
    }
    let head = Head { title: "dovetail arena", program, command: None, notes };
    laid_out(&head, &sections)
}

fn title(policy: &str) -> String {
    match policy {
        ORACLE => format!("{policy} (oracle)"),
        _ => policy.to_owned(),
    }
}

fn in_sum(summary: &BTreeMap<String, Summary>) -> Section {
    let row = |(policy, summary): (&String, &Summary)| Row {
        head: title(policy),
        class: "",
        cells: vec![
            Cell::plain(format!("{:.2}", summary.mean_regret_percent)),
            Cell::plain(format!("{:.1}", summary.worst_regret_percent)),
            Cell::plain(summary.wins.to_string()),
            Cell::plain(summary.regimes.to_string()),
        ],
    };
    let header = ["policy", "mean regret, %", "worst regret, %", "wins", "of regimes"];
    let table = Table {
        caption: "Over the regimes that are not easy".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows: summary.iter().map(row).collect(),
    };
    Section {
        id: "all".to_owned(),
        title: "All regimes".to_owned(),
        intro: "Regret is how much worse a policy is than the best simple one of the regime. A win: no policy \
                but the oracle is better by more than 0.1 %."
            .to_owned(),
        blocks: vec![Block::Table { table }],
    }
}

fn row(verdict: &Verdict, policies: &[&String]) -> Row {
    let cell = |policy: &&String| {
        let Some(estimate) = verdict.by_policy.get(*policy) else { return Cell::plain("-") };
        let note = match verdict.regret_percent.get(*policy) {
            _ if verdict.reference.as_ref() == Some(*policy) => "reference".to_owned(),
            _ if verdict.easy => "easy".to_owned(),
            Some(regret) => format!("{regret:+.1}"),
            None => String::new(),
        };
        Cell { text: figure(estimate.mean), note, is_words: false }
    };
    Row {
        head: format!("{}, {}", verdict.name, verdict.unit),
        class: "",
        cells: policies.iter().map(cell).collect(),
    }
}

/// About three significant digits.
fn figure(value: f64) -> String {
    match value.abs() {
        0.0..10.0 => format!("{value:.2}"),
        10.0..1000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

//! An audit as Markdown: tables and a section for each finding.

use dovetail_auditing::confirmed::ConfirmedOut;
use dovetail_auditing::document::{Document, FindingOut, RungOut};
use dovetail_auditing::patch::PatchOut;
use dovetail_auditing::words::object_words;
use dovetail_console::shortened::shortened;
use dovetail_units::amount::tenths;

use super::states::{money_of, state_name};
use crate::text::markdown as safe;

/// The whole audit.
pub fn markdown(document: &Document) -> String {
    let mut text = format!("# GPU audit\n\n**{}**\n\n", safe(&document.first_line()));
    if let Some(outlook) = document.outlook() {
        text += &format!("{}\n\n", safe(&outlook));
    }
    text += &format!("{}\n\n", safe(&document.second_line()));
    let line = |line: String| format!("{}\n\n", safe(&line));
    text += &document.missing_price().map(line).unwrap_or_default();
    text += "Waste per month after each layer of fixes:\n\n";
    text += &format!("| {} |\n|---|--:|--:|--:|--:|\n", RungOut::HEADER.join(" | "));
    document.ladder.iter().for_each(|rung| text += &row(&rung.cells()));
    text += "\n| state | waste | GPUs | cost per month |\n|---|---|--:|--:|\n";
    for state in &document.states {
        text += &row(&[
            state_name(document, state).as_str(),
            if state.is_waste { "yes" } else { "" },
            tenths(state.gpus).as_str(),
            money_of(state).as_str(),
        ]);
    }
    text += "\n## Missing data\n\n| what | hides | to add it |\n|---|---|---|\n";
    for unseen in &document.unseen {
        text += &row(&[&shortened(&unseen.what), &unseen.hides, &unseen.command]);
    }
    if !document.notes.is_empty() {
        text += "\n## Notes\n\n";
    }
    for note in &document.notes {
        text += &format!("- {}\n", safe(note));
    }
    if let Some(unread) = document.unread_objects() {
        text += &format!("\n{unread}.\n");
    }
    text += &format!("\n## Findings{}\n", safe(&document.in_namespace()));
    for finding in document.findings.iter().filter(|finding| finding.suppressed.is_none()) {
        text += &section(finding);
    }
    let ignored: Vec<_> = document.findings.iter().filter(|f| f.suppressed.is_some()).collect();
    if !ignored.is_empty() {
        text += "\n## Ignored findings, still part of the waste\n\n| finding | object | by | why \
                 |\n|---|---|---|---|\n";
        for finding in ignored {
            let Some(by) = &finding.suppressed else { continue };
            text += &row(&[finding.check.id, finding.object_words().as_str(), &by.by, &by.why]);
        }
    }
    if let Some(fixed) = &document.fixed {
        text += "\n## Fixed\n\n";
        text += match &document.ledger {
            None => "| finding | object | according to the earlier audit |\n|---|---|--:|\n",
            Some(_) => {
                "| finding | object | according to the earlier audit | according to the ledger \
                 |\n|---|---|--:|---|\n"
            }
        };
        for fixed in fixed {
            let object = object_words(&fixed.object);
            let mut cells = vec![fixed.id.clone(), object, fixed.worth_words()];
            cells.extend(fixed.ledger.as_ref().map(ConfirmedOut::words));
            text += &row(&cells);
        }
        if let Some(ledger) = &document.ledger {
            text += &format!("\n{}\n", safe(&ledger.sentence()));
        }
        if let Some(why) = &document.unconfirmed_because {
            text += &format!("\n{}\n", safe(&format!("Not confirmed: {why}.")));
        }
    }
    text
}

fn row<T: AsRef<str>>(cells: &[T]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| safe(cell.as_ref())).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn section(finding: &FindingOut) -> String {
    let price = finding.worth_words().map_or_else(String::new, |worth| format!(", {worth}"));
    let new = if finding.is_new == Some(true) { ", new" } else { "" };
    let mut text = format!(
        "\n### {} {}{}: {}\n\n{}\n\n",
        finding.check.id,
        finding.severity,
        safe(&format!("{new}{price}")),
        safe(&finding.object_words()),
        safe(finding.title)
    );
    if let Some(formula) = &finding.formula {
        text += &format!("- formula: {}\n", safe(formula));
    }
    if let Some(since) = &finding.since {
        text += &format!("- since: {}\n", safe(since));
    }
    for evidence in &finding.evidence {
        text += &format!("- {}: {}\n", evidence.what, safe(&evidence.value));
    }
    if finding.affected_objects > 0 {
        let named: Vec<String> = finding.affected.iter().map(object_words).collect();
        let more = match finding.affected_objects - finding.affected.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        text += &format!("- affects {}{more}\n", safe(&named.join(", ")));
    }
    if finding.formula.is_some() {
        text += &format!("- {}\n", safe(&finding.brings));
    }
    if finding.confidence == "likely" {
        text += "- confidence: medium (inferred from the workload's kind)\n";
    }
    text += &format!("- {}\n", safe(&finding.fix_words()));
    finding.withheld.iter().for_each(|of| text += &format!("- {}\n", safe(&of.words())));
    finding.patches.iter().for_each(|of| text += &patch(of));
    text
}

/// A change of an object; in fenced blocks nothing acts, and none of its lines can end one.
fn patch(patch: &PatchOut) -> String {
    let what = format!("{} of {}", patch.words(), object_words(&patch.object));
    let mut text = format!("\n{}; effect on pods: {}\n", safe(&what), safe(&patch.restarts));
    for warning in &patch.warnings {
        text += &format!("\n**{}**\n", safe(warning));
    }
    let mut block = |form: &str, lines: &str| text += &format!("\n```{form}\n{lines}\n```\n");
    if let Some(yaml) = patch.yaml() {
        block("yaml", yaml.trim_end());
    }
    if let Some(command) = &patch.command {
        block("", command);
    }
    text
}

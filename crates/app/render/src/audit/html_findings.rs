//! Findings of the HTML report: grouped by check, with filters that need no script. Each filter is
//! a list of choices; a rule of the style sheet hides what the chosen one excludes.

use std::collections::BTreeSet;

use dovetail_auditing::document::{Document, FindingOut};
use dovetail_auditing::patch::PatchOut;
use dovetail_auditing::terms::severity_words;
use dovetail_auditing::words::object_words;

use super::grouped::{CheckGroup, grouped};
use crate::text::html as safe;

/// The value of a finding by which it can be filtered.
type Value = fn(&FindingOut) -> String;

/// What findings can be filtered by: the name in the page, and the value of a finding.
const FILTERS: [(&str, Value); 4] = [
    ("severity", |finding| finding.severity.to_owned()),
    ("team", |finding| finding.team.clone().unwrap_or_default()),
    ("namespace", |finding| finding.object.namespace.clone()),
    ("check", |finding| finding.check.id.to_owned()),
];

/// The values of a filter, in order; a finding without one is in no choice but “all”.
fn values(document: &Document, value: Value) -> Vec<String> {
    let open = document.findings.iter().filter(|finding| finding.suppressed.is_none());
    let values: BTreeSet<String> = open.map(value).filter(|value| !value.is_empty()).collect();
    values.into_iter().collect()
}

/// A rule for each choice: what is not of it is hidden, and a check whose findings are all hidden.
pub(super) fn filter_style(document: &Document) -> String {
    let mut style = String::new();
    for (name, value) in FILTERS {
        for place in 0..values(document, value).len() {
            let chosen = format!("body:has(#{name} option[value=\"{place}\"]:checked)");
            let class = format!("{name}-{place}");
            style += &format!("{chosen} .finding:not(.{class}) {{ display: none; }}\n");
            style += &format!("{chosen} .check:not(:has(.{class})) {{ display: none; }}\n");
        }
    }
    style
}

pub(super) fn findings(document: &Document) -> String {
    let groups = grouped(document);
    if groups.is_empty() {
        return "<p>No check found anything to fix.</p>\n".to_owned();
    }
    let choices: Vec<(&str, Vec<String>, Value)> = FILTERS
        .into_iter()
        .map(|(name, value)| (name, values(document, value), value))
        .filter(|(_, values, _)| !values.is_empty())
        .collect();
    let select = |(name, values, _): &(&str, Vec<String>, Value)| {
        let option = |(place, value): (usize, &String)| {
            format!("<option value=\"{place}\">{}</option>", safe(value))
        };
        let options: String = values.iter().enumerate().map(option).collect();
        format!(
            "<label>{name} <select id=\"{name}\"><option value=\"all\">all</option>{options}</select></label>\n"
        )
    };
    let classes = |finding: &FindingOut| {
        let class = |(name, values, value): &(&str, Vec<String>, Value)| {
            let place = values.iter().position(|known| *known == value(finding))?;
            Some(format!(" {name}-{place}"))
        };
        choices.iter().filter_map(class).collect::<String>()
    };
    let mut text = "<form class=\"filters\">\n".to_owned();
    text += &choices.iter().map(select).collect::<String>();
    text += "</form>\n";
    for group in &groups {
        text += &head(group);
        for of in &group.findings {
            text += &finding(of, &classes(of));
        }
        text += "</details>\n";
    }
    text
}

fn head(group: &CheckGroup<'_>) -> String {
    let severity = severity_words(group.check.severity);
    let worth = group.worth_words().map_or_else(String::new, |worth| {
        format!(", <span class=\"money\">{}</span>", safe(&worth))
    });
    format!(
        "<details class=\"check\"><summary><span class=\"badge {severity}\">{severity}</span><strong>{}</strong> {}{worth}\
         <br><small>{}</small></summary>\n",
        group.check.id,
        safe(group.check.title),
        safe(&group.objects())
    )
}

fn finding(finding: &FindingOut, classes: &str) -> String {
    let price = finding.worth_words().map(|worth| format!(": {worth}"));
    let new = if finding.is_new == Some(true) { " (new)" } else { "" };
    let mut text = format!(
        "<div class=\"finding{classes}\"><h4>{}{new}{}</h4>\n<ul>\n",
        safe(&finding.object_words()),
        safe(&price.unwrap_or_default())
    );
    let mut item = |line: &str| text += &format!("<li>{}</li>\n", safe(line));
    if let Some(formula) = &finding.formula {
        item(&format!("formula: {formula}"));
    }
    if let Some(since) = &finding.since {
        item(&format!("since: {since}"));
    }
    finding.evidence.iter().for_each(|of| item(&format!("{}: {}", of.what, of.value)));
    if finding.affected_objects > 0 {
        let named: Vec<String> = finding.affected.iter().map(object_words).collect();
        let more = match finding.affected_objects - finding.affected.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        item(&format!("affects: {}{more}", named.join(", ")));
    }
    item(&finding.brings);
    if finding.confidence == "likely" {
        item("confidence: medium (inferred from the workload's kind)");
    }
    item(&finding.fix_words());
    finding.withheld.iter().for_each(|of| item(&of.words()));
    text += "</ul>\n";
    finding.patches.iter().for_each(|of| text += &patch(of));
    text + "</div>\n"
}

fn patch(patch: &PatchOut) -> String {
    let what = format!("{} of {}", patch.words(), object_words(&patch.object));
    let mut text = format!(
        "<p>Patch {}: {}; effect on pods: {}</p>\n",
        patch.order,
        safe(&what),
        safe(&patch.restarts)
    );
    for warning in &patch.warnings {
        text += &format!("<p><strong>Risk:</strong> {}</p>\n", safe(warning));
    }
    for lines in patch.yaml().iter().chain(&patch.command) {
        text += &format!("<pre>{}</pre>\n", safe(lines.trim_end()));
    }
    text
}

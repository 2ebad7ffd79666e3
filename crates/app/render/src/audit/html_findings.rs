//! Findings of the HTML report: grouped by check, with filters that need no script. Each filter is
//! a list of choices; a rule of the style sheet hides what the chosen one excludes. A check has one
//! severity and a namespace one team, so that few rules tell what is left of several filters.

use std::collections::BTreeSet;

use dovetail_auditing::check_words::severity_words;
use dovetail_auditing::document::{Document, FindingOut};
use dovetail_auditing::patch::PatchOut;
use dovetail_auditing::words::object_words;
use dovetail_console::table::counted;

use super::grouped::{CheckGroup, grouped};
use crate::text::html as safe;

/// The value of a finding by which it can be filtered.
type Value = fn(&FindingOut) -> String;

/// What findings can be filtered by.
struct Filter {
    /// In the page.
    name: &'static str,
    value: Value,
    /// Whether findings of one check differ in it: then it chooses among the totals of a check.
    is_within_checks: bool,
    /// In order; a finding without one is in no choice but “all”.
    values: Vec<String>,
}

impl Filter {
    /// The place of the value of a finding.
    fn place(&self, finding: &FindingOut) -> Option<usize> {
        self.values.binary_search(&(self.value)(finding)).ok()
    }

    /// Where a choice is made: a place, or “all”.
    fn chosen(&self, choice: &str) -> String {
        format!("body:has(#{} option[value=\"{choice}\"]:checked)", self.name)
    }

    /// A rule for each choice: what is not of it is hidden, and a check whose findings are all
    /// hidden.
    fn style(&self) -> String {
        let name = self.name;
        let mut style = String::new();
        if self.is_within_checks && !self.values.is_empty() {
            let chosen = self.chosen("all");
            style += &format!("{chosen} .total:not(.{name}-all) {{ display: none; }}\n");
        }
        let what = if self.is_within_checks { ":is(.finding, .total)" } else { ".finding" };
        for place in 0..self.values.len() {
            let chosen = self.chosen(&place.to_string());
            let class = format!("{name}-{place}");
            style += &format!("{chosen} {what}:not(.{class}) {{ display: none; }}\n");
            style += &format!("{chosen} .check:not(:has(.{class})) {{ display: none; }}\n");
        }
        style
    }
}

/// By severity, team, namespace and check.
fn filters(document: &Document) -> [Filter; 4] {
    let filter = |name: &'static str, is_within_checks: bool, value: Value| {
        let values: BTreeSet<String> = open(document).map(value).collect();
        let values = values.into_iter().filter(|value| !value.is_empty()).collect();
        Filter { name, value, is_within_checks, values }
    };
    [
        filter("severity", false, |finding| finding.severity.to_owned()),
        filter("team", true, |finding| finding.team.clone().unwrap_or_default()),
        filter("namespace", true, |finding| finding.object.namespace.clone()),
        filter("check", false, |finding| finding.check.id.to_owned()),
    ]
}

fn open(document: &Document) -> impl Iterator<Item = &FindingOut> {
    document.findings.iter().filter(|finding| finding.suppressed.is_none())
}

/// What each filter hides, and two that exclude each other.
pub(super) fn filter_style(document: &Document) -> String {
    let filters = filters(document);
    let [_, team, namespace, _] = &filters;
    let mut style: String = filters.iter().map(Filter::style).collect();
    let mut namespaces = vec![BTreeSet::new(); team.values.len()];
    for finding in open(document) {
        if let (Some(team), Some(namespace)) = (team.place(finding), namespace.place(finding)) {
            namespaces[team].insert(namespace);
        }
    }
    for (place, own) in namespaces.iter().enumerate() {
        let own: String = own.iter().map(|own| format!(", [value=\"{own}\"]")).collect();
        let chosen = team.chosen(&place.to_string());
        let of_others = format!("option:checked:not([value=\"all\"]{own})");
        style += &format!("{chosen}:has(#namespace {of_others}) .check {{ display: none; }}\n");
    }
    style
}

pub(super) fn findings(document: &Document) -> String {
    let groups = grouped(document);
    if groups.is_empty() {
        return "<p>No check found anything to fix.</p>\n".to_owned();
    }
    let filters = filters(document);
    let classes = |finding: &FindingOut| {
        let class = |filter: &Filter| Some(format!(" {}-{}", filter.name, filter.place(finding)?));
        filters.iter().filter_map(class).collect::<String>()
    };
    let mut text = "<form class=\"filters\">\n".to_owned();
    text += &filters.iter().map(select).collect::<String>();
    text += "</form>\n";
    let [_, team, namespace, _] = &filters;
    for group in &groups {
        text += &head(group, team, namespace);
        for of in &group.findings {
            text += &finding(of, &classes(of));
        }
        text += "</details>\n";
    }
    text
}

/// The choices of a filter; nothing where there is none.
fn select(filter: &Filter) -> String {
    if filter.values.is_empty() {
        return String::new();
    }
    let name = filter.name;
    let option = |(place, value): (usize, &String)| {
        format!("<option value=\"{place}\">{}</option>", safe(value))
    };
    let options: String = filter.values.iter().enumerate().map(option).collect();
    format!(
        "<label>{name} <select id=\"{name}\"><option value=\"all\">all</option>{options}\
         </select></label>\n"
    )
}

fn head(group: &CheckGroup<'_>, team: &Filter, namespace: &Filter) -> String {
    let severity = severity_words(group.check.severity);
    format!(
        "<details class=\"check\"><summary><span class=\"badge {severity}\">{severity}</span>\
         <strong>{}</strong> {}{}</summary>\n",
        group.check.id,
        safe(group.check.title),
        totals(group, team, namespace)
    )
}

/// The total of a check, and those of its findings that a filter leaves. One is shown: that of the
/// chosen team and namespace.
fn totals(group: &CheckGroup<'_>, team: &Filter, namespace: &Filter) -> String {
    let all = group.findings.len();
    let mut of_all = "team-all namespace-all".to_owned();
    let mut parts = String::new();
    for (place, part) in group.split_by(|finding| team.place(finding)) {
        match part.findings.len() == all {
            true => of_all += &format!(" team-{place}"),
            false => parts += &total(&part, all, &format!("team-{place} namespace-all")),
        }
    }
    for (place, part) in group.split_by(|finding| namespace.place(finding)) {
        let own = part.findings.first().and_then(|finding| team.place(finding));
        let own = own.map_or_else(String::new, |own| format!(" team-{own}"));
        match part.findings.len() == all {
            // So is its team.
            true => of_all += &format!(" namespace-{place}"),
            false => parts += &total(&part, all, &format!("team-all{own} namespace-{place}")),
        }
    }
    total(group, all, &of_all) + &parts
}

/// What findings of a check are worth, and of which objects they are.
fn total(part: &CheckGroup<'_>, all: usize, classes: &str) -> String {
    let worth = part.worth_words().map_or_else(String::new, |worth| {
        format!(", <span class=\"money\">{}</span>", safe(&worth))
    });
    let shown = match part.findings.len() == all {
        true => String::new(),
        false => format!("; {} of {} shown", part.findings.len(), counted(all, "finding")),
    };
    let objects = safe(&part.objects());
    format!("<span class=\"total {classes}\">{worth}<br><small>{objects}{shown}</small></span>")
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

//! Every finding of an audit for people, at most 100 columns wide.

use dovetail_auditing::check_words::severity_words;
use dovetail_auditing::document::{Document, FindingOut, RungOut};
use dovetail_auditing::words::object_words;
use dovetail_console::shortened::shortened;
use dovetail_console::style::Style;
use dovetail_console::table::{plural, table, wrapped};
use dovetail_sources::node_prices::PriceLine;
use dovetail_units::amount::{percent, tenths, usd};

use super::grouped::{CheckGroup, grouped};
use super::states::{money_of, purchase_words, state_name};

/// Names of affected objects in one line.
const NAMED: usize = 5;

/// The whole audit.
pub fn terminal(document: &Document, style: Style) -> String {
    let mut text = wrapped(&document.first_line(), 0);
    text += &document.outlook().map(|line| wrapped(&line, 0)).unwrap_or_default();
    text += &wrapped(&document.second_line(), 0);
    text += &document.missing_price().map(|line| wrapped(&line, 0)).unwrap_or_default();
    text += &prices(document);
    text += &notes(document);
    text += &states(document);
    text += &ladder(document);
    text += &missing(document);
    let groups = grouped(document);
    let count: usize = groups.iter().map(|group| group.findings.len()).sum();
    text += &format!("\nFindings{}: {count}\n", document.in_namespace());
    groups.iter().for_each(|group| text += &group_of(group, style, Extent::First));
    let listed = groups.iter().flat_map(|group| &group.findings);
    let patches: usize = listed.map(|finding| finding.patches.len()).sum();
    if patches > 0 {
        let line = format!("\nPatches: {patches}; --patches FOLDER writes them as files.");
        text += &wrapped(&line, 0);
    }
    if document.unexplained_waste_gpu_hours_per_month > 0.05 {
        let hours = tenths(document.unexplained_waste_gpu_hours_per_month);
        text += &wrapped(&format!("\nNo finding explains {hours} wasted GPU-hours a month."), 0);
    }
    text += &ignored(document);
    text + &since_baseline(document)
}

/// What one check found.
pub fn findings_of(document: &Document, id: &str, style: Style) -> String {
    let groups = grouped(document);
    match groups.iter().find(|group| group.check.id.eq_ignore_ascii_case(id)) {
        Some(group) => group_of(group, style, Extent::All),
        None => format!("\n{id} has no open finding here.\n"),
    }
}

/// How much of what a finding rests on is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    First,
    /// Commands rely on all moves.
    All,
}

fn group_of(group: &CheckGroup<'_>, style: Style, extent: Extent) -> String {
    let check = group.check;
    let worth = group.worth_words().map_or_else(String::new, |worth| format!(", {worth}"));
    let severity = severity_words(check.severity);
    let head = format!("{} {severity}{worth}: {}", check.id, check.title);
    let mut text = "\n".to_owned() + &style.severity(severity, wrapped(&head, 0).trim_end()) + "\n";
    group.findings.iter().for_each(|of| text += &finding(of, extent));
    text
}

/// The values that a finding rests on. Where all are shown, the moves come last, each with both of
/// its nodes.
fn evidence(finding: &FindingOut, extent: Extent) -> String {
    let is_all = extent == Extent::All;
    let moves = if is_all { finding.moves.len() } else { 0 };
    let most = if is_all { usize::MAX } else { NAMED };
    let is_shown_below = |what: &str| moves > 0 && what == "moves";
    let values = finding.evidence.iter().filter(|of| !is_shown_below(of.what)).take(most);
    let (mut text, mut shown) = (String::new(), moves);
    for evidence in values {
        text += &wrapped(&format!("{}: {}", evidence.what, evidence.value), 4);
        shown += 1;
    }
    match finding.evidence_values.saturating_sub(shown) {
        0 => {}
        more => text += &format!("    and {}\n", plural(more, "more value", "more values")),
    }
    for moved in finding.moves.iter().take(moves) {
        let pod = object_words(&moved.pod);
        text += &wrapped(&format!("moves: {pod} from {} to {}", moved.from, moved.to), 4);
    }
    text
}

fn missing(document: &Document) -> String {
    if document.unseen.is_empty() && document.unread_objects().is_none() {
        return String::new();
    }
    let mut text = "\nMissing data\n".to_owned();
    for unseen in &document.unseen {
        let what = shortened(&unseen.what);
        text += &wrapped(&format!("{what}: hides {}", unseen.hides), 2);
        text += &wrapped(&format!("to add it: {}", unseen.command), 6);
    }
    if let Some(unread) = document.unread_objects() {
        text += &wrapped(&format!("{unread}; -o json lists them"), 2);
    }
    text
}

fn ignored(document: &Document) -> String {
    let ignored = document.findings.iter();
    let ignored = ignored.filter_map(|finding| Some((finding, finding.suppressed.as_ref()?)));
    let lines: Vec<String> = ignored
        .map(|(finding, by)| {
            let object = finding.object_words();
            wrapped(&format!("{} {object}: by {}: {}", finding.check.id, by.by, by.why), 2)
        })
        .collect();
    match lines.len() {
        0 => String::new(),
        count => format!("\nIgnored: {count}, still part of the waste\n{}", lines.concat()),
    }
}

fn since_baseline(document: &Document) -> String {
    let (Some(fixed), Some(then)) = (&document.fixed, &document.baseline_taken_at) else {
        return String::new();
    };
    let new = document.findings.iter().filter(|finding| finding.is_new == Some(true)).count();
    let mut text = format!("\nSince {then}: {new} new, {} fixed\n", fixed.len());
    for fixed in fixed {
        let (object, worth) = (object_words(&fixed.object), fixed.worth_words());
        text += &wrapped(&format!("fixed: {} {object}, {worth}", fixed.id), 2);
        if let Some(ledger) = &fixed.ledger {
            text += &wrapped(&format!("ledger: {}", ledger.words()), 6);
        }
    }
    if let Some(ledger) = &document.ledger {
        text += &wrapped(&ledger.sentence(), 2);
    }
    if let Some(why) = &document.unconfirmed_because {
        text += &wrapped(&format!("Not confirmed: {why}."), 2);
    }
    text
}

fn prices(document: &Document) -> String {
    let row = |line: &PriceLine| {
        let place = match (&line.provider, &line.region) {
            (Some(provider), Some(region)) => format!("{provider} {region}"),
            (Some(provider), None) => provider.clone(),
            _ => "any".to_owned(),
        };
        vec![
            line.gpus.to_string(),
            line.model.clone().unwrap_or_else(|| "unknown".to_owned()),
            place,
            match line.priced_as {
                Some(of) => format!("{}, at {of}", purchase_words(line.purchase)),
                None => purchase_words(line.purchase),
            },
            usd(line.usd_micros_per_gpu_hour),
            line.as_of.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let header = ["GPUs", "model", "provider and region", "purchase", "per GPU-hour", "as of"];
    match document.prices.is_empty() {
        true => String::new(),
        false => "\n".to_owned() + &table(&header, document.prices.iter().map(row).collect()),
    }
}

fn notes(document: &Document) -> String {
    let notes = document.notes.iter().map(|note| wrapped(&format!("note: {note}"), 0));
    let text: String = notes.collect();
    if text.is_empty() { text } else { format!("\n{text}") }
}

fn states(document: &Document) -> String {
    let all = document.headline.installed_gpus;
    let row = |state: &dovetail_auditing::document::StateOut| {
        vec![
            state_name(document, state),
            if state.is_waste { "yes" } else { "" }.to_owned(),
            tenths(state.gpus),
            percent(state.gpus / all.max(f64::MIN_POSITIVE)),
            money_of(state),
        ]
    };
    let header = ["state", "waste", "GPUs", "share", "cost per month"];
    match document.states.is_empty() {
        true => String::new(),
        false => "\n".to_owned() + &table(&header, document.states.iter().map(row).collect()),
    }
}

fn ladder(document: &Document) -> String {
    match document.headline.installed_gpus > 0.0 {
        false => String::new(),
        true => {
            "\nWaste per month after each layer of fixes\n".to_owned()
                + &table(&RungOut::HEADER, document.ladder.iter().map(RungOut::cells).collect())
        }
    }
}

fn finding(finding: &FindingOut, extent: Extent) -> String {
    let price = finding.worth_words().map_or_else(String::new, |worth| format!(": {worth}"));
    let new = if finding.is_new == Some(true) { " (new)" } else { "" };
    let mut text = wrapped(&format!("{}{new}{price}", finding.object_words()), 2);
    if let Some(formula) = &finding.formula {
        text += &wrapped(&format!("formula: {formula}"), 4);
        text += &wrapped(&finding.brings, 4);
    }
    if let Some(since) = &finding.since {
        text += &format!("    since: {since}\n");
    }
    if finding.also_affects_gpu_hours_per_month > 0.0 {
        let hours = tenths(finding.also_affects_gpu_hours_per_month);
        text += &wrapped(&format!("also affects {hours} GPU-hours of other findings"), 4);
    }
    text += &evidence(finding, extent);
    if finding.affected_objects > 0 {
        let named: Vec<String> = finding.affected.iter().take(NAMED).map(object_words).collect();
        let more = match finding.affected_objects.saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        text += &wrapped(&format!("affects {}{more}", named.join(", ")), 4);
    }
    if finding.confidence == "likely" {
        text += "    confidence: medium (inferred from the workload's kind)\n";
    }
    text += &wrapped(&finding.fix_words(), 4);
    for withheld in &finding.withheld {
        text += &wrapped(&withheld.words(), 4);
    }
    for patch in &finding.patches {
        let object = object_words(&patch.object);
        let what = match (&patch.command, patch.form) {
            (Some(command), "command") => command.clone(),
            _ => format!("{} of {object}", patch.words()),
        };
        text += &wrapped(&format!("patch: {what}"), 4);
        text += &wrapped(&format!("effect on pods: {}", patch.restarts), 8);
        for warning in &patch.warnings {
            text += &wrapped(&format!("note: {warning}"), 8);
        }
    }
    text
}

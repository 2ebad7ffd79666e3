//! An audit for people, at most 100 columns wide.

use dovetail_auditing::document::{Document, FindingOut, RungOut, object_words};
use dovetail_console::shortened::shortened;
use dovetail_console::table::{table, wrapped};
use dovetail_sources::node_prices::PriceLine;
use dovetail_units::amount::{percent, usd};

/// Names of affected objects in one line.
const NAMED: usize = 5;

/// The whole audit.
pub fn terminal(document: &Document) -> String {
    let mut text = wrapped(&document.first_line(), 0);
    text += &wrapped(&document.second_line(), 0);
    text += &prices(document);
    text += &notes(document);
    text += &states(document);
    text += &ladder(document);
    text += "\nNot seen\n";
    for unseen in &document.unseen {
        let what = shortened(&unseen.what);
        text += &wrapped(&format!("{what}: hides {}", unseen.hides), 2);
        text += &wrapped(&format!("to see it: {}", unseen.command), 6);
    }
    if let Some(unread) = document.unread_objects() {
        text += &wrapped(&format!("{unread}; --output json lists them"), 2);
    }
    let (ignored, listed): (Vec<&FindingOut>, Vec<&FindingOut>) =
        document.findings.iter().partition(|finding| finding.suppressed.is_some());
    text += &format!("\nFindings: {}\n", listed.len());
    listed.iter().for_each(|of| text += &finding(of));
    let patches: usize = listed.iter().map(|finding| finding.patches.len()).sum();
    if patches > 0 {
        let line = format!(
            "\nPatches: {patches}; --patches DIR writes them as files, with their commands."
        );
        text += &wrapped(&line, 0);
    }
    if document.unexplained_waste_gpu_hours_per_month > 0.05 {
        let hours = document.unexplained_waste_gpu_hours_per_month;
        text +=
            &wrapped(&format!("\n{hours:.1} wasted GPU-hours a month belong to no finding."), 0);
    }
    if !ignored.is_empty() {
        text += &format!("\nIgnored: {}, still part of the waste\n", ignored.len());
        for finding in ignored {
            let Some(by) = &finding.suppressed else { continue };
            let line = format!(
                "{} {}: by {}: {}",
                finding.check.id,
                finding.object_words(),
                by.by,
                by.why
            );
            text += &wrapped(&line, 2);
        }
    }
    if let (Some(fixed), Some(then)) = (&document.fixed, &document.baseline_taken_at) {
        let new = document.findings.iter().filter(|finding| finding.is_new == Some(true)).count();
        text += &format!("\nSince {then}: {new} new, {} fixed\n", fixed.len());
        for fixed in fixed {
            let (object, worth) = (object_words(&fixed.object), fixed.worth_words());
            text += &wrapped(&format!("fixed: {} {object}, {worth}", fixed.id), 2);
            if let Some(ledger) = &fixed.ledger {
                text += &wrapped(&format!("by the ledger, {}", ledger.words()), 6);
            }
        }
        if let Some(ledger) = &document.ledger {
            text += &wrapped(&ledger.sentence(), 2);
        }
        if let Some(why) = &document.unconfirmed_because {
            text += &wrapped(&format!("Not confirmed: {why}."), 2);
        }
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
                Some(of) => format!("{}, at {of}", line.purchase),
                None => line.purchase.to_owned(),
            },
            usd(line.usd_micros_per_gpu_hour),
            line.as_of.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let header = ["GPUs", "model", "place", "bought", "per GPU-hour", "as of"];
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
            state.state.replace('_', " "),
            if state.is_waste { "yes" } else { "" }.to_owned(),
            format!("{:.1}", state.gpus),
            percent(state.gpus / all.max(f64::MIN_POSITIVE)),
            usd(state.usd_micros_per_month),
        ]
    };
    let header = ["GPUs that are", "waste", "GPUs", "share", "a month"];
    match document.states.is_empty() {
        true => String::new(),
        false => "\n".to_owned() + &table(&header, document.states.iter().map(row).collect()),
    }
}

fn ladder(document: &Document) -> String {
    match document.headline.installed_gpus > 0.0 {
        false => String::new(),
        true => {
            "\n".to_owned()
                + &table(&RungOut::HEADER, document.ladder.iter().map(RungOut::cells).collect())
        }
    }
}

fn finding(finding: &FindingOut) -> String {
    let price = match (finding.usd_micros_per_month, finding.gpu_hours_per_month > 0.0) {
        (Some(micros), _) => format!(", {} a month", usd(Some(micros))),
        (None, true) => format!(", {:.1} GPU-hours a month", finding.gpu_hours_per_month),
        (None, false) => String::new(),
    };
    let new = if finding.is_new == Some(true) { " (new)" } else { "" };
    let head = format!(
        "{} {}{new}{price}: {}: {}",
        finding.check.id,
        finding.severity,
        finding.object_words(),
        finding.title
    );
    let mut text = "\n".to_owned() + &wrapped(&head, 0);
    if let Some(formula) = &finding.formula {
        text += &wrapped(&format!("formula: {formula}"), 2);
    }
    if finding.gpu_hours_per_month > 0.0 {
        text += &wrapped(&format!("brings {}", finding.brings), 2);
    }
    if finding.also_affects_gpu_hours_per_month > 0.0 {
        let hours = finding.also_affects_gpu_hours_per_month;
        text += &wrapped(&format!("also affects {hours:.1} GPU-hours of findings above"), 2);
    }
    for evidence in finding.evidence.iter().take(NAMED) {
        text += &wrapped(&format!("{}: {}", evidence.what, evidence.value), 2);
    }
    if finding.evidence_values > NAMED {
        text += &format!("  and {} more values\n", finding.evidence_values - NAMED);
    }
    if finding.affected_objects > 0 {
        let named: Vec<String> = finding.affected.iter().take(NAMED).map(object_words).collect();
        let more = match finding.affected_objects.saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        text += &wrapped(&format!("affects {}{more}", named.join(", ")), 2);
    }
    if finding.confidence == "likely" {
        text += "  likely: it rests on what the workload seems to do\n";
    }
    text += &wrapped(&finding.mend_words(), 2);
    for patch in &finding.patches {
        let object = object_words(&patch.object);
        let what = match (&patch.command, patch.form) {
            (Some(command), "command") => command.clone(),
            _ => format!("{} of {object}", patch.words()),
        };
        text += &wrapped(&format!("patch: {what}"), 2);
        text += &wrapped(&format!("restarts or evicts: {}", patch.restarts), 6);
        for warning in &patch.warnings {
            text += &wrapped(&format!("but: {warning}"), 6);
        }
    }
    text
}

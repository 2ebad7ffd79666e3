//! An audit as one HTML file that needs nothing else: no script, no font, no request.

use dovetail_auditing::confirmed::ConfirmedOut;
use dovetail_auditing::document::{Document, FindingOut, RungOut, object_words};
use dovetail_auditing::patch::PatchOut;
use dovetail_console::shortened::shortened;
use dovetail_units::amount::usd;

use crate::frame;
use crate::text::html as safe;

const STYLE: &str = "\
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
.first { font-size: 1.25rem; font-weight: 600; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #8886; vertical-align: top; }
td.number, th.number { text-align: right; white-space: nowrap; }
details { border: 1px solid #8886; border-radius: .4rem; padding: .5rem .8rem; margin: .5rem 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
li { overflow-wrap: anywhere; }
code { overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.bar { background: #8883; height: .6rem; border-radius: .3rem; }
.bar div { background: #c2410c; height: 100%; border-radius: .3rem; }
";

/// The whole audit.
pub fn html(document: &Document) -> String {
    let mut page = frame::start("GPU audit", STYLE);
    page +=
        &format!("<h1>GPU audit</h1>\n<p class=\"first\">{}</p>\n", safe(&document.first_line()));
    page += &format!("<p>{}</p>\n", safe(&document.second_line()));
    page += "<h2>After each layer of findings</h2>\n";
    page += &table(&RungOut::HEADER, 1, document.ladder.iter().map(RungOut::cells));
    page += "<h2>What GPUs are</h2>\n";
    page += &states(document);
    page += "<h2>Not seen</h2>\n";
    let unseen = document.unseen.iter();
    let unseen = unseen.map(|u| vec![shortened(&u.what), u.hides.clone(), u.command.clone()]);
    page += &table(&["what", "hides", "to see it"], 3, unseen);
    if !document.notes.is_empty() {
        let notes = document.notes.iter().map(|note| format!("<li>{}</li>\n", safe(note)));
        page += &format!("<h2>Notes</h2>\n<ul>\n{}</ul>\n", notes.collect::<String>());
    }
    if let Some(unread) = document.unread_objects() {
        page += &format!("<p>{unread}.</p>\n");
    }
    page += "<h2>Findings</h2>\n";
    let listed = document.findings.iter().filter(|finding| finding.suppressed.is_none());
    listed.for_each(|of| page += &finding(of));
    let ignored = document.findings.iter().filter_map(|finding| {
        let by = finding.suppressed.as_ref()?;
        let id = finding.check.id.to_owned();
        Some(vec![id, finding.object_words(), by.by.clone(), by.why.clone()])
    });
    let ignored: Vec<Vec<String>> = ignored.collect();
    if !ignored.is_empty() {
        page += "<h2>Ignored, still part of the waste</h2>\n";
        page += &table(&["finding", "object", "by", "why"], 4, ignored.into_iter());
    }
    if let Some(fixed) = &document.fixed {
        page += "<h2>Fixed</h2>\n";
        let fixed = fixed.iter().map(|fixed| {
            let object = object_words(&fixed.object);
            let mut cells = vec![fixed.id.clone(), object, fixed.worth_words()];
            cells.extend(fixed.ledger.as_ref().map(ConfirmedOut::words));
            cells
        });
        let header = ["finding", "object", "by the earlier audit", "by the ledger"];
        let columns = if document.ledger.is_some() { 4 } else { 3 };
        page += &table(&header[..columns], 4, fixed);
        if let Some(ledger) = &document.ledger {
            page += &format!("<p>{}</p>\n", safe(&ledger.sentence()));
        }
        if let Some(why) = &document.unconfirmed_because {
            page += &format!("<p>{}</p>\n", safe(&format!("Not confirmed: {why}.")));
        }
    }
    page + frame::END
}

/// A table; columns from `numbers` on stand to the right.
fn table(header: &[&str], numbers: usize, rows: impl Iterator<Item = Vec<String>>) -> String {
    let cell = |tag: &str, column: usize, text: &str| {
        let class = if column >= numbers { " class=\"number\"" } else { "" };
        format!("<{tag}{class}>{}</{tag}>", safe(text))
    };
    let heads = header.iter().enumerate().map(|(column, text)| cell("th", column, text));
    let mut text = format!("<table>\n<tr>{}</tr>\n", heads.collect::<String>());
    for row in rows {
        let cells = row.iter().enumerate().map(|(column, text)| cell("td", column, text));
        text += &format!("<tr>{}</tr>\n", cells.collect::<String>());
    }
    text + "</table>\n"
}

fn states(document: &Document) -> String {
    let mut text = String::from("<table>\n");
    for state in &document.states {
        let share = state.gpus / document.headline.installed_gpus.max(f64::MIN_POSITIVE);
        let waste = if state.is_waste { " (waste)" } else { "" };
        text += &format!(
            "<tr><td>{}{waste}</td><td class=\"number\">{:.1} GPUs</td><td class=\"number\">{}</td>\
             <td style=\"width:30%\"><div class=\"bar\"><div style=\"width:{:.1}%\"></div></div></td></tr>\n",
            safe(&state.state.replace('_', " ")),
            state.gpus,
            safe(&usd(state.usd_micros_per_month)),
            100.0 * share
        );
    }
    text + "</table>\n"
}

fn finding(finding: &FindingOut) -> String {
    let price =
        finding.usd_micros_per_month.map(|micros| format!(", {} a month", usd(Some(micros))));
    let new = if finding.is_new == Some(true) { ", new" } else { "" };
    let mut text = format!(
        "<details><summary><strong>{}</strong> {}{new}{}: {}: {}</summary>\n<ul>\n",
        finding.check.id,
        finding.severity,
        safe(&price.unwrap_or_default()),
        safe(&finding.object_words()),
        safe(finding.title)
    );
    let mut item = |what: &str, value: &str| {
        text += &format!("<li>{}: {}</li>\n", safe(what), safe(value));
    };
    if let Some(formula) = &finding.formula {
        item("formula", formula);
    }
    finding.evidence.iter().for_each(|evidence| item(evidence.what, &evidence.value));
    if finding.affected_objects > 0 {
        let named: Vec<String> = finding.affected.iter().map(object_words).collect();
        let more = match finding.affected_objects - finding.affected.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        item("affects", &format!("{}{more}", named.join(", ")));
    }
    item("brings", &finding.brings);
    item("confidence", finding.confidence);
    text += &format!("<li>{}</li>\n</ul>\n", safe(&finding.mend_words()));
    finding.patches.iter().for_each(|of| text += &patch(of));
    text + "</details>\n"
}

fn patch(patch: &PatchOut) -> String {
    let what = format!("{} of {}", patch.words(), object_words(&patch.object));
    let mut text =
        format!("<p>{}; restarts or evicts: {}</p>\n", safe(&what), safe(&patch.restarts));
    for warning in &patch.warnings {
        text += &format!("<p><strong>{}</strong></p>\n", safe(warning));
    }
    for lines in patch.yaml().iter().chain(&patch.command) {
        text += &format!("<pre>{}</pre>\n", safe(lines.trim_end()));
    }
    text
}

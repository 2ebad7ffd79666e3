//! An audit as one HTML file that needs nothing else: no script, no font, no request.

use dovetail_auditing::confirmed::ConfirmedOut;
use dovetail_auditing::document::{Document, RungOut, StateOut};
use dovetail_auditing::figures::at_least;
use dovetail_auditing::words::object_words;
use dovetail_console::shortened::shortened;
use dovetail_units::amount::{percent, rounded, rounded_usd, tenths, usd};

use super::html_findings;
use super::states::{purchase_words, state_label};
use crate::frame;
use crate::text::html as safe;

const STYLE: &str = include_str!("report.css");

/// The whole audit.
pub fn html(document: &Document) -> String {
    let style = format!("{STYLE}{}", html_findings::filter_style(document));
    let mut page = frame::start("GPU audit", &style);
    page += "<h1>GPU audit</h1>\n";
    page += &format!("<p class=\"first\">{}</p>\n", safe(&document.first_line_of_page()));
    if let Some(outlook) = document.outlook() {
        page += &format!("<p>{}</p>\n", safe(&outlook));
    }
    if let Some(line) = document.missing_price() {
        page += &format!("<p>{}</p>\n", safe(&line));
    }
    page += &tiles(document);
    page += "<h2>GPUs by state</h2>\n";
    page += "<p class=\"quiet\">Each bar is a share of all GPUs. Orange is waste, green is work, gray is free \
             and not wasted, dark gray was not measured.</p>\n";
    page += &states(document);
    page += &format!("<h2>Findings{}</h2>\n", safe(&document.in_namespace()));
    page += &html_findings::findings(document);
    page += &ignored(document);
    page += &since_baseline(document);
    page += "<h2>Waste per month after each layer of fixes</h2>\n";
    page += &table(&RungOut::HEADER, 1, document.ladder.iter().map(RungOut::cells));
    page += &missing(document);
    page += &prices_and_methods(document);
    page + frame::END
}

fn tiles(document: &Document) -> String {
    let head = &document.headline;
    let mut tiles: Vec<(String, &str, String)> = Vec::new();
    let share = percent(head.waste_share);
    match document.waste_usd_micros() {
        _ if document.perhaps_allocated() > 0.0 => {
            let note = "pods that may use them were not read".to_owned();
            tiles.push((rounded(document.perhaps_allocated()), "GPUs are allocated or free", note));
        }
        _ if document.is_unmeasured() => {
            let (gpus, micros, _) = document.unallocated();
            let cost = |micros| format!("{} a month", rounded_usd(micros));
            let cost = micros.map_or_else(|| "no price is known".to_owned(), cost);
            tiles.push((rounded(gpus), "GPUs are allocated to no pod", cost));
        }
        Some(waste) => {
            tiles.push((
                rounded_usd(waste),
                "wasted per month",
                format!("{share} of the GPU time"),
            ));
        }
        None => tiles.push((share, "of the GPU time is wasted", "no price is known".to_owned())),
    }
    let returned = head.returned.usd_micros_per_month;
    tiles.push((
        returned.map_or_else(|| rounded(head.returned.gpu_hours_per_month), rounded_usd),
        if returned.is_some() {
            "per month recovered by fixes"
        } else {
            "GPU-hours per month recovered"
        },
        match (head.removed_usd_micros_per_month.unwrap_or(0), returned) {
            (0, None) if head.removed_gpu_hours_per_month == head.returned.gpu_hours_per_month => {
                "nodes that can be removed".to_owned()
            }
            (0, Some(1..)) => {
                "GPUs that you already pay for and that pending pods could use".to_owned()
            }
            (removed, Some(all)) if 0 < removed && removed < all => {
                format!("{} less on the bill, the rest for pending pods", rounded_usd(removed))
            }
            _ => "nodes that can be removed, GPUs for pending pods".to_owned(),
        },
    ));
    tiles.push((
        rounded(head.freed.gpu_hours_per_month),
        "GPU-hours per month for other work",
        "they save money only if other work uses them".to_owned(),
    ));
    let unmeasured = percent(head.blind_share);
    tiles.push((unmeasured, "not measured", "not counted as waste".to_owned()));
    if head.too_recent_share > 0.0 {
        let share = percent(head.too_recent_share);
        let so_far = head.waste_usd_micros_so_far.filter(|micros| *micros > 0);
        let so_far = so_far.map(|micros| format!(", {} wasted so far", rounded_usd(micros)));
        let note = format!("not in any monthly amount{}", so_far.unwrap_or_default());
        tiles.push((share, "too recent or temporary", note));
    }
    let tile = |(value, label, note): (String, &str, String)| {
        let (value, note) = (safe(&value), safe(&note));
        format!("<li><strong>{value}</strong><span>{label}</span><small>{note}</small></li>\n")
    };
    format!("<ul class=\"tiles\">\n{}</ul>\n", tiles.into_iter().map(tile).collect::<String>())
}

fn states(document: &Document) -> String {
    let all = document.headline.installed_gpus.max(f64::MIN_POSITIVE);
    let line = |state: &StateOut| {
        let kind = match state.state.as_str() {
            _ if state.is_waste => "waste",
            name if name.starts_with("active") => "busy",
            "unknown" | "free_of_unknown_cause" => "unknown",
            _ => "free",
        };
        let money = match (state.usd_micros_per_month, state.usd_micros_so_far) {
            (Some(micros), _) => {
                let unpriced = state.unpriced_gpu_hours_per_month;
                format!(", {} a month", at_least(Some(micros), unpriced))
            }
            (None, Some(micros)) => format!(", {} so far", rounded_usd(micros)),
            (None, None) => String::new(),
        };
        let share = state.gpus / all;
        format!(
            "<li><div class=\"line\"><span>{}</span><span class=\"number\">{} GPUs, {}{money}</span></div>\
             <div class=\"bar {kind}\"><div style=\"width:{:.1}%\"></div></div></li>\n",
            safe(&state_label(document, state)),
            tenths(state.gpus),
            percent(share),
            100.0 * share
        )
    };
    let lines: String = document.states.iter().map(line).collect();
    match lines.is_empty() {
        true => "<p>No GPUs.</p>\n".to_owned(),
        false => format!("<ul class=\"bars\">\n{lines}</ul>\n"),
    }
}

fn ignored(document: &Document) -> String {
    let ignored = document.findings.iter().filter_map(|finding| {
        let by = finding.suppressed.as_ref()?;
        let id = finding.check.id.to_owned();
        Some(vec![id, finding.object_words(), by.by.clone(), by.why.clone()])
    });
    let ignored: Vec<Vec<String>> = ignored.collect();
    match ignored.is_empty() {
        true => String::new(),
        false => {
            "<h2>Ignored findings, still part of the waste</h2>\n".to_owned()
                + &table(&["finding", "object", "by", "why"], 4, ignored.into_iter())
        }
    }
}

fn since_baseline(document: &Document) -> String {
    let Some(fixed) = &document.fixed else { return String::new() };
    let mut text = "<h2>Fixed</h2>\n".to_owned();
    let fixed = fixed.iter().map(|fixed| {
        let object = object_words(&fixed.object);
        let mut cells = vec![fixed.id.clone(), object, fixed.worth_words()];
        cells.extend(fixed.ledger.as_ref().map(ConfirmedOut::words));
        cells
    });
    let header = ["finding", "object", "according to the earlier audit", "according to the ledger"];
    let columns = if document.ledger.is_some() { 4 } else { 3 };
    text += &table(&header[..columns], 4, fixed);
    if let Some(ledger) = &document.ledger {
        text += &format!("<p>{}</p>\n", safe(&ledger.sentence()));
    }
    if let Some(why) = &document.unconfirmed_because {
        text += &format!("<p>{}</p>\n", safe(&format!("Not confirmed: {why}.")));
    }
    text
}

fn missing(document: &Document) -> String {
    let mut text = String::new();
    if !document.unseen.is_empty() {
        text += "<h2>Missing data</h2>\n";
        let missing = document.unseen.iter();
        let missing = missing.map(|u| vec![shortened(&u.what), u.hides.clone(), u.command.clone()]);
        text += &table(&["what", "hides", "to add it"], 3, missing);
    }
    if let Some(unread) = document.unread_objects() {
        text += &format!("<p>{unread}.</p>\n");
    }
    text
}

fn prices_and_methods(document: &Document) -> String {
    let mut text = "<h2>Prices and methods</h2>\n".to_owned();
    text += &format!("<p>{}</p>\n", safe(&document.second_line()));
    let prices = document.prices.iter().map(|line| {
        let place = [line.provider.as_deref(), line.region.as_deref()];
        vec![
            line.model.clone().unwrap_or_else(|| "unknown model".to_owned()),
            place.into_iter().flatten().collect::<Vec<_>>().join(" "),
            purchase_words(line.purchase),
            line.as_of.clone().unwrap_or_default(),
            line.gpus.to_string(),
            usd(line.usd_micros_per_gpu_hour),
        ]
    });
    let header = ["model", "provider and region", "purchase", "as of", "GPUs", "per GPU-hour"];
    if !document.prices.is_empty() {
        text += &table(&header, 4, prices);
    }
    if !document.notes.is_empty() {
        let notes = document.notes.iter().map(|note| format!("<li>{}</li>\n", safe(note)));
        text += &format!("<h3>Notes</h3>\n<ul>\n{}</ul>\n", notes.collect::<String>());
    }
    text
}

/// A table that scrolls where it is too wide; columns from `numbers` on are right-aligned.
pub(super) fn table(
    header: &[&str],
    numbers: usize,
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let cell = |tag: &str, column: usize, text: &str| {
        let class = if column >= numbers { " class=\"number\"" } else { "" };
        format!("<{tag}{class}>{}</{tag}>", safe(text))
    };
    let heads = header.iter().enumerate().map(|(column, text)| cell("th", column, text));
    let mut text =
        format!("<div class=\"scroll\"><table>\n<tr>{}</tr>\n", heads.collect::<String>());
    for row in rows {
        let cells = row.iter().enumerate().map(|(column, text)| cell("td", column, text));
        text += &format!("<tr>{}</tr>\n", cells.collect::<String>());
    }
    text + "</table></div>\n"
}

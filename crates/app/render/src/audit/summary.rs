//! The answer that an audit prints by default: at most 25 lines of 100 columns on any cluster.

use dovetail_audit::Severity;
use dovetail_auditing::document::{Document, StateOut};
use dovetail_auditing::figures::at_least;
use dovetail_console::style::Style;
use dovetail_console::table::{COLUMNS, cut, plural, wrapped};
use dovetail_sources::doubts::COUNTS_DISAGREE;
use dovetail_units::amount::{percent, tenths, usd};

use super::grouped::{CheckGroup, count_of, grouped};
use super::states::{money_of, state_label};

/// Lines of the whole answer.
const LINES: usize = 25;
/// Checks that it lists.
const FIXES: usize = 5;
/// Lines of the headline, if whole sentences fit.
const HEAD_LINES: usize = 4;
/// Kinds of missing data that it names.
const MISSING: usize = 4;

/// The headline, GPUs by state, the most valuable fixes, what is missing, and how to see more.
pub fn summary(document: &Document, style: Style) -> String {
    if document.headline.installed_gpus == 0.0 {
        return wrapped(&document.first_line(), 0);
    }
    let mut head = lines(&document.short_first_line(|text| lines(text).len() <= HEAD_LINES));
    if let Some(line) = head.first_mut() {
        *line = style.strong(line);
    }
    head.extend(document.outlook().map(|text| lines(&text)).unwrap_or_default());
    head.extend(document.missing_price().map(|text| lines(&text)).unwrap_or_default());
    head.extend(since_baseline(document));
    let fixes = fixes(document, style);
    let tail = tail(document);
    // States come before what `--all-findings` has.
    let beside = document.states.len() + fixes.len() + tail.len();
    for line in [disputed_counts(document), prices(document)].into_iter().flatten() {
        if head.len() + beside + 4 <= LINES {
            head.push(line);
        }
    }
    let used = head.len() + fixes.len() + tail.len();
    // Each block but the first has an empty line before it.
    let room = LINES.saturating_sub(used + 2);
    let states = states(document, room);
    let blocks = [head, states, fixes];
    let blocks: Vec<String> =
        blocks.iter().filter(|block| !block.is_empty()).map(|block| block.join("\n")).collect();
    format!("{}\n{}\n", blocks.join("\n\n"), tail.join("\n"))
}

fn lines(text: &str) -> Vec<String> {
    wrapped(text, 0).lines().map(str::to_owned).collect()
}

/// Where labels, instance types and plugins count different numbers of GPUs, on one line: every
/// amount rests on which of them counts.
fn disputed_counts(document: &Document) -> Option<String> {
    let mut unseen = document.unseen.iter();
    let told = unseen.find_map(|unseen| unseen.what.strip_prefix(COUNTS_DISAGREE))?;
    Some(cut(&format!("GPU counts disagree{told}"), COLUMNS))
}

/// The price of each kind of GPU, on one line.
fn prices(document: &Document) -> Option<String> {
    let price = |line: &dovetail_sources::node_prices::PriceLine| {
        let usd = usd(Some(line.usd_micros_per_gpu_hour?));
        let bought = match line.purchase {
            "on_demand" => String::new(),
            purchase => format!(" {}", purchase.replace('_', "-")),
        };
        Some(format!("{}{bought} {usd}", line.model.as_deref().unwrap_or("unknown model")))
    };
    let mut known: Vec<String> = document.prices.iter().filter_map(price).collect();
    known.dedup();
    (!known.is_empty())
        .then(|| cut(&format!("Prices per GPU-hour: {}.", known.join(", ")), COLUMNS))
}

fn since_baseline(document: &Document) -> Option<String> {
    let (fixed, then) = (document.fixed.as_ref()?, document.baseline_taken_at.as_ref()?);
    let new = document.findings.iter().filter(|finding| finding.is_new == Some(true)).count();
    let new = plural(new, "new finding", "new findings");
    Some(format!("Since {then}: {new}, {} fixed; --all-findings lists them.", fixed.len()))
}

/// GPUs by state, as many rows as there is room for: small ones are one row.
fn states(document: &Document, room: usize) -> Vec<String> {
    if document.states.is_empty() || room < 2 {
        return Vec::new();
    }
    let all = document.headline.installed_gpus.max(f64::MIN_POSITIVE);
    let row = |what: String, gpus: f64, money: String| {
        format!("  {what:63}{:>9}{:>10}{money:>16}", tenths(gpus), percent(gpus / all))
    };
    let mut order: Vec<&StateOut> = document.states.iter().collect();
    let rows = room - 1;
    let is_cut = order.len() > rows;
    if is_cut {
        order.sort_by(|one, other| other.gpus.total_cmp(&one.gpus));
    }
    let shown = if is_cut { rows - 1 } else { rows };
    let (shown, rest) = order.split_at(shown.min(order.len()));
    let mut lines =
        vec![format!("{:65}{:>9}{:>10}{:>16}", "GPUs by state", "GPUs", "share", "cost per month")];
    lines.extend(shown.iter().map(|state| {
        let what = cut(&state_label(document, state), 62);
        row(what, state.gpus, money_of(state))
    }));
    if is_cut {
        let gpus = rest.iter().map(|state| state.gpus).sum();
        let known = rest.iter().filter_map(|state| state.usd_micros_per_month);
        let micros = known.reduce(|sum, micros| sum + micros);
        let unpriced = rest.iter().map(|state| state.unpriced_gpu_hours_per_month).sum();
        lines.push(row(format!("{} other states", rest.len()), gpus, at_least(micros, unpriced)));
    }
    lines
}

fn fixes(document: &Document, style: Style) -> Vec<String> {
    let groups = grouped(document);
    let count: usize = groups.iter().map(|group| group.findings.len()).sum();
    let of = document.in_namespace();
    if count == 0 {
        let there = if of.is_empty() { "" } else { " in its objects" };
        let line = format!("No findings{of}: no check found anything to fix{there}.");
        return vec![cut(&line, COLUMNS)];
    }
    let start = match of.as_str() {
        "" => "Fixes for the most waste".to_owned(),
        of => format!("Fixes{of}"),
    };
    let heading = match groups.len() > FIXES {
        true => format!("{start}: {FIXES} of {} checks with findings", groups.len()),
        false => format!("Fixes{of}"),
    };
    let count = plural(count, "finding", "findings");
    let heading = cut(&format!("{heading} ({count})"), 84);
    let mut lines = vec![format!("{heading:84}{:>16}", "waste per month")];
    lines.extend(groups.iter().take(FIXES).map(|group| fix(group, style)));
    lines
}

/// One check: what is wrong, with which objects, and what fixing it is worth.
fn fix(group: &CheckGroup<'_>, style: Style) -> String {
    let severity = dovetail_auditing::check_words::severity_words(group.check.severity);
    let id = format!("{:7}", group.check.id);
    let what = cut(&format!("{}: {}", group.check.title, group.objects()), 73);
    let colored = style.severity(severity, &id);
    let worth = group.worth();
    match worth.is_empty() {
        true => format!("  {colored} {what}"),
        false => format!("  {colored} {what:74}{worth:>16}"),
    }
}

/// What could not be measured, how to see more, and what to set in CI.
fn tail(document: &Document) -> Vec<String> {
    let mut tail = Vec::new();
    let what: Vec<&str> = document.unseen.iter().map(|unseen| unseen.what.as_str()).collect();
    let mut missing: Vec<String> = what.iter().take(MISSING).map(|what| cut(what, 40)).collect();
    if what.len() > MISSING {
        missing.push(format!("{} more", what.len() - MISSING));
    }
    missing.extend(document.unread_objects());
    tail.push(String::new());
    if !missing.is_empty() {
        let mut missing = lines(&format!("Missing data: {}.", missing.join(", ")));
        missing.truncate(2);
        tail.extend(missing);
    }
    let example = grouped(document).first().map_or("SCH-01", |group| group.check.id);
    let more = format!(
        "See more: --all-findings, --explain {example}, --patches FOLDER, -o html > audit.html"
    );
    tail.push(more);
    let errors = count_of(document, Severity::Error);
    let now = match errors {
        0 => "none now".to_owned(),
        errors => format!("{errors} now"),
    };
    tail.push(format!("In CI: --fail-on error exits with code 5 if there are errors ({now})."));
    tail
}

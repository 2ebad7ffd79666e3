//! `dovetail audit --explain`.

use anyhow::Result;
use dovetail_audit::{CATALOGUE, Check, Reach, Worth, check};
use dovetail_console::app::App;
use dovetail_console::table::{facts, table, wrapped};
use dovetail_facts::thresholds_of;
use dovetail_settings::SettingOrigin;
use dovetail_settings::errors::UsageError;

use super::check_words::{fix_words, layer_words, severity_words, worth_words};

/// Whether all checks are asked for.
pub fn is_all(id: &str) -> bool {
    id.eq_ignore_ascii_case("all")
}

/// A check, or all of them in a table.
pub fn explain(app: &App, id: &str) -> Result<String> {
    if is_all(id) {
        let rows = CATALOGUE.into_iter().flatten().map(|check| {
            let severity = severity_words(check.severity);
            vec![check.id.to_owned(), severity.to_owned(), check.title.to_owned()]
        });
        return Ok(table(&["check", "severity", "what it finds"], rows.collect()));
    }
    let Some(check) = check(id) else {
        let text = format!("--explain {id}: unknown check; `--explain all` lists all checks");
        return Err(UsageError(text).into());
    };
    Ok(one(check) + &thresholds(app, check))
}

/// What a check can bring; which of it is found for each finding.
fn brings(worth: Worth) -> String {
    match worth {
        Worth::Risk => worth_words(worth).to_owned(),
        _ => "saves money if a node can be removed or pending work fits; else frees GPU-hours"
            .to_owned(),
    }
}

/// What a ledger has less of once a finding is fixed.
fn confirms(reach: Reach) -> String {
    let states: Vec<String> =
        reach.states().iter().map(|state| state.name().replace('_', " ")).collect();
    let whose = match reach {
        Reach::Held(_) => "of its pods",
        Reach::Nodes(_) => "on its nodes",
        Reach::Cluster(_) => "in the whole cluster",
        Reach::Nothing => {
            return "cannot confirm the fix: it does not reduce a specific state of wasted GPU time"
                .to_owned();
        }
    };
    format!("confirms the fix if less GPU time {whose} is in state {}", states.join(" or "))
}

fn one(check: &Check) -> String {
    let mut text = format!("{}: {}\n\n", check.id, check.title);
    text += &wrapped(check.explanation, 0);
    text.push('\n');
    text += &facts(vec![
        ("severity", severity_words(check.severity).to_owned()),
        ("evidence", check.evidence.to_owned()),
        ("effect", brings(check.worth)),
        ("layer", layer_words(check.layer).to_owned()),
        ("edits", fix_words(check.fix, "").to_owned()),
        ("ledger", confirms(check.reach)),
    ]);
    text += &format!("\nExample of a fix:\n  {}\n", check.fix_example);
    text
}

/// The thresholds in force, and where each comes from.
fn thresholds(app: &App, check: &Check) -> String {
    let (section, path) = (&app.settings.audit, &app.settings.scheduler.1);
    let mut text = String::new();
    for threshold in thresholds_of(check.id) {
        let told = match section.of(threshold) {
            None => format!("{} ({})", threshold.default, SettingOrigin::Default),
            Some(value) => {
                let origin = SettingOrigin::File(path.clone());
                format!("{value} ({origin}; the default is {})", threshold.default)
            }
        };
        text += &wrapped(&format!("{} = {told}: {}", threshold.name, threshold.what()), 2);
    }
    match text.is_empty() {
        true => text,
        false => format!("\nThresholds, set in [audit] of dovetail.toml:\n{text}"),
    }
}

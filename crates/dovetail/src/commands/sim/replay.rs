//! `dovetail sim replay`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use dovetail_console::app::App;
use dovetail_console::open::open;
use dovetail_console::style::OutputStream;
use dovetail_console::table::{facts, table, whole};
use dovetail_recording::{replay, what_if};
use dovetail_settings::errors::{BadInput, Diverged};
use dovetail_settings::form::Output;
use dovetail_sim::record::{ComparedDecision, Difference, ReplayReport, WhatIf};

use dovetail_replays::input::policy;

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct ReplayFlags {
    /// Recording written by `sim run --record` or `scheduler --record`, plain or gzip
    #[arg(value_name = "FILE")]
    recording: PathBuf,
    /// Show what another policy would have chosen at each decision, given the recorded cluster
    /// state
    #[arg(long, value_name = "POLICY", value_parser = policy::names())]
    policy: Option<String>,
}

/// Replays a recording and compares every decision.
pub(crate) fn run(app: &App, flags: &ReplayFlags) -> Result<()> {
    let output = app.output("sim replay")?;
    let file = flags.recording.display().to_string();
    if let Some(name) = &flags.policy {
        let policy = policy::seeded(name, app.settings.seed.value);
        let report = what_if(&file, open(&flags.recording)?, policy)?;
        match output {
            Output::Json => app.print_json(&report)?,
            _ => app.print(&what_if_text(app, &file, &report))?,
        }
        return refuse_cut_off(&file, report.cut_off_after_line);
    }
    let report = replay(&file, open(&flags.recording)?)?;
    match output {
        Output::Json => app.print_json(&report)?,
        _ => app.print(&text(app, &file, &report)?)?,
    }
    match report.divergence {
        None => refuse_cut_off(&file, report.cut_off_after_line),
        Some(found) => {
            let text = format!("{file}:{}: the replay made a different decision", found.line);
            Err(Diverged(text).into())
        }
    }
}

/// Ends the command as bad input where a recording is not whole: what its writer decided after the
/// last whole line is unknown. What comes before is compared and reported all the same.
fn refuse_cut_off(file: &str, after_line: Option<u64>) -> Result<()> {
    match after_line {
        None => Ok(()),
        Some(line) => Err(BadInput(format!(
            "{file}:{line}: the recording has no end mark: the process that wrote it was killed, \
             or the file was truncated; only the lines up to here were compared"
        ))
        .into()),
    }
}

fn identical(cut_off_after_line: Option<u64>) -> String {
    match cut_off_after_line {
        None => "identical".to_owned(),
        Some(line) => format!(
            "identical up to line {}, where the recording ends without an end mark",
            whole(line)
        ),
    }
}

/// What a person wants to see.
fn text(app: &App, file: &str, report: &ReplayReport) -> Result<String> {
    let title = app.style(OutputStream::Result).strong(&format!("replay of {file}"));
    let mut rows = vec![
        ("recorded by", format!("dovetail {}", report.recorded_by)),
        ("steps", whole(report.steps)),
        ("decisions", whole(report.actions)),
    ];
    match &report.divergence {
        None => rows.push(("result", identical(report.cut_off_after_line))),
        Some(found) => {
            rows.push(("result", format!("differs from line {} onward", found.line)));
            rows.push(("virtual time", format!("{} ms", found.now_ms)));
            rows.push(("recorded", decision(found.recorded.as_ref())?));
            rows.push(("replayed", decision(found.replayed.as_ref())?));
        }
    }
    rows.push(("event log", report.event_log_hash.clone()));
    Ok(format!("{title}\n\n{}", facts(rows)))
}

/// What the other policy would have chosen, for people.
fn what_if_text(app: &App, file: &str, report: &WhatIf) -> String {
    let title = format!("what {} would have chosen in {file}", report.policy);
    let title = app.style(OutputStream::Result).strong(&title);
    let figures = facts(vec![
        ("recorded by", format!("dovetail {}", report.recorded_by)),
        ("recorded policy", report.recorded_policy.clone()),
        ("jobs placed", whole(report.decisions)),
        ("on the same nodes", whole(report.same_nodes)),
        ("on other nodes", whole(report.other_nodes)),
        ("not placed", whole(report.not_placed)),
    ]);
    if report.differences.is_empty() {
        return format!("{title}\n\n{figures}");
    }
    let row = |found: &Difference| {
        let chosen = if found.chosen.is_empty() { "none".into() } else { found.chosen.join(", ") };
        vec![found.now_ms.to_string(), found.job.clone(), found.recorded.join(", "), chosen]
    };
    let rows = report.differences.iter().map(row).collect();
    let header = ["time (ms)", "job", "recorded", "would have chosen"];
    format!("{title}\n\n{figures}\nthe first differences\n\n{}", table(&header, rows))
}

/// A decision as it stands in the recording.
fn decision(decision: Option<&ComparedDecision>) -> Result<String> {
    let text = decision.map(serde_json::to_string).transpose()?;
    Ok(text.unwrap_or_else(|| "nothing more".to_owned()))
}

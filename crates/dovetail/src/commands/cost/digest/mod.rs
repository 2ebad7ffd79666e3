//! `dovetail cost digest`: a team's week out of a ledger, on paper or handed to an address.

use anyhow::{Context, Result, bail};
use clap::{ArgAction, Args};
use dovetail_account::device_time::Span;
use dovetail_account::rollup::DAY_MS;
use dovetail_console::app::App;
use dovetail_console::clock::now_ms;
use dovetail_console::plain::plain;
use dovetail_costing::digest::week;
use dovetail_costing::digest::week::{TeamWeek, Weeks};
use dovetail_costing::from_store::{Ledger, bad_address, require_file};
use dovetail_costing::split_flags::SplitFlags;
use dovetail_render::cost::digest as page;
use dovetail_serve::webhook::{Patience, Webhook};
use dovetail_settings::errors::UsageError;
use dovetail_settings::form::Output;
use dovetail_store::Address;
use serde_json::json;

/// Name and version of the form.
const SCHEMA: &str = "dovetail-digest/1";

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct DigestFlags {
    /// Ledger written by dovetail serve or cost --store: a file, or postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "LEDGER")]
    store: String,
    /// Cluster in the ledger [default: all]
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Team to report; repeatable [default: all teams with GPU time]
    #[arg(long, value_name = "NAME", action = ArgAction::Append)]
    team: Vec<String>,
    /// End of the week: the digest covers the seven full days (UTC) before this day or time, such
    /// as 2026-11-20 [default: now]
    #[arg(long, value_name = "TIME", value_parser = day_or_time)]
    until: Option<jiff::Timestamp>,
    #[command(flatten)]
    split: SplitFlags,
    /// Send each digest to the team's URL in [notices.webhooks] of dovetail.toml, as {"text":
    /// MARKDOWN}, instead of printing it
    #[arg(long)]
    send: bool,
}

/// Prints or sends.
pub(crate) fn run(app: &App, flags: &DigestFlags) -> Result<()> {
    let output = app.output("cost digest")?;
    let weeks = weeks(app, flags)?;
    if flags.send {
        return send(app, &weeks.of_teams);
    }
    match output {
        Output::Json => app.print_json(&json!({"schema": SCHEMA, "weeks": weeks.of_teams})),
        Output::Html => app.print(&page::html(&weeks)),
        // Markdown is what a terminal can show, too.
        _ => app.print(&page::all_markdown(&weeks)),
    }
}

/// A time, or a day (UTC), which is its begin.
fn day_or_time(text: &str) -> Result<jiff::Timestamp, String> {
    let of_day = || text.parse::<jiff::civil::Date>()?.to_zoned(jiff::tz::TimeZone::UTC);
    let time = text.parse::<jiff::Timestamp>();
    time.or_else(|_| of_day().map(|day| day.timestamp())).map_err(|_| {
        "expected a day such as 2026-11-20, or a time such as 2026-11-20T12:00:00Z".to_owned()
    })
}

fn weeks(app: &App, flags: &DigestFlags) -> Result<Weeks> {
    let address: Address = flags.store.parse().map_err(|error| bad_address("--store", error))?;
    require_file("--store", &address, "")?;
    let mut ledger = Ledger::open("--store", &address)?;
    let until_ms = flags.until.map_or_else(now_ms, |t| t.as_millisecond().max(0).cast_unsigned());
    let to_ms = until_ms / DAY_MS * DAY_MS;
    if to_ms > now_ms() {
        let text = format!(
            "--until {}: the last of these seven days has not ended; omit --until, or pass a time \
             in the past",
            dovetail_units::time::time(until_ms)
        );
        return Err(UsageError(text).into());
    }
    let span = Span { from_ms: to_ms.saturating_sub(7 * DAY_MS), to_ms };
    let (teams, method) = (flags.split.teams(app), flags.split.method(app));
    let wanted = (&teams, &*flags.team);
    let mut weeks = week::weeks(&mut ledger, flags.cluster.as_deref(), wanted, method, span)?;
    if !flags.team.is_empty() {
        let known: Vec<String> = weeks.of_teams.iter().map(|week| week.team.clone()).collect();
        if let Some(team) = flags.team.iter().find(|team| !known.contains(&plain(team))) {
            bail!(
                "team `{}` used no GPUs in the week before {} or in the week before that; teams \
                 that did: {}",
                plain(team),
                dovetail_units::time::time(span.to_ms),
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            );
        }
        let wanted: Vec<String> = flags.team.iter().map(|team| plain(team)).collect();
        weeks.of_teams.retain(|week| wanted.contains(&week.team));
    }
    Ok(weeks)
}

/// Every digest is tried; what did not arrive is told at the end.
fn send(app: &App, weeks: &[TeamWeek]) -> Result<()> {
    let hooks = app.settings.notices.webhooks.clone().unwrap_or_default();
    if hooks.is_empty() {
        let text = "--send: [notices.webhooks] in dovetail.toml is empty: add TEAM = \"https://HOST/PATH\"";
        return Err(UsageError(text.to_owned()).into());
    }
    let runtime = dovetail_console::connection::connection_runtime()?;
    let mut failed = Vec::new();
    for week in weeks {
        let Some(url) = hooks.get(&week.team) else {
            app.note(&format!("{}: no address to send the digest to", week.team));
            continue;
        };
        let hook = Webhook::new(url, Patience::default())
            .with_context(|| format!("notices.webhooks.{}", week.team))?;
        let body = json!({"text": page::markdown(week)});
        match runtime.block_on(hook.send(&body)) {
            Ok(()) => app.note(&format!("{}: sent", week.team)),
            Err(error) => failed.push(format!("{}: {error}", week.team)),
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => bail!(
            "{} of {} digests were not delivered: {}",
            failed.len(),
            weeks.len(),
            failed.join("; ")
        ),
    }
}

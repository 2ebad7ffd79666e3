//! `dovetail audit`: which GPUs a cluster wastes, what that costs, and how to fix it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::builder::NonEmptyStringValueParser;
use clap::{ArgAction, Args, ValueEnum};
use dovetail_audit::{Severity, findings, report_of};
use dovetail_auditing::document::Document;
use dovetail_auditing::{baseline, explain, ignore_file, ledger, spot};
use dovetail_console::app::App;
use dovetail_console::plain::plain;
use dovetail_console::style::OutputStream;
use dovetail_console::table::plural;
use dovetail_facts::device_states;
use dovetail_inventory::facts::{DESCRIBE_POD, Gathered, Unjudged};
use dovetail_render::audit::{html, markdown, patch_files, sarif, summary, terminal};
use dovetail_settings::SettingOrigin;
use dovetail_settings::errors::{FailingFindings, UsageError};
use dovetail_settings::form::Output;
use dovetail_sources::doubts::CONTESTED;
use dovetail_sources::exporters::ExporterFlags;
use dovetail_sources::namespace::NamespaceFlags;
use dovetail_sources::node_prices::NodeToPrice;
use dovetail_sources::objects::ObjectFlags;
use dovetail_sources::own_prices::OwnPriceFlags;
use dovetail_sources::prometheus::{Chosen, ServerChoice, ServerFlags};
use dovetail_sources::uses::{UsageFileFlags, Uses, apply};
use dovetail_sources::uses_of_server;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct AuditFlags {
    #[command(flatten)]
    source: ObjectFlags,
    #[command(flatten)]
    namespace: NamespaceFlags,
    #[command(flatten)]
    measured: UsageFileFlags,
    /// URL of Prometheus, Thanos, Mimir or VictoriaMetrics, without /api/v1; `auto` searches the
    /// cluster for a server, `none` uses no server
    #[arg(long, value_name = "URL", default_value = "auto", conflicts_with = "usage")]
    prometheus: ServerChoice,
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    exporters: ExporterFlags,
    /// Label that names the team, on a pod or its namespace; repeatable [default: team,
    /// cost-center, owner, ...]
    #[arg(long, value_name = "LABEL", action = ArgAction::Append)]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    team_label: Vec<String>,
    /// List every finding with its evidence and fix, instead of only the most expensive ones
    #[arg(long)]
    all_findings: bool,
    /// File of findings to ignore, each with a reason (docs/find-waste.md)
    #[arg(long, value_name = "FILE")]
    ignore_file: Option<PathBuf>,
    /// Write patches to a new or empty folder, with an index of what they change and restart
    #[arg(long, value_name = "FOLDER")]
    patches: Option<PathBuf>,
    /// Earlier audit (-o json) to compare with: reports new and fixed findings
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    #[command(flatten)]
    ledger: ledger::LedgerFlags,
    /// Exit with code 5 on findings of this severity or worse; with --baseline, only on new ones
    #[arg(long, value_name = "SEVERITY", default_value = "never")]
    fail_on: FailOn,
    /// Explain a check, as text; with --from, --example, --kubeconfig or --context, also list its
    /// findings; `all` lists all checks
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    explain: Option<String>,
    #[command(flatten)]
    prices: OwnPriceFlags,
}

/// The severity from which an audit fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// Any finding
    Info,
    /// Warnings and errors
    Warning,
    /// Errors only
    Error,
    /// Exit with 0 whatever is found
    Never,
}

impl FailOn {
    fn is_reached_by(self, severity: Severity) -> bool {
        match self {
            Self::Info => true,
            Self::Warning => severity >= Severity::Warning,
            Self::Error => severity >= Severity::Error,
            Self::Never => false,
        }
    }
}

impl AuditFlags {
    /// Labels of namespaces that name a team.
    fn teams(&self) -> BTreeSet<String> {
        match self.team_label.is_empty() {
            true => dovetail_inventory::facts::TEAM_LABELS.map(str::to_owned).into(),
            false => self.team_label.iter().cloned().collect(),
        }
    }

    /// What GPUs did, from wherever the flags say.
    fn uses(&self, app: &App, gathered: &mut Gathered) -> Result<Option<Uses>> {
        if self.exporters.are_given() {
            let looked = self.exporters.read(app, self.source.server())?;
            return Ok(Some(looked.uses(gathered)));
        }
        let choice = self.measured.or_else(&self.prometheus);
        let Chosen { asker, told } = self.server.chosen(choice, self.source.server())?;
        told.iter().for_each(|text| app.note(text));
        match asker {
            Some(mut asker) => Ok(Some(uses_of_server::read(app, &mut asker, gathered)?)),
            None => {
                self.server.without_effect().iter().for_each(|text| app.note(text));
                self.measured.read(gathered, self.source.example)
            }
        }
    }
}

/// Lines of notes beside an answer of one screen.
const MOST_NOTES: usize = 5;

/// Audits, or explains a check.
pub(crate) fn run(app: &App, flags: &AuditFlags) -> Result<()> {
    let explained = flags.explain.as_ref().map(|id| explain::explain(app, id)).transpose()?;
    let mut output = app.output("audit")?;
    let is_default = !matches!(app.settings.output.origin, SettingOrigin::Flag(_));
    if explained.is_some() && is_default {
        output = Output::Table;
    }
    if explained.is_some() && output != Output::Table {
        let text = format!(
            "--explain does not support -o {}: use -o table, or omit --explain to get all findings \
             in this format",
            app.settings.output.value.name()
        );
        return Err(UsageError(text).into());
    }
    if let Some(text) = &explained
        && (!flags.source.is_given() || flags.explain.as_deref().is_some_and(explain::is_all))
    {
        return app.print(text);
    }
    let is_summary = matches!(output, Output::Table) && !flags.all_findings && explained.is_none();
    if is_summary {
        app.limit_notes(MOST_NOTES, "--all-findings prints all notes");
    }
    let document = audited(app, flags)?;
    if let Some(folder) = &flags.patches {
        let count = patch_files::write(folder, &document)?;
        let index = folder.join("index.md");
        let written = plural(count, "patch", "patches");
        app.note(&format!("wrote {written}: start with {}", index.display()));
    }
    let style = app.style(OutputStream::Result);
    match output {
        Output::Json | Output::Yaml => app.print_json(&document)?,
        Output::Sarif => app.print_json(&sarif::sarif(&document))?,
        Output::Markdown => app.print(&markdown::markdown(&document))?,
        Output::Html => app.print(&html::html(&document))?,
        Output::Table | Output::Csv if is_summary => {
            document.notes.iter().for_each(|note| app.note(note));
            app.tell_left_out_notes();
            app.print(&summary::summary(&document, style))?;
        }
        Output::Table | Output::Csv => match (&flags.explain, explained) {
            (Some(id), Some(text)) => {
                app.print(&format!("{text}{}", terminal::findings_of(&document, id, style)))?;
            }
            _ => app.print(&terminal::terminal(&document, style))?,
        },
    }
    let ended = fail_on(flags, &document);
    std::mem::forget(document);
    ended
}

/// The audit of whatever the flags name.
fn audited(app: &App, flags: &AuditFlags) -> Result<Document> {
    if flags.source.example {
        flags.server.refuse_period_of_example(&flags.prometheus)?;
    }
    let policy = match &flags.ignore_file {
        Some(path) => ignore_file::read(path)?,
        None => Default::default(),
    };
    let read = |path| baseline::read(path, flags.namespace.only());
    let old = flags.baseline.as_deref().map(read).transpose()?;
    flags.patches.as_deref().map(patch_files::check).transpose()?;
    let read = flags.source.read(app)?.with_all_nodes_and_pods()?;
    let mut sources = read.sources;
    let mut gathered = read.inventory.facts(flags.teams());
    gathered.facts.thresholds = app.settings.audit.thresholds();
    spot::mark(&mut gathered);
    let mut measured = Vec::new();
    if let Some(uses) = flags.uses(app, &mut gathered)? {
        measured = apply(&mut gathered, &uses);
        sources.push(uses.source);
    }
    let states = device_states(&mut gathered.facts, &gathered.moment)
        .context("cannot determine why GPUs are free")?;
    gathered.unjudged.extend(states.contested.iter().map(|pod| Unjudged {
        pod: pod.clone(),
        reason: format!("it {CONTESTED}"),
        command: DESCRIBE_POD.to_owned(),
    }));
    spot::mark_cheapest(&mut gathered, &flags.prices.book(&app.settings)?);
    let prices = flags.prices.of(&NodeToPrice::all_of(&gathered), &app.settings)?;
    let at = (&gathered.facts, &gathered.moment);
    // Some checks ask the engine about the whole cluster.
    let found = findings(at.0, at.1, |count, run| (0..count).into_par_iter().for_each(run));
    let found = report_of(found, at, states, &prices.of_nodes, &policy);
    let mut document = Document::of(sources, &gathered, &found, prices, old.as_ref());
    document.notes.extend(measured);
    document.notes.extend(ignore_file::without_effect(&policy, &found));
    document.notes.extend(app.settings.cost.without_effect_on_audit());
    let document = flags.ledger.held_against(app, &gathered, document)?;
    let mut document = document.with_doubt(old.as_ref(), gathered.facts.now_ms);
    if let Some(namespace) = flags.namespace.only() {
        let pods = gathered.facts.workloads.iter().map(|of| &of.owner.namespace);
        let known = gathered.facts.namespaces.iter().map(|of| &of.name).chain(pods);
        if !known.into_iter().any(|known| known == namespace) {
            let name = plain(namespace);
            // Without it every other line would be about the wrong question.
            let note = format!("namespace {name} is not in the input: check its name");
            document.notes.insert(0, note);
        }
        document.keep_namespace(namespace);
    }
    // The program ends soon: to free a large cluster piece by piece takes time without effect.
    std::mem::forget((gathered, found));
    Ok(document)
}

/// The error of an audit with findings that it is to fail on.
fn fail_on(flags: &AuditFlags, document: &Document) -> Result<()> {
    let failing = document.findings.iter().filter(|finding| {
        let counts = finding.suppressed.is_none() && finding.is_new != Some(false);
        counts && flags.fail_on.is_reached_by(finding.check.severity)
    });
    match failing.count() {
        0 => Ok(()),
        count => Err(FailingFindings(format!(
            "{} at or above the severity of --fail-on {}",
            plural(count, "finding is", "findings are"),
            flags.fail_on.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned())
        ))
        .into()),
    }
}

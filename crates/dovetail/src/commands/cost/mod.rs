//! `dovetail cost`: who pays what for GPUs, and for what.

mod account;
mod billed;
pub(crate) mod collecting;
pub(crate) mod digest;
mod dimension;
mod document;
mod doubts_told;
mod flags;
mod focus;
mod free_moments;
mod from_exporters;
mod from_ledger;
mod from_objects;
mod from_prometheus;
mod from_store;
mod job;
mod names;
pub(crate) mod noticing;
mod parts_told;
mod questions;
mod reading;
mod receipt_lives;
mod receipts;
mod resolution;
mod rows_csv;
mod same_names;
mod silence;
mod statement;
mod teams;
mod terminal;
mod top;
mod turns;
mod without_price;

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use dovetail_bill::focus::Version;

use crate::app::App;
use crate::clock::now_ms;
use crate::output::Output;
use crate::output::shortened::shortened;
use crate::output::table::counted;
use crate::settings::{Origin, Setting};
use account::{Account, Basis};
use dimension::Dimension;
use document::Document;
use flags::{AccountFlags, Terms};
use from_store::Answer;
pub(crate) use from_store::{Ledger, bad_address};
use statement::Statement;
use top::Top;

/// Flags as written.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct CostFlags {
    #[command(subcommand)]
    question: Option<Question>,
    #[command(flatten)]
    account: AccountFlags,
    /// A ledger: a file, or postgres://USER@HOST/DATABASE. What is read of --prometheus is kept in it, only what
    /// it does not have of the period is read, and the answer comes out of it; without --prometheus nothing
    /// is read
    #[arg(long, value_name = "LEDGER", conflicts_with_all = ["usage", "example", "exporter", "exporters_in"])]
    store: Option<String>,
    /// Only the pods of your namespaces: those in which the credentials of --kubeconfig may list pods, as the
    /// cluster itself says
    #[arg(long, requires = "kubeconfig", conflicts_with = "focus")]
    mine: bool,
    /// One row for each of these; several, separated by commas, such as team,cause
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "WHAT",
        default_value = "namespace"
    )]
    by: Vec<Dimension>,
    /// Only so many rows, those that cost most, and one for all others
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "focus")]
    top: Option<u32>,
    /// Print the bill in the FinOps form FOCUS instead, of this version: 1.2, 1.3 or 1.4; of one snapshot an hour
    /// of it
    #[arg(long, value_name = "VERSION", conflicts_with = "by")]
    focus: Option<Version>,
}

/// Questions beside the bill.
#[derive(Debug, Subcommand)]
enum Question {
    /// Say where the hours of one job went, in money, with what would mend it.
    Job(Box<job::JobFlags>),
    /// Answer what people ask first: who wastes most, how busy GPUs are, what is idle, low, misplaced, on spot.
    Questions(Box<questions::QuestionsFlags>),
    /// Say what each team had in a week, and in the week before, out of a ledger; on paper, or sent.
    Digest(Box<digest::DigestFlags>),
}

/// Reads, splits and prints.
pub(crate) fn run(app: &App, flags: &CostFlags) -> Result<()> {
    match &flags.question {
        Some(Question::Job(flags)) => return job::run(app, flags),
        Some(Question::Questions(flags)) => return questions::run(app, flags),
        Some(Question::Digest(flags)) => return digest::run(app, flags),
        None => {}
    }
    let output = app.output("cost")?;
    flags.refuse_other_forms_of_focus(app)?;
    let by = flags.dimensions()?;
    flags.refuse_mine_without_cluster()?;
    if let Some(ledger) = &flags.store {
        return match from_store::answer(app, flags, ledger, &by)? {
            Answer::Document(document) => print(app, output, &document),
            Answer::Account(account, terms) => print_focus(app, &account, &terms, flags.focus),
        };
    }
    let terms = flags.account.terms(app)?;
    let (mut account, bill) = flags.account.account(app, &terms, flags.focus.is_some())?;
    account.restrict_to(flags.own_namespaces()?);
    if flags.focus.is_some() {
        return print_focus(app, &account, &terms, flags.focus);
    }
    if by.contains(&Dimension::Team) && account.basis != Basis::RunRate {
        account.notes.extend(flags.account.teams(app).restated().map(str::to_owned));
    }
    let statement = Statement::of_top(&account, (terms.method, terms.unused), &by, flags.top())?;
    print(app, output, &Document::of(&account, &statement, bill, now_ms()))
}

fn print_focus(
    app: &App,
    account: &Account,
    terms: &Terms,
    version: Option<Version>,
) -> Result<()> {
    let Some(version) = version else { bail!("the command line names a version") };
    let (dataset, without_price) = focus::dataset(account, terms.method, terms.unused, version)?;
    if without_price > 0 {
        let periods = counted(without_price, "node-period");
        app.note(&format!("{periods} without a price: not in it"));
    }
    account.notes.iter().for_each(|note| app.note(&shortened(note)));
    app.print(&dataset)
}

fn print(app: &App, output: Output, document: &Document) -> Result<()> {
    match output {
        Output::Json => app.print_json(document),
        Output::Csv => {
            document.notes.iter().for_each(|note| app.note(&shortened(note)));
            app.print(&rows_csv::rows_csv(document)?)
        }
        _ => app.print(&terminal::terminal(document)),
    }
}

impl CostFlags {
    /// A dataset of FOCUS has one form.
    fn refuse_other_forms_of_focus(&self, app: &App) -> Result<()> {
        let Setting { value: output, origin } = &app.settings.output;
        let is_named = matches!(origin, Origin::Flag(_)) && *output != Output::Csv;
        if self.focus.is_none() || !is_named {
            return Ok(());
        }
        let text = format!(
            "--focus prints a dataset of FOCUS, which is CSV: leave out --output {}, or leave out --focus for the bill \
             in that form",
            output.name()
        );
        Err(crate::exit::UsageError(text).into())
    }

    /// Beside --from and --example, which stand in for a cluster, the parser no longer asks for --kubeconfig.
    fn refuse_mine_without_cluster(&self) -> Result<()> {
        if !self.mine || self.account.objects.server().is_some() {
            return Ok(());
        }
        let text = "--mine needs --kubeconfig: whose namespaces are yours only a cluster says, objects of a file or \
                    of the example do not; give --kubeconfig in their place, or leave out --mine";
        Err(crate::exit::UsageError(text.to_owned()).into())
    }

    /// The namespaces of who asks, where only they are asked for.
    fn own_namespaces(&self) -> Result<Option<BTreeSet<String>>> {
        let kubeconfig = self.account.objects.server().filter(|_| self.mine);
        kubeconfig.map(crate::input::own_namespaces::own_namespaces).transpose()
    }

    fn top(&self) -> Option<Top> {
        self.top.map(|most| Top { most, told_as_one: 0 })
    }

    fn dimensions(&self) -> Result<Vec<Dimension>> {
        let names: Vec<String> = self.by.iter().map(|by| by.name()).collect();
        crate::exit::refuse_twice("--by", names.iter().map(String::as_str))?;
        Ok(self.by.clone())
    }
}

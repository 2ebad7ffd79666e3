//! `dovetail cost`: who pays what for GPUs, and for what.

pub(crate) mod digest;
mod job;
mod questions;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use dovetail_bill::focus::FocusVersion;
use dovetail_console::app::App;
use dovetail_console::clock::now_ms;
use dovetail_console::shortened::shortened;
use dovetail_console::table::counted;
use dovetail_costing::account::{Account, Basis};
use dovetail_costing::bill_flags::BillFlags;
use dovetail_costing::dimension::Dimension;
use dovetail_costing::document::Document;
use dovetail_costing::flags::BillTerms;
use dovetail_costing::from_store::LedgerResult;
use dovetail_costing::statement::Statement;
use dovetail_costing::{focus, from_store};
use dovetail_render::cost::{rows_csv, terminal};
use dovetail_settings::form::Output;

/// Flags as written.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct CostFlags {
    #[command(subcommand)]
    question: Option<CostQuestion>,
    #[command(flatten)]
    bill: BillFlags,
}

/// Questions beside the bill.
#[derive(Debug, Subcommand)]
enum CostQuestion {
    /// Show where the GPU-hours of a job went, what they cost, and what would help.
    Job(Box<job::JobFlags>),
    /// Answer common questions: which teams and jobs waste the most, how busy GPUs are, what runs
    /// on spot capacity.
    Questions(Box<questions::QuestionsFlags>),
    /// Report what each team used in a week and in the week before, from a ledger.
    Digest(Box<digest::DigestFlags>),
}

/// Reads, splits and prints.
pub(crate) fn run(app: &App, flags: &CostFlags) -> Result<()> {
    match &flags.question {
        Some(CostQuestion::Job(flags)) => return job::run(app, flags),
        Some(CostQuestion::Questions(flags)) => return questions::run(app, flags),
        Some(CostQuestion::Digest(flags)) => return digest::run(app, flags),
        None => {}
    }
    let flags = &flags.bill;
    let output = app.output("cost")?;
    flags.refuse_other_forms_of_focus(app)?;
    let by = flags.dimensions()?;
    flags.refuse_mine_without_cluster()?;
    if let Some(ledger) = &flags.store {
        return match from_store::answer(app, flags, ledger, &by)? {
            LedgerResult::Document(document) => print(app, output, &document),
            LedgerResult::Account(account, terms) => {
                print_focus(app, &account, &terms, flags.focus)
            }
        };
    }
    let terms = flags.account.terms(app)?;
    let (mut account, bill) = flags.account.account(app, &terms, flags.focus.is_some())?;
    account.restrict_to(flags.only()?);
    if flags.focus.is_some() {
        return print_focus(app, &account, &terms, flags.focus);
    }
    if by.contains(&Dimension::Team) && account.basis != Basis::RunRate {
        account.notes.extend(flags.account.split.teams(app).restated().map(str::to_owned));
    }
    let statement =
        Statement::of_account(&account, (terms.method, terms.unused), &by, flags.top())?;
    print(app, output, &Document::of(&account, &statement, bill, now_ms()))
}

fn print_focus(
    app: &App,
    account: &Account,
    terms: &BillTerms,
    version: Option<FocusVersion>,
) -> Result<()> {
    let Some(version) = version else { bail!("--focus requires a version") };
    let (dataset, without_price) = focus::dataset(account, terms.method, terms.unused, version)?;
    if without_price > 0 {
        let periods = counted(without_price, "charge period");
        let (have, are) = if without_price == 1 { ("has", "is") } else { ("have", "are") };
        app.note(&format!(
            "{periods} of nodes {have} no price and {are} omitted from the FOCUS file"
        ));
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

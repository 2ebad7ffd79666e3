//! `dovetail cost questions`: what people ask first, each with how it is answered and how sure that is.
//!
//! | module | what |
//! |---|---|
//! | `asked` | what answers are made from: charges, and how busy devices were |
//! | `answer` | the form of an answer |
//! | `by_charge` | answers from the bill |
//! | `by_level` | answers from how busy devices were |
//! | `training` | what counts as training, for every question about it |
//! | `attempts`, `by_run` | pods as parts of runs, and what those cost |
//! | `waits`, `by_wait` | when pods were asked for and placed, and how long teams wait |
//! | `by_request` | what requests and tokens cost |
//! | `document`, `terminal` | in JSON, and for people |

mod answer;
mod asked;
mod attempts;
mod by_charge;
mod by_level;
mod by_request;
mod by_run;
mod by_wait;
mod document;
mod range;
mod terminal;
mod training;
mod waits;

use anyhow::Result;
use clap::{Args, ValueEnum};

use super::flags::AccountFlags;
use crate::app::App;
use crate::clock::now_ms;
use crate::output::Output;
use asked::Asked;
use document::Document;

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct QuestionsFlags {
    /// Which questions; all where none is named
    #[arg(value_enum, value_name = "QUESTION")]
    questions: Vec<Name>,
    #[command(flatten)]
    account: AccountFlags,
}

/// A question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Name {
    /// Which ten workloads waste most
    Top,
    /// How busy are each team's GPUs on average, and how much of what it holds is active
    Teams,
    /// How many GPU-hours are held and idle, and whose
    Idle,
    /// Which pods were below 30 % for more than 6 hours
    Low,
    /// Which nodes with GPUs carry pods that need none
    Beside,
    /// How much of training runs on spot capacity
    Spot,
    /// What does each training run cost, with the attempts that failed
    Runs,
    /// How long does each team wait for the first and for the last member of what it starts
    Wait,
    /// What do 1,000 requests and a million tokens cost
    Requests,
}

/// Reads, answers and prints.
pub(super) fn run(app: &App, flags: &QuestionsFlags) -> Result<()> {
    let output = app.output("cost questions")?;
    let wanted: Vec<Name> = match flags.questions.is_empty() {
        true => Name::value_variants().to_vec(),
        false => flags.questions.clone(),
    };
    let names: Vec<String> = wanted.iter().map(|name| name.text()).collect();
    crate::exit::refuse_twice("cost questions", names.iter().map(String::as_str))?;
    let terms = flags.account.terms(app)?;
    let asked = Asked::of(app, &flags.account, &terms)?;
    let document = Document::of(&asked, &terms, &wanted, now_ms())?;
    match output {
        Output::Json => app.print_json(&document),
        _ => app.print(&terminal::terminal(&document)),
    }
}

impl Name {
    /// As on the command line.
    fn text(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// In words.
    fn words(self) -> String {
        let value = self.to_possible_value();
        let help = value.and_then(|value| value.get_help().map(ToString::to_string));
        format!("{}?", help.unwrap_or_default())
    }
}

//! `dovetail cost questions`: what people ask first, each with how it is answered and how sure that
//! is.
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
//! | `name` | the questions by name |
//! | `document`, `terminal` | in JSON, and for people |

use anyhow::Result;
use clap::{Args, ValueEnum};
use dovetail_console::app::App;
use dovetail_console::clock::now_ms;
use dovetail_costing::flags::AccountFlags;
use dovetail_costing::questions::asked::QuestionInput;
use dovetail_costing::questions::document::Document;
use dovetail_costing::questions::name::QuestionName;
use dovetail_render::cost::questions as terminal;
use dovetail_settings::form::Output;

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct QuestionsFlags {
    /// Questions to answer [default: all]
    #[arg(value_enum, value_name = "QUESTION")]
    questions: Vec<QuestionName>,
    #[command(flatten)]
    account: AccountFlags,
}

/// Reads, answers and prints.
pub(super) fn run(app: &App, flags: &QuestionsFlags) -> Result<()> {
    let output = app.output("cost questions")?;
    let wanted: Vec<QuestionName> = match flags.questions.is_empty() {
        true => QuestionName::value_variants().to_vec(),
        false => flags.questions.clone(),
    };
    let names: Vec<String> = wanted.iter().map(|name| name.text()).collect();
    dovetail_settings::errors::refuse_twice("cost questions", names.iter().map(String::as_str))?;
    let terms = flags.account.terms(app)?;
    let asked = QuestionInput::of(app, &flags.account, &terms)?;
    let document = Document::of(&asked, &terms, &wanted, now_ms())?;
    match output {
        Output::Json => app.print_json(&document),
        _ => app.print(&terminal::terminal(&document)),
    }
}

//! The top of the command line: commands, and the flags that all of them share.

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::app::App;
use crate::commands::{config, demo, markdown_help, sim, trace, usage};
use crate::exit::EXIT_CODES;
use crate::settings::{SettingFlags, Settings};

/// Ends GPU waste: schedules GPU clusters, and shows what another scheduler would have done.
#[derive(Debug, Parser)]
#[command(name = "dovetail", version, after_help = EXIT_CODES, max_term_width = 100)]
#[command(propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    settings: SettingFlags,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Replay a trace under any policy, compare policies, and compute what no policy can exceed.
    #[command(subcommand)]
    Sim(sim::Command),
    /// Read, generate, describe and convert traces of clusters.
    #[command(subcommand)]
    Trace(trace::Command),
    /// Read what GPUs did while somebody held them.
    #[command(subcommand)]
    Usage(usage::Command),
    /// Watch a month of a real-size GPU cluster being scheduled, with the waste in money.
    Demo(Box<demo::DemoFlags>),
    /// Print every setting with its value and where the value comes from.
    Config,
    /// Print the reference of the command line as Markdown.
    #[command(hide = true)]
    MarkdownHelp,
}

impl Cli {
    /// Does what the command line says.
    pub(crate) fn run(self) -> Result<()> {
        let app = App::new(Settings::resolve(&self.settings)?);
        match self.command {
            Command::Sim(command) => command.run(&app),
            Command::Trace(command) => command.run(&app),
            Command::Usage(command) => command.run(&app),
            Command::Demo(flags) => demo::run(&app, &flags),
            Command::Config => config::run(&app),
            Command::MarkdownHelp => markdown_help::run(&app),
        }
    }
}

//! `dovetail completion`: what a shell completes after `dovetail`.

use anyhow::{Context, Result};
use clap::Args;
use clap_complete::{Shell, generate};
use dovetail_console::app::App;

use crate::cli::Cli;

/// For which shell.
#[derive(Debug, Args)]
pub(crate) struct CompletionFlags {
    /// Shell; to load the script in bash: `source <(dovetail completion bash)`
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(app: &App, flags: &CompletionFlags) -> Result<()> {
    let mut script = Vec::new();
    generate(flags.shell, &mut Cli::built(), "dovetail", &mut script);
    app.print(&String::from_utf8(script).context("the completion script is not UTF-8")?)
}

//! `dovetail markdown-help`: the reference of the command line, written from its definition.

use std::fmt::Write as _;

use anyhow::Result;
use clap::{Arg, Command, CommandFactory};
use dovetail_console::app::App;
use dovetail_console::forms::forms;

use crate::cli::Cli;
use crate::exit::EXIT_CODES;

/// Prints the reference.
pub(crate) fn run(app: &App) -> Result<()> {
    app.print(&reference())
}

fn reference() -> String {
    let mut root = Cli::command();
    root.build();
    let mut text = String::from(
        "<!-- Written by `cargo xtask codegen cli`. Change the definitions in crates/dovetail. -->\n\
         # Command line\n",
    );
    write_command(&mut text, &root, "");
    let shared: Vec<&Arg> = root.get_arguments().filter(|arg| arg.is_global_set()).collect();
    text.push_str("\n## Global flags\n");
    write_arguments(&mut text, &shared);
    let _ = write!(text, "\n## Exit codes\n\n```text\n{EXIT_CODES}\n```\n");
    text
}

fn write_command(text: &mut String, command: &Command, parents: &str) {
    let path = format!("{parents} {}", command.get_name()).trim_start().to_owned();
    let is_help = |command: &&Command| command.get_name() != "help" && !command.is_hide_set();
    let children: Vec<&Command> = command.get_subcommands().filter(is_help).collect();
    let _ = write!(text, "\n## `{path}`\n\n{}\n", about(command));
    let own: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| !arg.is_global_set() && !arg.is_hide_set())
        .filter(|arg| !["help", "version"].contains(&arg.get_id().as_str()))
        .collect();
    if children.is_empty() {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ");
        let _ = write!(text, "\n```text\n{usage}\n```\n");
    } else {
        text.push_str("\n| command | what it does |\n|---|---|\n");
        for child in &children {
            let _ =
                writeln!(text, "| `{path} {}` | {} |", child.get_name(), cell(&first_line(child)));
        }
    }
    write_arguments(text, &own);
    // Paths begin with the program's own name.
    let forms = path.split_once(' ').and_then(|(_, command)| forms(command)).unwrap_or_default();
    if !forms.is_empty() {
        let names: Vec<String> = forms.iter().map(|form| format!("`{}`", form.name())).collect();
        let _ = write!(text, "\nOutput formats: {}.\n", names.join(", "));
    }
    if let Some(after) = command.get_after_help().filter(|_| !parents.is_empty()) {
        let _ = write!(text, "\n```text\n{after}\n```\n");
    }
    for child in children {
        write_command(text, child, &path);
    }
}

fn write_arguments(text: &mut String, arguments: &[&Arg]) {
    if arguments.is_empty() {
        return;
    }
    text.push_str("\n| flag | meaning |\n|---|---|\n");
    for argument in arguments {
        let help = argument.get_long_help().or(argument.get_help());
        let mut meaning = help.map(ToString::to_string).unwrap_or_default();
        let values: Vec<String> = argument
            .get_possible_values()
            .iter()
            .filter(|_| argument.get_action().takes_values())
            .map(|value| match value.get_help() {
                Some(help) => format!("`{}`: {help}", value.get_name()),
                None => format!("`{}`", value.get_name()),
            })
            .collect();
        if !values.is_empty() {
            meaning += &format!(". One of: {}", values.join("; "));
        }
        if let Some(variable) = argument.get_env() {
            meaning += &format!(" [env: {}]", variable.to_string_lossy());
        }
        let defaults = argument.get_default_values();
        if let Some(default) = defaults.first().filter(|_| argument.get_action().takes_values()) {
            meaning += &format!(" [default: {}]", default.to_string_lossy());
        }
        let _ = writeln!(text, "| `{}` | {} |", cell(&spelling(argument)), cell(&meaning));
    }
}

/// The flag with its value, as one types it.
fn spelling(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or(&[]);
    let values: Vec<&str> = values.iter().map(|value| value.as_str()).collect();
    match argument.get_long() {
        Some(long) if argument.get_action().takes_values() => {
            format!("--{long} {}", values.join(" "))
        }
        Some(long) => format!("--{long}"),
        None => values.join(" "),
    }
}

fn about(command: &Command) -> String {
    let about = command.get_long_about().or(command.get_about());
    about.map(ToString::to_string).unwrap_or_default()
}

fn first_line(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

/// Text that does not end the cell of a Markdown table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

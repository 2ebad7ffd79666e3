//! `--output` of each command: which forms it takes, and which its help lists.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, Error, ValueEnum};
use dovetail_console::forms::forms;
use dovetail_settings::form::Output;

/// The command line with `--output` of each command listing the forms that it has.
pub(crate) fn with_forms(root: Command) -> Command {
    let output = root.get_arguments().find(|argument| argument.get_id() == "output").cloned();
    match output {
        Some(output) => of_children(root, "", &output),
        None => root,
    }
}

/// The command line with `[required]` in the help of each flag that must be given.
pub(crate) fn with_required(mut command: Command) -> Command {
    let is_marked = |argument: &&Arg| argument.is_required_set() && !argument.is_positional();
    let flags: Vec<String> =
        command.get_arguments().filter(is_marked).map(|flag| flag.get_id().to_string()).collect();
    for flag in flags {
        command = command.mut_arg(flag, |argument| {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            argument.help(format!("{help} [required]"))
        });
    }
    let names: Vec<String> =
        command.get_subcommands().map(|child| child.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_required))
}

/// The help of `--output` of a group of commands.
const OF_GROUP: &str =
    "Output format; the help of each command lists the formats that it supports [default: table]";

fn of_children(mut command: Command, path: &str, output: &Arg) -> Command {
    let names: Vec<String> =
        command.get_subcommands().map(|child| child.get_name().to_owned()).collect();
    for name in names {
        let path = format!("{path} {name}").trim_start().to_owned();
        command = command.mut_subcommand(name, |child| {
            let child = match forms(&path) {
                Some([]) => child.arg(output.clone().hide(true)),
                Some(forms) => child.arg(output.clone().value_parser(FormParser { forms })),
                // A group of commands has no result of its own: its commands list their formats.
                None => child.arg(output.clone().hide_possible_values(true).help(OF_GROUP)),
            };
            of_children(child, &path, output)
        });
    }
    command
}

/// Reads any form, since the command itself says which it lacks; lists its own.
#[derive(Clone, Debug)]
struct FormParser {
    forms: &'static [Output],
}

impl FormParser {
    fn values(&self) -> impl Iterator<Item = PossibleValue> + use<> {
        self.forms.iter().filter_map(ValueEnum::to_possible_value)
    }
}

impl TypedValueParser for FormParser {
    type Value = Output;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Output, Error> {
        let known = value.to_str().and_then(|name| Output::from_str(name, false).ok());
        if let Some(form) = known {
            return Ok(form);
        }
        // It refuses, and lists what would be right.
        PossibleValuesParser::new(self.values()).parse_ref(command, argument, value)?;
        Err(Error::new(ErrorKind::InvalidValue).with_cmd(command))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.values()))
    }
}

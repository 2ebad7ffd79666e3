//! The help of the program itself: commands by what they are for, on one screen of 24 lines and 80
//! columns.

use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::{Command, CommandFactory};

use crate::cli::Cli;

/// Commands by what they are for.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Inspect", &["audit", "cost", "usage", "top", "why", "queue"]),
    ("Record", &["serve", "collect"]),
    ("Simulate", &["sim", "trace", "demo"]),
    ("Schedule", &["partition", "scheduler"]),
];

/// Where everything else is.
const MORE: &str = "\
`dovetail COMMAND --help` lists the flags of a command. `dovetail options` lists
the global flags. Also: `config`, `version`, `completion SHELL`.";

/// The program with its commands listed in groups.
pub(crate) fn with_groups(root: Command) -> Command {
    let styles = root.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let about = root.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("{about}\n\n{header}Usage:{header:#} dovetail [OPTIONS] <COMMAND>\n\n");
    for (title, names) in GROUPS {
        let _ = writeln!(text, "{header}{title}:{header:#}");
        for name in names {
            let about = root.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {literal}{name:<9}{literal:#}  {about}");
        }
    }
    let _ = write!(text, "\n{MORE}");
    root.override_help(StyledStr::from(text))
}

/// What `dovetail options` prints: the flags that every command takes, and the exit codes.
pub(crate) fn options() -> String {
    let mut root = Cli::command();
    root.build();
    let options = root.find_subcommand_mut("options");
    options.map(|options| options.render_long_help().to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_command_about_clusters_is_in_one_group() {
        let root = Cli::command();
        let visible = root.get_subcommands().filter(|command| !command.is_hide_set());
        let mut visible: Vec<&str> = visible.map(Command::get_name).collect();
        visible.retain(|name| !["config", "version", "completion"].contains(name));
        let grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(visible, grouped);
    }
}

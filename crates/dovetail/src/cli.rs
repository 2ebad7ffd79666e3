//! The top of the command line: commands, and the flags that all of them share.

use std::ffi::OsString;

use anyhow::Result;
use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use dovetail_console::app::App;
use dovetail_settings::form::Color;
use dovetail_settings::{SettingFlags, Settings};

use crate::commands::live;
use crate::commands::{
    audit, collect, completion, config, cost, demo, markdown_help, partition, sim, trace, usage,
    version,
};
use crate::exit::EXIT_CODES;
use crate::form_flag::{with_forms, with_required};
use crate::help::{options, with_groups};
use crate::tips::with_near_tips;

/// Find wasted GPUs, show what they cost, and schedule AI jobs with less waste.
#[derive(Debug, Parser)]
#[command(name = "dovetail", version, max_term_width = 100)]
#[command(propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    settings: SettingFlags,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find wasted GPUs in a cluster, what they cost, and how to fix them.
    Audit(Box<audit::AuditFlags>),
    /// Show GPU cost by team, job, or cause of waste.
    Cost(Box<cost::CostFlags>),
    /// Show how busy allocated GPUs were.
    #[command(subcommand, disable_help_subcommand = true)]
    Usage(usage::Command),
    /// List nodes with their GPUs and the pods that use them.
    Top(Box<live::TopFlags>),
    /// Explain why a pod is pending and what would let it start.
    Why(Box<live::WhyFlags>),
    /// List queues with their quotas, and pending jobs in scheduling order.
    Queue(Box<live::QueueFlags>),
    /// Record GPU use and cost continuously, for dashboards and alerts.
    Serve(Box<crate::commands::serve::ServeFlags>),
    /// Save the cluster data for `audit` and `cost` to a file.
    Collect(Box<collect::CollectFlags>),
    /// Replay traces, compare policies, and compute performance bounds.
    #[command(subcommand, disable_help_subcommand = true)]
    Sim(sim::Command),
    /// Import, generate, describe and export traces of clusters.
    #[command(subcommand, disable_help_subcommand = true)]
    Trace(trace::Command),
    /// Simulate a month of a large GPU cluster and write a report.
    Demo(Box<demo::DemoFlags>),
    /// Plan and change MIG layouts, and size fleets of shared GPUs.
    #[command(subcommand, disable_help_subcommand = true)]
    Partition(partition::Command),
    /// Schedule the pods of a Kubernetes cluster.
    Scheduler(Box<crate::commands::scheduler::SchedulerFlags>),
    /// Print every setting with its value and where the value comes from.
    Config,
    /// Print the version.
    Version,
    /// Print the completion script for a shell.
    Completion(completion::CompletionFlags),
    /// Show the flags that all commands share, and the exit codes.
    #[command(hide = true, after_help = EXIT_CODES)]
    Options,
    /// Print the reference of the command line as Markdown.
    #[command(hide = true)]
    MarkdownHelp,
    /// Print the CustomResourceDefinition of queues as YAML.
    #[command(hide = true)]
    QueueDefinition,
    /// Print the CustomResourceDefinition of reservations as YAML.
    #[command(hide = true)]
    ReservationDefinition,
    /// Print the CustomResourceDefinition of sharing policies as YAML.
    #[command(hide = true)]
    SharingDefinition,
    /// Print the reference of the scheduler's metrics as Markdown.
    #[command(hide = true)]
    MarkdownMetrics,
    /// Print rules and alerts for Prometheus as YAML.
    #[command(hide = true)]
    MonitoringRules,
    /// Print the dashboard for Grafana as JSON.
    #[command(hide = true)]
    MonitoringDashboard,
}

impl Cli {
    /// The command line as people see it.
    pub(crate) fn built() -> clap::Command {
        with_groups(with_required(with_forms(Self::command())))
    }

    /// Reads the command line, or ends the program with what is wrong with it.
    pub(crate) fn read() -> Self {
        let words: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        let variable = std::env::var("DOVETAIL_COLOR").ok();
        let color = color_of_messages(&words, variable.as_deref());
        let mut command = Self::built().color(color);
        let arguments = as_understood(std::env::args_os());
        let read = command
            .try_get_matches_from_mut(&arguments)
            .and_then(|matches| Self::from_arg_matches(&matches));
        read.unwrap_or_else(|error| with_near_tips(error, &mut command, &arguments).exit())
    }

    /// When to color errors, also where the settings themselves are wrong.
    pub(crate) fn color(&self) -> Color {
        let settings = Settings::resolve(&self.settings);
        settings.map_or(self.settings.color.unwrap_or_default(), |settings| settings.color.value)
    }

    /// Does what the command line says.
    pub(crate) fn run(self) -> Result<()> {
        let app = App::new(Settings::resolve(&self.settings)?);
        match self.command {
            Command::Sim(command) => command.run(&app),
            Command::Trace(command) => command.run(&app),
            Command::Usage(command) => command.run(&app),
            Command::Partition(command) => command.run(&app),
            Command::Audit(flags) => audit::run(&app, &flags),
            Command::Cost(flags) => cost::run(&app, &flags),
            Command::Collect(flags) => collect::run(&app, &flags),
            Command::Demo(flags) => demo::run(&app, &flags),
            Command::Scheduler(flags) => crate::commands::scheduler::command(&app, *flags),
            Command::Serve(flags) => crate::commands::serve::command(app, *flags),
            Command::Why(flags) => live::why(&app, &flags),
            Command::Queue(flags) => live::queue(&app, &flags),
            Command::Top(flags) => live::top(&app, &flags),
            Command::Config => config::run(&app),
            Command::Version => version::run(&app),
            Command::Completion(flags) => completion::run(&app, &flags),
            Command::Options => app.print(&options()),
            Command::MarkdownMetrics => crate::commands::scheduler::print_metrics(&app),
            Command::MonitoringRules => app.print(&dovetail_serve::monitoring::rules()),
            Command::MonitoringDashboard => app.print(&dovetail_serve::monitoring::dashboard()),
            Command::MarkdownHelp => markdown_help::run(&app),
            Command::SharingDefinition => app.print(&dovetail_sharing::definition().manifest()),
            Command::QueueDefinition => {
                app.print(&dovetail_cluster::queues::definition().manifest())
            }
            Command::ReservationDefinition => {
                app.print(&dovetail_cluster::reservations::definition().manifest())
            }
        }
    }
}

/// `collect --output FILE` once named its file, while every other `--output` names a format: it is
/// read as `--to`. And `help --help` is `help`.
fn as_understood(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    if arguments.get(1).is_some_and(|command| command == "help") {
        arguments.retain(|argument| argument != "--help" && argument != "-h");
    }
    if arguments.get(1).is_some_and(|command| command == "collect") {
        for argument in &mut arguments {
            let renamed = match argument.to_str() {
                Some("--output") => Some("--to".to_owned()),
                Some(text) => text.strip_prefix("--output=").map(|file| format!("--to={file}")),
                None => None,
            };
            if let Some(renamed) = renamed {
                *argument = renamed.into();
            }
        }
    }
    arguments
}

/// When to colour messages about the command line itself, which is not understood yet: its last
/// `--color`, else the variable.
fn color_of_messages(words: &[String], variable: Option<&str>) -> ColorChoice {
    let mut named = None;
    for (place, word) in words.iter().enumerate().take_while(|(_, word)| *word != "--") {
        for flag in ["--color", "--colour"] {
            match word.strip_prefix(flag) {
                Some("") => named = words.get(place + 1).map(String::as_str).or(named),
                Some(rest) => named = rest.strip_prefix('=').or(named),
                None => {}
            }
        }
    }
    match named.or(variable).and_then(|name| Color::from_str(name, false).ok()) {
        Some(Color::Always) => ColorChoice::Always,
        Some(Color::Never) => ColorChoice::Never,
        Some(Color::Auto) | None => ColorChoice::Auto,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_about_the_command_line_are_coloured_as_it_says() {
        let choice = |line: &str, variable| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            color_of_messages(&words, variable)
        };
        assert_eq!(choice("dovetail sim --color always", None), ColorChoice::Always);
        assert_eq!(choice("dovetail --colour=never sim", Some("always")), ColorChoice::Never);
        assert_eq!(choice("dovetail sim", Some("always")), ColorChoice::Always);
        assert_eq!(choice("dovetail --colorful -- --color always", None), ColorChoice::Auto);
    }
}

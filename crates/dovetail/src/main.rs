//! The `dovetail` program: arguments become settings, settings become calls of the libraries.

mod app;
mod cli;
mod commands;
mod exit;
mod input;
mod output;
mod progress;
mod settings;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    exit::of(cli::Cli::parse().run())
}

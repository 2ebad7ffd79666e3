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

fn main() -> ExitCode {
    let cli = cli::Cli::read();
    let color = cli.color();
    exit::of(cli.run(), color)
}

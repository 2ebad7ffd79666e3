//! The `dovetail` program: arguments become settings, settings become calls of the libraries.

mod cli;
mod commands;
mod exit;
mod form_flag;
mod help;
mod tips;

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A dump of a large cluster is millions of small pieces: with the allocator of the C library an
/// audit took nearly twice the time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::read();
    let color = cli.color();
    exit::of(cli.run(), color)
}

//! A real control plane on this machine: `cargo xtask cluster <task>`.
//!
//! `up` leaves a process behind that holds the control plane and listens on a socket in the state
//! folder; `status` and `down` speak to it. However that process ends, the control plane ends with
//! it.

mod arguments;
mod control;
mod serve;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use dovetail_testkit::binaries::{self, Program, Release};

use crate::codegen::root;

/// Runs one task of `cargo xtask cluster`.
pub(crate) fn run(task: &[&str]) -> Result<ExitCode> {
    match task {
        ["build"] => build(Release::chosen()?),
        ["build", "--kubernetes", release] => build(release.parse::<Release>()?),
        ["up", rest @ ..] => up(rest),
        ["status"] => status(),
        ["down"] => down(),
        ["serve", rest @ ..] => serve::run(rest),
        _ => bail!(
            "usage: cargo xtask cluster build [--kubernetes RELEASE]|up|status|down\n{}",
            arguments::USAGE
        ),
    }
}

/// Builds the programs of a control plane that the cache does not hold yet.
fn build(release: Release) -> Result<ExitCode> {
    for folder in binaries::build_all(release, &mut say)? {
        print(&folder.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts a control plane and returns when it is ready.
fn up(arguments: &[&str]) -> Result<ExitCode> {
    let release = arguments::parse(arguments)?.options.release;
    let release = release.map_or_else(Release::chosen, Ok)?;
    if control::ask("status")?.is_some() {
        bail!("a control plane is running: end it with `cargo xtask cluster down`");
    }
    let program = std::env::current_exe().context("where this program lies")?;
    let mut server = Command::new(program)
        .args(["cluster", "serve"])
        .args(arguments)
        // Ctrl-C in this terminal is not meant for it.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("start the process that holds the control plane")?;
    let lines = BufReader::new(server.stdout.take().context("its output is a pipe")?).lines();
    for line in lines {
        let line = line?;
        match line.split_once(' ') {
            Some(("ready", kubeconfig)) => {
                print(kubeconfig)?;
                let kubectl = binaries::program(Program::Kubectl, release, &mut say)?;
                say(&format!("try: KUBECONFIG={kubeconfig} {} get nodes", kubectl.display()));
                return Ok(ExitCode::SUCCESS);
            }
            Some(("progress", text)) => say(text),
            // Messages have several lines.
            _ => say(line.trim_start_matches("error ")),
        }
    }
    Ok(ExitCode::FAILURE)
}

/// Says what runs.
fn status() -> Result<ExitCode> {
    match control::ask("status")? {
        Some(answer) => {
            print(answer.trim_end())?;
            Ok(ExitCode::SUCCESS)
        }
        None => {
            print("no control plane is running")?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Ends the control plane and removes its folder.
fn down() -> Result<ExitCode> {
    let answer = control::ask("down")?;
    print(answer.as_deref().unwrap_or("no control plane is running").trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// The state folder.
fn folder() -> PathBuf {
    root().join("target/cluster")
}

fn print(line: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

/// Progress goes to stderr; where nobody reads it any more, the work still goes on.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

//! A real control plane on this machine: `cargo xtask cluster <task>`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use dovetail_testkit::binaries;

/// Builds the programs of a control plane that the cache does not hold yet.
pub(crate) fn build() -> Result<ExitCode> {
    for folder in binaries::build_all(&mut say)? {
        writeln!(std::io::stdout(), "{}", folder.display())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Progress goes to stderr; where nobody reads it any more, the work still goes on.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

//! Files written from the code, so that they cannot disagree with it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

/// Where the reference of the command line lies, from the root of the repository.
pub(crate) const CLI_REFERENCE: &str = "docs/reference/cli.md";

/// Where the definition of queues lies.
pub(crate) const QUEUE_DEFINITION: &str = "deploy/queue-definition.yaml";

/// Where the definition of reservations lies, with the hidden command that prints it.
pub(crate) const RESERVATIONS: (&str, &str) =
    ("deploy/reservation-definition.yaml", "reservation-definition");

/// Where the definition of sharing policies lies.
pub(crate) const SHARING_DEFINITION: &str = "deploy/sharing/policy-definition.yaml";

/// Where the reference of the metrics lies.
pub(crate) const METRICS_REFERENCE: &str = "docs/reference/metrics.md";

/// Writes a reference; `command` of dovetail prints it.
pub(crate) fn write_reference(file: &str, command: &str) -> Result<ExitCode> {
    let path = root().join(file);
    let folder = path.parent().context("the reference lies in a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    std::fs::write(&path, reference(command)?).with_context(|| format!("write {file}"))?;
    Ok(ExitCode::SUCCESS)
}

/// The hidden command that prints the reference of the command line.
pub(crate) const CLI_COMMAND: &str = "markdown-help";
/// The hidden command that prints the reference of the metrics.
pub(crate) const METRICS_COMMAND: &str = "markdown-metrics";

/// The hidden command that prints the definition of queues.
pub(crate) const QUEUE_COMMAND: &str = "queue-definition";

/// The hidden command that prints the definition of sharing policies.
pub(crate) const SHARING_COMMAND: &str = "sharing-definition";

/// Rules and alerts, with the hidden command that prints them.
pub(crate) const RULES: (&str, &str) = ("deploy/monitoring/rules.yaml", "monitoring-rules");

/// The dashboard, with the hidden command that prints it.
pub(crate) const DASHBOARD: (&str, &str) =
    ("deploy/monitoring/dashboard.json", "monitoring-dashboard");

/// A reference as the present code would write it.
fn reference(command: &str) -> Result<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let arguments = ["run", "--quiet", "--locked", "--profile", "test", "--package", "dovetail"];
    let output = Command::new(cargo)
        .args(arguments)
        .args(["--", command])
        .current_dir(root())
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("start cargo to build dovetail")?;
    ensure!(output.status.success(), "`dovetail {command}` ended with {}", output.status);
    let text = String::from_utf8(output.stdout).context("the reference is not UTF-8")?;
    if text.trim().is_empty() {
        bail!("`dovetail {command}` printed nothing");
    }
    Ok(text)
}

/// The root of the repository: the folder above this crate.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

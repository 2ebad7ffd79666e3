//! Files written from the code, so that they cannot disagree with it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

/// Where the reference of the command line lies, from the root of the repository.
pub(crate) const CLI_REFERENCE: &str = "docs/reference/cli.md";

/// Writes the reference of the command line.
pub(crate) fn write_cli_reference() -> Result<ExitCode> {
    let path = root().join(CLI_REFERENCE);
    let folder = path.parent().context("the reference lies in a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    std::fs::write(&path, cli_reference()?).with_context(|| format!("write {CLI_REFERENCE}"))?;
    Ok(ExitCode::SUCCESS)
}

/// The reference as the present code would write it.
pub(crate) fn cli_reference() -> Result<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let arguments = ["run", "--quiet", "--locked", "--profile", "test", "--package", "dovetail"];
    let output = Command::new(cargo)
        .args(arguments)
        .args(["--", "markdown-help"])
        .current_dir(root())
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("start cargo to build dovetail")?;
    ensure!(output.status.success(), "`dovetail markdown-help` ended with {}", output.status);
    let text = String::from_utf8(output.stdout).context("the reference is not UTF-8")?;
    if text.trim().is_empty() {
        bail!("`dovetail markdown-help` printed nothing");
    }
    Ok(text)
}

/// The root of the repository: the folder above this crate.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

//! Runs Go on one module and tells how far it is.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::BuildError;
use super::module::{Module, Pins};

/// A progress line each time that many packages are compiled.
const PACKAGES_PER_LINE: u32 = 200;

/// How many of Go's last lines an error quotes.
const QUOTED_LINES: usize = 20;

/// Builds the programs of a module into a folder.
pub(super) fn compile(
    module: &Module,
    pins: &Pins,
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(), BuildError> {
    let what = format!("{} {}", module.name, pins.version);
    let go = find_go(pins)?;
    let found = version_of(&go, &what, module, pins)?;
    progress(&format!(
        "building {what} with {found}, once: minutes, and only Go's module proxy is asked"
    ));
    let begun = Instant::now();
    run(&go, &what, module, pins, folder, &mut |packages| {
        progress(&format!("{what}: {packages} packages, {} s", begun.elapsed().as_secs()));
    })?;
    for (from, to) in module.programs {
        let (from, to) = (folder.join(from), folder.join(to));
        if !from.is_file() {
            return Err(BuildError::NoProgram {
                module: what,
                program: from.display().to_string(),
                file: module.manifest_path(),
            });
        }
        std::fs::rename(&from, &to).map_err(BuildError::file(&to))?;
    }
    progress(&format!("built {what} in {} s", begun.elapsed().as_secs()));
    Ok(())
}

fn run(
    go: &Path,
    what: &str,
    module: &Module,
    pins: &Pins,
    folder: &Path,
    compiled: &mut dyn FnMut(u32),
) -> Result<(), BuildError> {
    let mut child = Command::new(go)
        // `-v` names each package as it is compiled; with `readonly` go.sum vouches for all
        // sources.
        .args([
            "build",
            "-v",
            "-mod=readonly",
            &format!("-modfile={}", module.manifest),
            &format!("-tags={}", module.tags),
            // The linker leaves symbols for debuggers out: to make none saves a tenth of the time.
            "-gcflags=all=-dwarf=false",
            "-ldflags",
            &module.linker_flags(&pins.version),
            "-o",
        ])
        .arg(folder)
        .arg(module.packages)
        .current_dir(module.source())
        .env("GOWORK", "off")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(BuildError::file(go))?;
    let mut last_lines = VecDeque::new();
    let mut packages = 0;
    for line in child.stderr.take().into_iter().flat_map(|pipe| BufReader::new(pipe).lines()) {
        let line = line.map_err(BuildError::file(go))?;
        if is_package(&line) {
            packages += 1;
            if packages % PACKAGES_PER_LINE == 0 {
                compiled(packages);
            }
            continue;
        }
        last_lines.push_back(line);
        if last_lines.len() > QUOTED_LINES {
            last_lines.pop_front();
        }
    }
    if child.wait().map_err(BuildError::file(go))?.success() {
        return Ok(());
    }
    let output = Vec::from(last_lines).join("\n");
    Err(BuildError::Compile { module: what.to_owned(), output })
}

/// Whether a line of `go build -v` is the name of a package, and not a message.
fn is_package(line: &str) -> bool {
    !line.is_empty() && !line.contains([' ', ':'])
}

/// `go` from the PATH, else where its own installer puts it.
fn find_go(pins: &Pins) -> Result<PathBuf, BuildError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/local/go/bin")]);
    let mut candidates = folders.map(|folder| folder.join("go"));
    candidates
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| BuildError::NoGo { wanted: pins.go.clone() })
}

/// The version of Go that builds in the module's folder. A Go that fetches newer tool chains by
/// itself answers with what it fetched.
fn version_of(go: &Path, what: &str, module: &Module, pins: &Pins) -> Result<String, BuildError> {
    let output = Command::new(go)
        .args(["env", "GOVERSION"])
        .current_dir(module.source())
        .env("GOWORK", "off")
        .stdin(Stdio::null())
        .output()
        .map_err(BuildError::file(go))?;
    let found = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && is_at_least(&found, &pins.go) {
        return Ok(found);
    }
    let found = if found.is_empty() { go.display().to_string() } else { found };
    Err(BuildError::OldGo { found, module: what.to_owned(), wanted: pins.go.clone() })
}

/// Whether `go1.27rc1` or `go1.26.8` is at least `1.26.0`.
fn is_at_least(found: &str, wanted: &str) -> bool {
    let numbers = |version: &str| -> Vec<u32> {
        let version = version.trim_start_matches("go");
        let parts = version.split('.').map(|part| {
            let digits = part.split(|letter: char| !letter.is_ascii_digit()).next();
            digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
        });
        parts.chain(std::iter::repeat(0)).take(3).collect()
    };
    numbers(found) >= numbers(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_go_compare_by_number() {
        assert!(is_at_least("go1.26.8", "1.26.0"));
        assert!(is_at_least("go1.100", "1.26.0"));
        assert!(is_at_least("go1.27rc1", "1.26.5"));
        assert!(!is_at_least("go1.25.12", "1.26.0"));
        assert!(!is_at_least("devel", "1.26.0"));
    }

    #[test]
    fn messages_of_go_are_not_taken_for_packages() {
        assert!(is_package("k8s.io/kubernetes/pkg/scheduler"));
        assert!(is_package("fmt"));
        assert!(!is_package("go: downloading k8s.io/api v0.37.1"));
        assert!(!is_package("./main.go:3:1: undefined: x"));
    }
}

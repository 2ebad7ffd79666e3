//! Every package in the lock file, for whatever platform, comes under a licence that lets anyone
//! use the product under Apache-2.0.

use anyhow::Result;

use super::outcome::{Outcome, Violation};
use super::spdx::satisfied;
use super::workspace::{Package, Workspace};

/// Permissive licences. A licence that asks to publish changes is not among them.
const ACCEPTED: [&str; 15] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let lock = workspace.text("Cargo.lock").unwrap_or_default();
    let violations = workspace.packages.iter().filter_map(|package| violation_of(package, lock));
    let looked_at = format!("{} packages", workspace.packages.len());
    Ok(Outcome { violations: violations.collect(), looked_at })
}

fn violation_of(package: &Package, lock: &str) -> Option<Violation> {
    let Package { name, version, licence } = package;
    let message = match licence {
        None => format!("{name} {version} states no licence"),
        Some(expression) => match satisfied(expression, &|name| ACCEPTED.contains(&name)) {
            Ok(true) => return None,
            Ok(false) => format!("{name} {version} is under `{expression}`"),
            Err(problem) => format!("licence `{expression}` of {name} {version}: {problem}"),
        },
    };
    let entry = format!("name = \"{name}\"");
    let line = lock.lines().position(|line| line == entry).map_or(1, |index| index + 1);
    let mend = "use another package; only permissive licences are accepted".to_owned();
    Some(Violation { path: "Cargo.lock".to_owned(), line, message, mend })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_licence_that_is_not_permissive_is_refused() {
        let found = |licence: Option<&str>| {
            let package = Package {
                name: "sample".to_owned(),
                version: "1.0.0".to_owned(),
                licence: licence.map(str::to_owned),
            };
            violation_of(&package, "[[package]]\nname = \"sample\"\n")
        };
        assert_eq!(found(Some("MIT OR Apache-2.0")), None);
        assert_eq!(found(Some("Unlicense/MIT")), None);
        assert_eq!(found(Some("MPL-2.0")).unwrap().line, 2);
        assert!(found(Some("MIT AND GPL-2.0-only")).is_some());
        assert!(found(Some("MIT OR")).is_some());
        assert!(found(None).unwrap().message.contains("states no licence"));
    }
}

//! Core computes and nothing else: the packages it may be built from are listed here.

use anyhow::Result;

use super::outcome::{Outcome, Violation};
use super::workspace::{Crate, Workspace, line_of_key};

/// Packages that core may ship with: data structures, exact maths, serialisation, error types and
/// what their derive macros are built from. None does I/O, reads a clock or draws random numbers.
const ALLOWED: [&str; 12] = [
    "libm",
    "proc-macro2",
    "quote",
    "rustc-hash",
    "serde",
    "serde_core",
    "serde_derive",
    "smallvec",
    "syn",
    "thiserror",
    "thiserror-impl",
    "unicode-ident",
];

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let core = || workspace.crates.iter().filter(|krate| krate.folder.starts_with("crates/core/"));
    let ours: Vec<&str> = core().map(|krate| krate.name.as_str()).collect();
    let mut violations = Vec::new();
    for krate in core() {
        let manifest = workspace.text(&krate.manifest()).unwrap_or_default();
        violations.extend(violations_of(krate, &ours, manifest));
    }
    let packages: std::collections::BTreeSet<&String> =
        core().flat_map(|krate| &krate.closure).collect();
    let looked_at =
        format!("{} crates of core, built from {} packages", ours.len(), packages.len());
    Ok(Outcome { violations, looked_at })
}

fn violations_of(krate: &Crate, ours: &[&str], manifest: &str) -> Vec<Violation> {
    let foreign =
        |name: &&String| !ours.contains(&name.as_str()) && !ALLOWED.contains(&name.as_str());
    let violation = |name: &String| Violation {
        path: krate.manifest(),
        line: line_of_key(manifest, name),
        message: format!("core must not be built from `{name}`"),
        mend: "move the code that needs it to lab or edge, or switch off the feature that pulls it"
            .to_owned(),
    };
    krate.closure.iter().filter(foreign).map(violation).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_is_not_listed_is_refused_however_deep_it_lies() {
        let closure = ["serde", "dovetail-model", "tokio", "mio"].map(str::to_owned).into();
        let krate = Crate { folder: "crates/core/plan".to_owned(), closure, ..Crate::default() };
        let found = violations_of(&krate, &["dovetail-model"], "[dependencies]\ntokio = \"1\"\n");
        let found: Vec<(usize, &str)> =
            found.iter().map(|violation| (violation.line, violation.message.as_str())).collect();
        let expected =
            [(1, "core must not be built from `mio`"), (2, "core must not be built from `tokio`")];
        assert_eq!(found, expected);
    }
}

//! `fuzz` is a workspace of its own, which no build of this one reads: its paths still lead to
//! crates.

use anyhow::Result;

use super::outcome::{Outcome, Violation};
use super::workspace::{Crate, Workspace, line_of_key};

const MANIFEST: &str = "fuzz/Cargo.toml";

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let text = workspace.text(MANIFEST).unwrap_or_default();
    let violations = violations_of(text, &workspace.crates);
    Ok(Outcome { violations, looked_at: format!("{} paths", paths(text).count()) })
}

/// Dependencies by name, with the folder that each is in.
fn paths(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let (name, rest) = line.split_once(" = { path = \"../")?;
        Some((name, rest.split('"').next()?))
    })
}

fn violations_of(text: &str, crates: &[Crate]) -> Vec<Violation> {
    let is_there = |(name, folder): &(&str, &str)| {
        crates.iter().any(|krate| krate.name == *name && krate.folder == *folder)
    };
    let violation = |(name, folder): (&str, &str)| Violation {
        path: MANIFEST.to_owned(),
        line: line_of_key(text, name),
        message: format!("`{name}` is not in {folder}"),
        mend: "name the crate and the folder that it is in".to_owned(),
    };
    paths(text).filter(|path| !is_there(path)).map(violation).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_moved_is_missed() {
        let krate = |name: &str, folder: &str| Crate {
            name: name.to_owned(),
            folder: folder.to_owned(),
            ..Crate::default()
        };
        let crates = [krate("a", "crates/core/a"), krate("b", "crates/edge/b")];
        let text = "[dependencies]\na = { path = \"../crates/core/a\" }\n\
                    b = { path = \"../crates/core/b\", default-features = false }\nc = \"1\"\n";
        let violations = violations_of(text, &crates);
        assert_eq!(violations.len(), 1);
        assert_eq!(
            (violations[0].line, &*violations[0].message),
            (3, "`b` is not in crates/core/b")
        );
    }
}

//! Every crate takes the workspace's lints, edition and licence, so that no crate forgets that
//! unsafe code is forbidden.

use anyhow::Result;

use super::outcome::{Outcome, Violation};
use super::workspace::Workspace;

const INHERITED: [&str; 4] = ["version", "edition", "rust-version", "license"];

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let mut violations = Vec::new();
    for krate in &workspace.crates {
        let path = krate.manifest();
        let text = workspace.text(&path).unwrap_or_default();
        violations.extend(violations_of(&path, text));
    }
    Ok(Outcome { violations, looked_at: format!("{} manifests", workspace.crates.len()) })
}

fn violations_of(path: &str, text: &str) -> Vec<Violation> {
    let squeezed: Vec<String> = text.lines().map(|line| line.replace(' ', "")).collect();
    let has = |wanted: &str| squeezed.iter().any(|line| line == wanted);
    let lints = squeezed.windows(2).any(|pair| pair[0] == "[lints]" && pair[1] == "workspace=true");
    let mut missing: Vec<String> = INHERITED
        .iter()
        .map(|key| format!("{key}.workspace = true"))
        .filter(|line| !has(&line.replace(' ', "")))
        .collect();
    if !lints {
        missing.push("[lints] workspace = true".to_owned());
    }
    let violation = |line: String| Violation {
        path: path.to_owned(),
        line: 1,
        message: format!("`{line}` is missing"),
        mend: "add it: crates share these settings".to_owned(),
    };
    missing.into_iter().map(violation).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_with_settings_of_its_own_is_refused() {
        let good = "[package]\nname = \"a\"\nversion.workspace = true\nedition.workspace = true\n\
                    rust-version.workspace = true\nlicense.workspace = true\n\
                    [lints]\nworkspace = true\n";
        assert_eq!(violations_of("Cargo.toml", good), []);
        let no_lints = good.replace("[lints]\nworkspace = true\n", "");
        assert_eq!(violations_of("Cargo.toml", &no_lints).len(), 1);
        let own_edition = good.replace("edition.workspace = true", "edition = \"2021\"");
        assert_eq!(violations_of("Cargo.toml", &own_edition).len(), 1);
    }
}

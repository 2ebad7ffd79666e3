//! Every declared dependency is named in the code that may use it.

use std::collections::BTreeSet;

use anyhow::Result;
use cargo_metadata::DependencyKind;

use super::outcome::{Outcome, Violation};
use super::source::{RustFile, named_paths};
use super::workspace::{Crate, Workspace, line_of_key};

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let mut violations = Vec::new();
    let mut declared = 0;
    for krate in &workspace.crates {
        // A crate inside another's folder does not exist in this layout.
        let files = workspace.sources.iter().filter(|file| krate.holds(&file.path));
        let manifest = workspace.text(&krate.manifest()).unwrap_or_default();
        violations.extend(violations_of(krate, &files.collect::<Vec<_>>(), manifest));
        declared += krate.dependencies.len();
    }
    let root = workspace.text("Cargo.toml").unwrap_or_default();
    violations.extend(never_inherited(root, &workspace.crates));
    Ok(Outcome { violations, looked_at: format!("{declared} dependencies") })
}

fn violations_of(krate: &Crate, files: &[&RustFile], manifest: &str) -> Vec<Violation> {
    let build_script = format!("{}/build.rs", krate.folder);
    let (mut shipped, mut tested, mut building) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for file in files {
        if file.path == build_script {
            building.extend(crates_named(&file.syntax));
        } else {
            shipped.extend(crates_named(&file.shipped()));
            tested.extend(crates_named(&file.syntax));
        }
    }
    let has_build_script = files.iter().any(|file| file.path == build_script);
    let mut violations = Vec::new();
    for dependency in &krate.dependencies {
        let name = dependency.name.replace('-', "_");
        let (used, place) = match dependency.kind {
            DependencyKind::Development => (tested.contains(&name), "tests"),
            // Without a build script it is there for its features alone.
            DependencyKind::Build => {
                let is_used = !has_build_script || building.contains(&name);
                (is_used, "the build script")
            }
            _ => (shipped.contains(&name), "the code"),
        };
        if !used {
            let only_tests = dependency.kind == DependencyKind::Normal && tested.contains(&name);
            let mend = if only_tests { "move it to [dev-dependencies]" } else { "remove it" };
            violations.push(Violation {
                path: krate.manifest(),
                line: line_of_key(manifest, &dependency.name),
                message: format!("`{}` is not used in {place}", dependency.name),
                mend: mend.to_owned(),
            });
        }
    }
    violations
}

/// Entries of `[workspace.dependencies]` that no crate takes.
fn never_inherited(root_manifest: &str, crates: &[Crate]) -> Vec<Violation> {
    let taken = |name: &str| {
        crates.iter().flat_map(|krate| &krate.dependencies).any(|taken| taken.name == name)
    };
    let mut inside = false;
    let mut violations = Vec::new();
    for (index, line) in root_manifest.lines().enumerate() {
        if line.starts_with('[') {
            inside = line == "[workspace.dependencies]";
        }
        let Some((key, _)) = line.split_once('=').filter(|_| inside) else { continue };
        let name = key.trim();
        let ours = crates.iter().any(|krate| krate.name == name);
        if !ours && !taken(name) && !name.starts_with('#') {
            violations.push(Violation {
                path: "Cargo.toml".to_owned(),
                line: index + 1,
                message: format!("no crate uses `{name}`"),
                mend: "remove it".to_owned(),
            });
        }
    }
    violations
}

fn crates_named(file: &syn::File) -> Vec<String> {
    let paths = named_paths(file);
    paths.iter().filter_map(|path| path.first_of_several()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::workspace::Dependency;
    use super::*;

    fn krate(dependencies: &[(&str, DependencyKind)]) -> Crate {
        let dependencies = dependencies
            .iter()
            .map(|(name, kind)| Dependency { name: (*name).to_owned(), kind: *kind })
            .collect();
        Crate {
            name: "a".to_owned(),
            folder: "crates/a".to_owned(),
            dependencies,
            ..Crate::default()
        }
    }

    #[test]
    fn a_dependency_is_used_where_its_kind_says() {
        let lib = RustFile::parse(
            "crates/a/src/lib.rs",
            "use serde_json::Value;\nfn csv() {}\n#[cfg(test)]\nmod tests { use proptest::prelude::*; }",
        )
        .unwrap();
        let script = RustFile::parse("crates/a/build.rs", "fn main() {}").unwrap();
        let among = |files: &[&RustFile], name, kind| {
            let found = violations_of(&krate(&[(name, kind)]), files, "");
            found.into_iter().map(|violation| violation.mend).collect::<Vec<_>>()
        };
        let found = |name, kind| among(&[&lib, &script], name, kind);
        assert_eq!(found("serde-json", DependencyKind::Normal), [""; 0]);
        assert_eq!(found("proptest", DependencyKind::Development), [""; 0]);
        assert_eq!(found("csv", DependencyKind::Normal), ["remove it"]);
        assert_eq!(found("proptest", DependencyKind::Normal), ["move it to [dev-dependencies]"]);
        assert_eq!(found("insta", DependencyKind::Development), ["remove it"]);
        assert_eq!(found("serde-json", DependencyKind::Build), ["remove it"]);
        assert_eq!(among(&[&lib], "serde-json", DependencyKind::Build), [""; 0]);
    }

    #[test]
    fn a_shared_version_that_no_crate_takes_is_found() {
        let manifest = "[workspace.dependencies]\na = { path = \"crates/a\" }\ncsv = \"1\"\n\
                        toml = \"1\"\n[profile.dev]\ndebug = 1\n";
        let found = never_inherited(manifest, &[krate(&[("csv", DependencyKind::Normal)])]);
        assert_eq!(found.iter().map(|violation| violation.line).collect::<Vec<_>>(), [4]);
    }
}

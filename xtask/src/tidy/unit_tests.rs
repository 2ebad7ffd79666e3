//! A crate whose library is not built for tests has none in it: they would never run.

use anyhow::Result;

use super::outcome::{Outcome, Violation};
use super::source::RustFile;
use super::workspace::Workspace;

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let is_untested = |manifest: &String| workspace.text(manifest).is_some_and(is_untested);
    let untested: Vec<_> =
        workspace.crates.iter().filter(|krate| is_untested(&krate.manifest())).collect();
    let files = untested.iter().flat_map(|krate| {
        let sources = format!("{}/src/", krate.folder);
        workspace.sources.iter().filter(move |file| file.path.starts_with(&sources))
    });
    let violations = files.filter_map(violation_of).collect();
    Ok(Outcome { violations, looked_at: format!("{} crates without unit tests", untested.len()) })
}

/// Whether a manifest says `test = false` of the library.
fn is_untested(manifest: &str) -> bool {
    let library = manifest.split("\n[").find_map(|section| section.strip_prefix("lib]"));
    library.is_some_and(|section| section.lines().any(|line| line == "test = false"))
}

fn violation_of(file: &RustFile) -> Option<Violation> {
    (file.test_lines() > 0).then(|| Violation {
        path: file.path.clone(),
        line: 1,
        message: "tests that never run, because the library has `test = false`".to_owned(),
        mend: "move them to tests/all".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_in_a_library_that_is_not_tested_are_found() {
        assert!(is_untested("[package]\nname = \"a\"\n\n[lib]\n# Why.\ntest = false\n\n[lints]\n"));
        assert!(!is_untested(
            "[package]\nname = \"a\"\n\n[lib]\nname = \"b\"\n\n[[bin]]\ntest = false\n"
        ));
        let found = |text| violation_of(&RustFile::parse("crates/a/src/lib.rs", text).unwrap());
        assert!(
            found("fn a() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn b() {}\n}\n")
                .is_some()
        );
        assert!(found("fn a() {}\n").is_none());
    }
}

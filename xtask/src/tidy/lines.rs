//! Lines of source without tests, per crate and in total: how large the house is.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;

use super::workspace::Workspace;

/// Lines of a crate, all that stand in its files: code, documentation and blank ones.
#[derive(Clone, Copy, Debug, Default)]
struct LineCounts {
    source: usize,
    /// Tests, benchmarks and examples.
    tests: usize,
    files: usize,
}

/// Prints a row per crate, sorted by folder, and the total.
pub(crate) fn print() -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let mut by_crate: BTreeMap<&str, LineCounts> = BTreeMap::new();
    let mut total = LineCounts::default();
    for file in &workspace.sources {
        let krate = workspace.crates.iter().find(|krate| krate.holds(&file.path));
        // What is in no crate of the workspace, such as fuzz targets, is not part of the product.
        let Some(krate) = krate else { continue };
        let (all, tests) = (file.text.lines().count(), file.test_lines());
        for lines in [by_crate.entry(&krate.folder).or_default(), &mut total] {
            lines.source += all - tests;
            lines.tests += tests;
            lines.files += 1;
        }
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{:<24} {:>8} {:>8} {:>8}", "crate", "source", "tests", "files")?;
    for (folder, lines) in by_crate.into_iter().chain([("total", total)]) {
        let LineCounts { source, tests, files } = lines;
        writeln!(out, "{folder:<24} {source:>8} {tests:>8} {files:>8}")?;
    }
    Ok(ExitCode::SUCCESS)
}

//! Tests of the planner: published tables and worlds, brute force, sizes.
#![allow(clippy::print_stderr, reason = "what was compared is worth a look: --nocapture shows it")]

mod brute;
mod made_again;
mod many_pools;
mod moves;
mod priorities;
mod random_worlds;
mod replicas;
mod sizes;
mod tables;
mod worlds;

use std::path::PathBuf;

/// A file of published data, or why the test is skipped.
fn data(test: &str, file: &str) -> Option<String> {
    let Some(folder) = std::env::var_os("DOVETAIL_TRACES") else {
        eprintln!("skipped: {test}: set DOVETAIL_TRACES");
        return None;
    };
    let path = PathBuf::from(folder).join(file);
    Some(
        std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display())),
    )
}

//! Comments and documents are at most 100 columns wide; code is, by rustfmt.
//!
//! Tables, headings, quoted blocks and code have the width that they need, and a word that is
//! longer, such as an address or a command between backticks, stands alone.

use anyhow::Result;

use super::outcome::{Outcome, Violation};
use super::workspace::Workspace;

const WIDTH: usize = 100;

/// What comments begin with, by the ending of a file. A document is prose everywhere.
const MARKS: [(&str, &[&str]); 5] = [
    (".md", &[]),
    (".rs", &["//!", "///", "//"]),
    (".sh", &["#"]),
    (".toml", &["#"]),
    (".sql", &["--"]),
];

/// Written by programs, one line per flag or metric.
const GENERATED: [&str; 2] = ["docs/reference/cli.md", "docs/reference/metrics.md"];

/// What is not wrapped yet. The list may only shrink.
const NOT_YET: &[&str] =
    &["crates/lab/sim/src/arena/machines.rs", "crates/lab/sim/src/timeline/series.rs"];

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let is_held = |path: &str| {
        !GENERATED.contains(&path) && !NOT_YET.iter().any(|folder| path.starts_with(folder))
    };
    let (mut violations, mut files) = (Vec::new(), 0);
    for file in workspace.texts.iter().filter(|file| is_held(&file.path)) {
        let marks = MARKS.iter().find(|(ending, _)| file.path.ends_with(*ending));
        let Some((_, marks)) = marks else { continue };
        files += 1;
        violations.extend(too_wide(&file.text, marks).into_iter().map(|(line, columns)| {
            Violation {
                path: file.path.clone(),
                line,
                message: format!("{columns} columns"),
                mend: format!("break it before column {WIDTH}"),
            }
        }));
    }
    Ok(Outcome { violations, looked_at: format!("{files} files") })
}

/// Lines of prose, counted from 1, that are too wide and could be broken, with their columns. Where
/// comments have marks, only lines that begin with one are prose.
fn too_wide(text: &str, marks: &[&str]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (number, line) in text.lines().enumerate() {
        let begin = line.trim_start();
        let of_comment = marks.iter().find_map(|mark| begin.strip_prefix(*mark));
        if of_comment.is_none() && !marks.is_empty() {
            continue;
        }
        let prose = of_comment.unwrap_or(line);
        let text = prose.trim_start();
        if text.starts_with("```") {
            is_code = !is_code;
        }
        let code_from = if of_comment.is_some() { 5 } else { 4 };
        let is_indented = prose.len() - text.len() >= code_from && !is_item(text);
        let is_block = text.starts_with(['|', '#', '>', '<']) || text.starts_with("[!");
        let columns = line.chars().count();
        if columns > WIDTH && !is_code && !is_indented && !is_block && words(text) > 1 {
            found.push((number + 1, columns));
        }
    }
    found
}

/// Whether a line begins an item of a list.
fn is_item(text: &str) -> bool {
    let first = text.split(' ').next().unwrap_or_default();
    let is_number = first.strip_suffix(['.', ')']).is_some_and(|n| n.parse::<u32>().is_ok());
    matches!(first, "-" | "*" | "+") || is_number
}

/// Words of a line without the mark of a list; what stands between backticks is part of one.
fn words(text: &str) -> usize {
    let text = if is_item(text) { text.split_once(' ').map_or("", |pair| pair.1) } else { text };
    let blank = |(place, part): (usize, &str)| match place % 2 {
        0 => part.to_owned(),
        _ => part.replace(' ', "_"),
    };
    let joined: String = text.split('`').enumerate().map(blank).collect();
    joined.split_whitespace().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_prose_is_found_and_what_cannot_be_broken_is_not() {
        let wide = "word ".repeat(21);
        let long = "x".repeat(110);
        let found = |text: &str, ending: &str| {
            let (_, marks) = MARKS.iter().find(|(known, _)| *known == ending).unwrap();
            too_wide(text, marks)
        };
        for (prose, ending) in [
            (wide.clone(), ".md"),
            (format!("  - {wide}"), ".md"),
            (format!("/// {wide}"), ".rs"),
            (format!("# {wide}"), ".toml"),
            (format!("  # {wide}"), ".sh"),
            (format!("-- {wide}"), ".sql"),
        ] {
            assert_eq!(found(&prose, ending).len(), 1, "{prose}");
        }
        for (other, ending) in [
            (format!("| {wide} |"), ".md"),
            (format!("# {wide}"), ".md"),
            (format!("```\n{wide}\n```"), ".md"),
            (format!("/// | {wide} |"), ".rs"),
            (format!("- {long}"), ".md"),
            (format!("`{wide}`"), ".md"),
            (format!("//! ```\n//! {wide}\n//! ```"), ".rs"),
            (format!("echo {wide}"), ".sh"),
        ] {
            assert!(found(&other, ending).is_empty(), "{other}");
        }
        let code = format!("let text = \"{wide}\";\n// {wide}");
        assert_eq!(found(&code, ".rs"), [(2, 3 + wide.trim_end().len() + 1)]);
    }
}

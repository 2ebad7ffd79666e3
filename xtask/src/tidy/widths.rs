//! Comments and documents are at most 100 columns wide; code is, by rustfmt.
//!
//! Tables, headings, quoted blocks and code have the width that they need, and a word that is
//! longer, such as an address or a command between backticks, stands alone.

use anyhow::Result;

use super::outcome::{Outcome, Violation};
use super::workspace::Workspace;

const WIDTH: usize = 100;

/// Written by programs, one line per flag or metric.
const GENERATED: [&str; 2] = ["docs/reference/cli.md", "docs/reference/metrics.md"];

/// What is not wrapped yet. The list may only shrink.
const NOT_YET: &[&str] =
    &["crates/lab/sim/src/arena/machines.rs", "crates/lab/sim/src/timeline/series.rs"];

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let is_held = |path: &str| {
        !GENERATED.contains(&path) && !NOT_YET.iter().any(|folder| path.starts_with(folder))
    };
    let documents = workspace.texts.iter().filter(|file| file.path.ends_with(".md"));
    let documents = documents.map(|file| (&file.path, too_wide(file.text.lines().enumerate())));
    let sources = workspace.sources.iter().map(|file| (&file.path, too_wide(comments(&file.text))));
    let (mut violations, mut files) = (Vec::new(), 0);
    for (path, lines) in documents.chain(sources).filter(|(path, _)| is_held(path)) {
        files += 1;
        violations.extend(lines.into_iter().map(|(line, columns)| Violation {
            path: path.clone(),
            line,
            message: format!("{columns} columns"),
            mend: format!("break it before column {WIDTH}"),
        }));
    }
    Ok(Outcome { violations, looked_at: format!("{files} files") })
}

/// Lines that are comments from their first letter on.
fn comments(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//"))
}

/// Lines of prose, counted from 1, that are too wide and could be broken, with their columns.
fn too_wide<'t>(lines: impl Iterator<Item = (usize, &'t str)>) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (number, line) in lines {
        let marks = line.trim_start();
        let of_comment = ["//!", "///", "//"].into_iter().find_map(|mark| marks.strip_prefix(mark));
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
        let lines = |text: &str| too_wide(text.lines().enumerate()).len();
        for prose in [wide.clone(), format!("/// {wide}"), format!("  - {wide}")] {
            assert_eq!(lines(&prose), 1, "{prose}");
        }
        for other in [
            format!("| {wide} |"),
            format!("# {wide}"),
            format!("```\n{wide}\n```"),
            format!("/// | {wide} |"),
            format!("- {long}"),
            format!("`{wide}`"),
            format!("//! ```\n//! {wide}\n//! ```"),
        ] {
            assert_eq!(lines(&other), 0, "{other}");
        }
        let code = format!("let text = \"{wide}\";\n// {wide}");
        assert_eq!(too_wide(comments(&code)), [(2, 3 + wide.trim_end().len() + 1)]);
    }
}

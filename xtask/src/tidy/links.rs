//! Links between documents lead somewhere: to a file that exists, and to a heading that it has. The
//! same holds for every `docs/….md` that code, help texts and manifests mention, and for the paths
//! between backticks in `ARCHITECTURE.md`.

use std::collections::BTreeSet;

use anyhow::Result;

use super::outcome::{Outcome, Violation};
use super::workspace::{TextFile, Workspace};

/// Documents of other projects that code names as its source.
const FOREIGN: [&str; 1] = ["docs/driver-attributes.md"];

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let mut violations = Vec::new();
    for file in &workspace.texts {
        violations.extend(mentions(file, workspace));
        if file.path.ends_with(".md") {
            violations.extend(links(file, &workspace.texts));
        }
        if file.path == "ARCHITECTURE.md" {
            violations.extend(places(file, &workspace.texts));
        }
    }
    Ok(Outcome { violations, looked_at: format!("{} text files", workspace.texts.len()) })
}

/// Mentions of `docs/….md` that no file of the repository is.
fn mentions(file: &TextFile, workspace: &Workspace) -> Vec<Violation> {
    let lines = file.text.lines().enumerate();
    let mentioned = lines.flat_map(|(index, line)| {
        line.match_indices("docs/").filter_map(move |(at, _)| {
            let is_longer =
                line[..at].ends_with(|c: char| c.is_alphanumeric() || "/._-".contains(c));
            let rest = &line[at..];
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "/._-".contains(c)));
            let path = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
            (!is_longer && path.ends_with(".md")).then_some((index, path))
        })
    });
    mentioned
        .filter(|(_, path)| !FOREIGN.contains(path) && workspace.text(path).is_none())
        .map(|(index, path)| broken(file, index, format!("`{path}` does not exist")))
        .collect()
}

/// Paths between backticks that no path of the repository contains: they may leave out the folders
/// that the text names before.
fn places(file: &TextFile, texts: &[TextFile]) -> Vec<Violation> {
    let every: String = texts.iter().map(|other| format!("/{}/\n", other.path)).collect();
    let quoted = outside_fences(&file.text).flat_map(|(index, line)| {
        line.split('`').skip(1).step_by(2).map(move |quoted| (index, quoted))
    });
    let is_path = |quoted: &str| {
        quoted.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
            && (quoted.contains('/') || quoted.ends_with(".rs") || quoted.ends_with(".md"))
    };
    quoted
        .filter(|(_, quoted)| is_path(quoted))
        .filter(|(_, path)| !every.contains(&format!("/{}/", path.trim_matches('/'))))
        .map(|(index, path)| broken(file, index, format!("`{path}` does not exist")))
        .collect()
}

/// Links of a document that lead to no file, or to no heading of it.
fn links(file: &TextFile, texts: &[TextFile]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (index, line) in outside_fences(&file.text) {
        for target in targets(line) {
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if path.is_empty() { file.path.clone() } else { beside(&file.path, path) };
            let linked = texts.iter().find(|other| other.path == path);
            let is_folder = texts.iter().any(|other| other.path.starts_with(&format!("{path}/")));
            match linked {
                None if is_folder && heading.is_empty() => {}
                None => violations.push(broken(file, index, format!("`{path}` does not exist"))),
                Some(other) if heading.is_empty() || anchors(&other.text).contains(heading) => {}
                Some(_) => {
                    violations.push(broken(file, index, format!("`{path}` has no `#{heading}`")));
                }
            }
        }
    }
    violations
}

fn broken(file: &TextFile, index: usize, message: String) -> Violation {
    let mend = "link to a file and a heading of the repository".to_owned();
    Violation { path: file.path.clone(), line: index + 1, message, mend }
}

/// Lines of a document that are not in a fenced block, with their index.
pub(super) fn outside_fences(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        let is_prose = !is_fenced && !is_fence;
        is_fenced ^= is_fence;
        is_prose
    })
}

/// What the links of a line lead to, within the repository.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let parts = line.match_indices("](").map(|(at, open)| &line[at + open.len()..]);
    let targets = parts.filter_map(|rest| Some(rest.split_once(')')?.0));
    targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
}

/// A path relative to a document, from the root of the repository.
fn beside(document: &str, path: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in path.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// Names of headings as GitHub makes them: lower case, punctuation removed, spaces as hyphens.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = outside_fences(text).filter(|(_, line)| line.starts_with('#'));
    let name = |line: &str| -> String {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(|(_, line)| name(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken_lines(text: &str) -> Vec<usize> {
        let file =
            |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
        let texts = [file("pages/a.md", text), file("pages/in/b.md", "# Two `words`, here\n")];
        links(&texts[0], &texts).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn links_lead_to_files_and_headings() {
        assert_eq!(broken_lines("[b](in/b.md) [c](in/c.md)\n"), [1]);
        let headings =
            "# Top\n[b](in/b.md#two-words-here) [a](#top)\n[b](in/b.md#three) [a](#end)\n";
        assert_eq!(broken_lines(headings), [3, 3]);
        let elsewhere = "[x](https://x.example/y.md) [in](in)\n```\n[c](c.md)\n```\n";
        assert_eq!(broken_lines(elsewhere), [0_usize; 0]);
    }

    #[test]
    fn paths_between_backticks_exist() {
        let file =
            |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
        let text = "`a/src`: `b.rs`, `in/c.rs`; `--flag`\n`a/in`: `d.rs`\n";
        let texts =
            [file("ARCHITECTURE.md", text), file("a/src/b.rs", ""), file("a/src/in/c.rs", "")];
        let found = places(&texts[0], &texts);
        let found: Vec<(usize, &str)> =
            found.iter().map(|one| (one.line, one.message.as_str())).collect();
        assert_eq!(found, [(2, "`a/in` does not exist"), (2, "`d.rs` does not exist")]);
    }
}

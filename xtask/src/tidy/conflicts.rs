//! No file has the marks of a merge that was not finished.

use anyhow::Result;

use super::outcome::{Outcome, Violation};
use super::workspace::Workspace;

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let texts = workspace.texts.iter().map(|file| (&file.path, &file.text));
    let sources = workspace.sources.iter().map(|file| (&file.path, &file.text));
    let (mut violations, mut files) = (Vec::new(), 0);
    for (path, text) in texts.chain(sources) {
        files += 1;
        violations.extend(marks(text).map(|line| Violation {
            path: path.clone(),
            line,
            message: "the mark of an unfinished merge".to_owned(),
            mend: "keep one side and remove the marks".to_owned(),
        }));
    }
    Ok(Outcome { violations, looked_at: format!("{files} files") })
}

/// Lines that begin or end a conflict as git writes it, counted from 1.
fn marks(text: &str) -> impl Iterator<Item = usize> {
    let is_mark = |line: &str| {
        ['<', '>'].iter().any(|sign| line.starts_with(&format!("{} ", sign.to_string().repeat(7))))
    };
    text.lines().enumerate().filter(move |(_, line)| is_mark(line)).map(|(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_conflict_are_marks_and_quotations_are_not() {
        let (from, to) = ("<".repeat(7), ">".repeat(7));
        let text = format!("a\n{from} HEAD\nb\n=======\nc\n{to} 01635ab6\n");
        assert_eq!(marks(&text).collect::<Vec<_>>(), [2, 6]);
        assert_eq!(marks("> quoted\n>>> deeper\n<tag>\n=======\n").count(), 0);
    }
}

//! `make test` runs no examples out of documentation, which would start rustdoc once for each
//! crate: what is to be tested is a test, and what stands between fences names its language.

use anyhow::Result;

use super::outcome::{Outcome, Violation};
use super::workspace::Workspace;

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let (mut violations, mut files) = (Vec::new(), 0);
    for file in &workspace.sources {
        files += 1;
        violations.extend(examples(&file.text).map(|line| Violation {
            path: file.path.clone(),
            line,
            message: "an example in documentation, which nobody runs".to_owned(),
            mend: "make it a test, or name its language, such as text".to_owned(),
        }));
    }
    Ok(Outcome { violations, looked_at: format!("{files} files") })
}

/// Lines, counted from 1, that open a fence as rustdoc would run it.
fn examples(text: &str) -> impl Iterator<Item = usize> {
    let mut is_open = false;
    let fences = text.lines().zip(1..).filter_map(|(line, number)| {
        let line = line.trim_start();
        let doc = line.strip_prefix("//!").or_else(|| line.strip_prefix("///"))?;
        Some((doc.trim_start().strip_prefix("```")?, number))
    });
    fences.filter_map(move |(language, number)| {
        is_open = !is_open;
        let is_run = matches!(language.trim(), "" | "rust" | "no_run" | "should_panic");
        (is_open && is_run).then_some(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_that_rustdoc_would_run_is_found() {
        let found = |text: &str| examples(text).collect::<Vec<usize>>();
        assert_eq!(found("//! ```\n//! f();\n//! ```\n"), [1]);
        assert_eq!(found("/// a\n/// ```rust\n/// ```\n/// ```text\n/// ```\n"), [2]);
        assert!(found("let fence = \"```\";\n// ```\n").is_empty());
    }
}

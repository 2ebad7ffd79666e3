//! Generated references say what the code says.

use anyhow::Result;

use super::workspace::TextFile;
use super::{Outcome, Violation, Workspace};
use crate::codegen::{CLI_COMMAND, CLI_REFERENCE, METRICS_COMMAND, METRICS_REFERENCE, reference};

const FOLDER: &str = "docs/reference/";

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let files = || workspace.texts.iter().filter(|file| file.path.starts_with(FOLDER));
    let mut violations = Vec::new();
    for file in files() {
        match file.path.as_str() {
            CLI_REFERENCE => violations.extend(stale(file, &reference(CLI_COMMAND)?, "cli")),
            METRICS_REFERENCE => {
                violations.extend(stale(file, &reference(METRICS_COMMAND)?, "metrics"));
            }
            _ => violations.push(without_generator(file)),
        }
    }
    Ok(Outcome { violations, looked_at: format!("{} references", files().count()) })
}

fn stale(file: &TextFile, fresh: &str, name: &str) -> Option<Violation> {
    if file.text == fresh {
        return None;
    }
    let same = file.text.lines().zip(fresh.lines()).take_while(|(old, new)| old == new).count();
    Some(Violation {
        path: file.path.clone(),
        line: same + 1,
        message: "the reference differs from the code".to_owned(),
        mend: format!("run `cargo xtask codegen {name}`"),
    })
}

fn without_generator(file: &TextFile) -> Violation {
    Violation {
        path: file.path.clone(),
        line: 1,
        message: "nothing generates this reference".to_owned(),
        mend: "move it elsewhere under docs, or add its generator to xtask".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_reference_is_found_at_its_first_difference() {
        let file = TextFile { path: CLI_REFERENCE.to_owned(), text: "a\nb\n".to_owned() };
        assert_eq!(stale(&file, "a\nb\n", "cli"), None);
        assert_eq!(stale(&file, "a\nc\n", "cli").unwrap().line, 2);
        assert_eq!(stale(&file, "a\nb\nc\n", "cli").unwrap().line, 3);
    }
}

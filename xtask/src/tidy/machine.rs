//! Nothing in the repository knows the machine it was written on: no folder of a person or a
//! workplace, no private registry, no folder beside the clone.

use anyhow::Result;

use super::outcome::{Outcome, Violation};
use super::workspace::{TextFile, Workspace};

/// Paths that exist on one machine only. Written in two parts, so that this file is no hit.
const MACHINE_PATHS: [&str; 4] = [
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/Us", "ers/"),
    concat!("C:\\Us", "ers"),
];

/// Folders of a person: a name follows.
const HOME: &str = concat!("/ho", "me/");

/// The folder of data beside the clone, which only the continuous-integration script may name.
const DATA_BESIDE: &str = concat!("sha", "red/da", "ta");
const MAY_NAME_DATA_BESIDE: &str = ".ci/run";

/// Where packages may come from.
const PUBLIC_REGISTRIES: [&str; 3] = [
    "registry+https://github.com/rust-lang/crates.io-index",
    "https://registry.npmjs.org/",
    "sparse+https://index.crates.io/",
];

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let violations = workspace.texts.iter().flat_map(violations_of).collect();
    Ok(Outcome { violations, looked_at: format!("{} text files", workspace.texts.len()) })
}

fn violations_of(file: &TextFile) -> Vec<Violation> {
    let violation = |index, message: String, mend: &str| Violation {
        path: file.path.clone(),
        line: index + 1,
        message,
        mend: mend.to_owned(),
    };
    let mut violations = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if let Some(path) = machine_path(line) {
            let message = format!("`{path}` is a path of one machine");
            violations.push(violation(index, message, "take it from the environment"));
        }
        if line.contains(DATA_BESIDE) && file.path != MAY_NAME_DATA_BESIDE {
            let message = format!("`{DATA_BESIDE}` lies outside the repository");
            violations.push(violation(index, message, "read $DOVETAIL_TRACES"));
        }
        if let Some(origin) = private_registry(&file.path, line) {
            let message = format!("packages come from `{origin}`");
            violations.push(violation(index, message, "lock them from the public registry"));
        }
    }
    violations
}

fn machine_path(line: &str) -> Option<&str> {
    let fixed = MACHINE_PATHS.into_iter().find(|path| {
        // A longer path may contain one as its middle: `usr/local/wo` + `rk/`.
        line.match_indices(path).any(|(at, _)| !line[..at].ends_with(is_path_letter))
    });
    let named = line.match_indices(HOME).any(|(at, _)| {
        !line[..at].ends_with(is_path_letter)
            && line[at + HOME.len()..].starts_with(|letter: char| letter.is_ascii_alphanumeric())
    });
    fixed.or(named.then_some(HOME))
}

fn is_path_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-' | '}' | '>')
}

/// The registry that a line of a lock file names, unless it is a public one.
fn private_registry<'a>(path: &str, line: &'a str) -> Option<&'a str> {
    let (key, separator) = match path.rsplit('/').next()? {
        "Cargo.lock" => ("source = ", " = "),
        "package-lock.json" => ("\"resolved\": ", ": "),
        _ => return None,
    };
    let line = line.trim();
    let (_, value) = line.starts_with(key).then(|| line.split_once(separator))??;
    let origin = value.trim_matches(['"', ',']);
    (!PUBLIC_REGISTRIES.iter().any(|public| origin.starts_with(public))).then_some(origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let file = TextFile { path: path.to_owned(), text: text.to_owned() };
        violations_of(&file).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        let text = format!(
            "cd {}x\ncd {HOME}ann\ncd {HOME}$USER\nusr/local{}\nset X={}\nopen {}ann/x\n",
            MACHINE_PATHS[0], MACHINE_PATHS[1], MACHINE_PATHS[3], MACHINE_PATHS[2],
        );
        assert_eq!(lines("docs/simulate.md", &text), [1, 2, 5, 6]);
    }

    #[test]
    fn only_the_ci_script_names_the_folder_beside_the_clone() {
        let text = format!("data=../{DATA_BESIDE}\n");
        assert_eq!(lines("docs/simulate.md", &text), [1]);
        assert_eq!(lines(".ci/run", &text), [0_usize; 0]);
    }

    #[test]
    fn lock_files_name_public_registries_only() {
        let public = format!("source = \"{}\"\n", PUBLIC_REGISTRIES[0]);
        assert_eq!(lines("Cargo.lock", &public), [0_usize; 0]);
        let private = "[[package]]\nsource = \"sparse+https://mirror.example/index/\"\n";
        assert_eq!(lines("Cargo.lock", private), [2]);
        let private = "  \"resolved\": \"https://mirror.example/a.tgz\",\n";
        assert_eq!(lines("web/package-lock.json", private), [1]);
    }
}

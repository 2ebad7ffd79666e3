//! Every example of the documents works. `sh` blocks run in an empty home directory, one per page,
//! and a `text` block is what the block before it prints; a line `...` stands for any lines. An
//! example that needs more than the program says so in its fence: `sh cluster` blocks run in
//! documented_cluster.rs, and others are listed in a snapshot. Of all the command lines are parsed,
//! so that a flag that does not exist is found. `INSTA_UPDATE=always` writes what is printed into
//! `text` blocks.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// What an example may need besides the program and a shell, by the word in its fence.
const NEEDS: [(&str, &str); 5] = [
    ("cluster", "a cluster"),
    ("prometheus", "a Prometheus server with GPU metrics"),
    ("build", "a compiler, or a builder of images and their registry"),
    ("cloud", "a cluster with GPUs, and DCGM Exporter"),
    ("time", "minutes of samples of a GPU exporter"),
];

/// A fenced block of a document.
pub(crate) struct Block {
    pub(crate) line: usize,
    info: Vec<String>,
    pub(crate) text: String,
}

impl Block {
    pub(crate) fn is(&self, language: &str) -> bool {
        self.info.first().is_some_and(|word| word == language)
    }

    /// What it needs, as word and reason.
    fn needs(&self) -> Vec<(&'static str, &'static str)> {
        let is_named = |(need, _): &(&str, &str)| self.info.iter().any(|word| word == need);
        NEEDS.into_iter().filter(is_named).collect()
    }

    pub(crate) fn needs_only(&self, need: &str) -> bool {
        matches!(self.needs().as_slice(), [(only, _)] if *only == need)
    }

    /// The exit code that the fence promises: `sh exit=5`.
    pub(crate) fn exit_code(&self) -> i32 {
        let promised = self.info.iter().find_map(|word| word.strip_prefix("exit="));
        promised.map_or(0, |code| code.parse().expect("a code"))
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README and the pages below `docs`, by path from the root.
pub(crate) fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned()];
    for folder in ["docs", "docs/internals", "docs/reference"] {
        for entry in fs::read_dir(root().join(folder)).expect("a folder") {
            let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
            // The reference of the command line is generated from the definitions themselves.
            if name.ends_with(".md") && name != "cli.md" {
                pages.push(format!("{folder}/{name}"));
            }
        }
    }
    pages.sort();
    pages
}

pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let text = fs::read_to_string(root().join(page)).expect(page);
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (index, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), is_open) {
            (Some(info), false) => {
                let info = info.split_whitespace().map(str::to_owned).collect();
                blocks.push(Block { line: index + 1, info, text: String::new() });
                is_open = true;
            }
            (Some(_), true) => is_open = false,
            (None, true) => {
                let block = blocks.last_mut().expect("an open block");
                writeln!(block.text, "{line}").expect("a string takes all");
            }
            (None, false) => {}
        }
    }
    blocks
}

/// A script in the home of a page, with a folder of programs on the path and nothing of the
/// caller's settings.
pub(crate) fn shell(home: &Path, programs: &Path, script: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-euc", script])
        .env_clear()
        .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display()))
        .env("HOME", home)
        .env("COLUMNS", "100")
        .current_dir(home);
    command
}

/// Runs a script in the home of a page, with the program on the path.
fn run(home: &Path, script: &str) -> (i32, String, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_dovetail"));
    outcome(shell(home, program.parent().expect("a folder"), script))
}

/// Exit code and both streams of a command that ends.
pub(crate) fn outcome(mut command: Command) -> (i32, String, String) {
    let output = command.output().expect("sh starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Whether lines are those of a pattern, in which `...` stands for any number of lines.
pub(crate) fn agrees(pattern: &[&str], lines: &[&str]) -> bool {
    match pattern.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first.trim() == "..." => {
            (0..=lines.len()).any(|from| agrees(rest, &lines[from..]))
        }
        Some((first, rest)) => lines.split_first().is_some_and(|(line, after)| {
            first.trim_end() == line.trim_end() && agrees(rest, after)
        }),
    }
}

/// The lines that a block shows, each as it is printed now: the first printed line that begins
/// like it.
fn refreshed(shown: &[&str], printed: &[&str]) -> String {
    let start = |line: &str| line.chars().take(10).collect::<String>();
    let lines = shown.iter().map(|line| {
        let now = printed.iter().find(|now| line.trim() != "..." && start(now) == start(line));
        format!("{}\n", now.unwrap_or(line).trim_end())
    });
    lines.collect()
}

/// The command lines of a block that call the program, without what a shell does with them.
fn calls(block: &Block) -> Vec<Vec<String>> {
    let joined = block.text.replace("\\\n", " ");
    let lines = joined.lines().map(|line| line.trim().trim_start_matches("$ "));
    let calls = lines.filter(|line| line.starts_with("dovetail ") || line.contains(" dovetail "));
    calls.filter_map(arguments).collect()
}

/// The words after `dovetail`, up to what ends the command. Settings of the environment may come
/// first.
fn arguments(line: &str) -> Option<Vec<String>> {
    let mut words = line.split_whitespace().skip_while(|word| word.contains('='));
    if words.next() != Some("dovetail") {
        return None;
    }
    let is_end = |word: &&str| matches!(*word, "#" | "|" | ">" | "&&" | "&" | ";");
    let words = words.take_while(|word| !is_end(word));
    Some(words.map(|word| word.trim_matches(['"', '\'']).to_owned()).collect())
}

#[test]
fn examples_of_the_documents_run_and_print_what_they_show() {
    let mut wrong = String::new();
    let mut not_run = String::new();
    for page in pages() {
        let home = TempDir::new().expect("a temporary folder");
        let mut printed: Option<String> = None;
        for block in blocks(&page) {
            let place = format!("{page}:{}", block.line);
            let needs = block.needs();
            if block.is("sh") && !needs.is_empty() {
                let first = block.text.lines().next().unwrap_or_default();
                if !block.needs_only("cluster") {
                    let reasons: Vec<&str> = needs.iter().map(|(_, reason)| *reason).collect();
                    writeln!(not_run, "{page}: {first}\n    needs {}", reasons.join(" and "))
                        .expect("a string takes all");
                }
                printed = None;
            } else if block.is("sh") {
                let (code, out, err) = run(home.path(), &block.text);
                if code != block.exit_code() {
                    writeln!(wrong, "{place}: exit code {code}\n{out}{err}").expect("a string");
                }
                printed = Some(out);
            } else if block.is("text")
                && let Some(printed) = printed.take()
            {
                let shown: Vec<&str> = block.text.lines().collect();
                let lines: Vec<&str> = printed.lines().collect();
                if !agrees(&shown, &lines) {
                    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
                        let text = fs::read_to_string(root().join(&page)).expect("a page");
                        let text = text.replace(&block.text, &refreshed(&shown, &lines));
                        fs::write(root().join(&page), text).expect("a page that can be written");
                    }
                    writeln!(wrong, "{place}: prints\n{printed}").expect("a string takes all");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    insta::assert_snapshot!("examples_not_run", not_run);
}

#[test]
fn commands_that_the_documents_show_have_the_flags_that_they_use() {
    let home = TempDir::new().expect("a temporary folder");
    let mut wrong = String::new();
    let mut known = BTreeSet::new();
    for page in pages() {
        for block in blocks(&page) {
            for mut call in calls(&block) {
                if !known.insert(call.clone()) {
                    continue;
                }
                // Help is printed when all before it has been understood.
                call.push("--help".to_owned());
                let program = env!("CARGO_BIN_EXE_dovetail");
                let output = Command::new(program)
                    .args(&call)
                    .current_dir(&home)
                    .output()
                    .expect("the program starts");
                if !output.status.success() {
                    let error = String::from_utf8_lossy(&output.stderr);
                    writeln!(wrong, "{page}:{}: {}: {error}", block.line, call.join(" "))
                        .expect("a string takes all");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(known.len() > 50, "only {} commands were found", known.len());
}

#[test]
fn shown_lines_agree_with_printed_ones_but_for_what_is_left_out() {
    let lines = ["a", "b", "c"];
    assert!(agrees(&["a", "...", "c"], &lines) && agrees(&["..."], &lines));
    assert!(agrees(&["a", "b", "...", "c"], &lines));
    assert!(!agrees(&["a", "c"], &lines) && !agrees(&["a", "...", "b"], &lines));
}

/// Objects of a cluster of EKS, among them a half-placed gang of Volcano.
const EKS: &str = include_str!("dumps/eks_gang_mig_replicas.json");

/// `kubectl get KINDS -A -o json` of a cluster that has some kinds only: of a kind that it lacks
/// the whole command fails, as kubectl's does.
const KUBECTL: &str = r#"#!/bin/sh
for kind in $(echo "$2" | tr , ' '); do
  if [ ! -f "$HOME/served/$kind" ]; then
    echo "error: the server doesn't have a resource type \"$kind\"" >&2
    exit 1
  fi
done
printf '{"apiVersion":"v1","kind":"List","items":['
comma=
for kind in $(echo "$2" | tr , ' '); do
  if [ -s "$HOME/served/$kind" ]; then printf '%s' "$comma"; cat "$HOME/served/$kind"; comma=,; fi
done
printf ']}\n'
"#;

#[test]
fn the_dump_of_get_started_has_gangs_and_survives_kinds_that_a_cluster_lacks() {
    use std::os::unix::fs::PermissionsExt;
    let blocks = blocks("docs/get-started.md");
    let block = blocks.iter().find(|block| block.text.contains("> dump.json")).expect("a dump");
    let home = TempDir::new().expect("a folder");
    let served = home.path().join("served");
    fs::create_dir(&served).expect("a folder");
    let kinds = block.text.lines().next().expect("a line").split_whitespace().nth(2);
    let kinds = kinds.expect("kinds").split(',');
    kinds.for_each(|kind| fs::write(served.join(kind), "").expect("a file"));
    let list: serde_json::Value = serde_json::from_str(EKS).expect("a list");
    let mut by_kind: std::collections::BTreeMap<String, Vec<String>> = Default::default();
    for object in list["items"].as_array().expect("objects") {
        let kind = object["kind"].as_str().expect("a kind").to_lowercase();
        let version = object["apiVersion"].as_str().expect("a version");
        let name = match (kind.as_str(), version.split_once('/')) {
            ("podgroup", Some((group, _))) => format!("podgroups.{group}"),
            ("nodepool", Some((group, _))) => format!("nodepools.{group}"),
            _ => format!("{kind}s"),
        };
        by_kind.entry(name).or_default().push(object.to_string());
    }
    assert!(by_kind.contains_key("podgroups.scheduling.volcano.sh"), "{:?}", by_kind.keys());
    for (kind, objects) in by_kind {
        fs::write(served.join(kind), objects.join(",")).expect("a file");
    }
    let kubectl = home.path().join("kubectl");
    fs::write(&kubectl, KUBECTL).expect("a file");
    fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).expect("permissions");
    let script = format!(
        "PATH=\"$HOME:$PATH\"\n{}",
        block.text.replace("--from dump.json", "--from dump.json --at 2026-11-25T14:00:00Z")
    );
    let (code, out, err) = run(home.path(), &script);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("waiting for the rest of a gang"), "{out}{err}");
    assert!(!err.contains("error"), "{err}");
}

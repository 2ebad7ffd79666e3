//! Generated references say what the code says, and the page about JSON names what is printed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::Folder;

/// Each generated file of `docs/reference`, the command that prints it, and its name for
/// `cargo xtask codegen`.
const REFERENCES: [(&str, &str, &str); 2] =
    [("cli.md", "markdown-help", "cli"), ("metrics.md", "markdown-metrics", "metrics")];

#[test]
fn references_are_what_the_program_prints() {
    let references = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    for (file, command, name) in REFERENCES {
        let written = fs::read_to_string(references.join(file)).expect(file);
        let printed = Folder::new().call(command).out;
        let same = written.lines().zip(printed.lines()).take_while(|(old, new)| old == new);
        assert!(
            written == printed,
            "docs/reference/{file}:{}: differs from the code: run `cargo xtask codegen {name}`",
            same.count() + 1
        );
    }
    for entry in fs::read_dir(references).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            continue;
        }
        let file = path.file_name().expect("a name");
        let is_generated =
            fs::read_to_string(&path).expect("a page").starts_with("<!-- Written by");
        let is_known = REFERENCES.iter().any(|(known, ..)| file == *known);
        assert_eq!(is_known, is_generated, "docs/reference/{}", file.display());
    }
}

/// Keys of a document, besides names of queues.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                found.insert(key.clone());
                match value.as_object().filter(|_| key == "allocated_by_queue") {
                    Some(by_queue) => by_queue.values().for_each(|amount| keys(amount, found)),
                    None => keys(value, found),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|one| keys(one, found)),
        _ => {}
    }
}

#[test]
fn keys_of_timed_runs_are_documented() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/json.md");
    let page = fs::read_to_string(page).expect("a page");
    let headings = ["Keys of every simulation\n", "`sim run --protocol timed`\n"];
    let is_about = |section: &&str| headings.iter().any(|heading| section.starts_with(*heading));
    let documented: String = page.split("\n## ").filter(is_about).collect();
    let folder = Folder::new();
    folder.write(
        "jobs.csv",
        "job_id,submit_s,duration_s,num_gpu,queue,estimate_s\na,0,36000,4,a,36000\n\
         b,60,7200,8,b,\nhuge,120,60,99,a,60\n",
    );
    folder.write("q.toml", "[queues.a]\nweight = 2\n");
    let window = "count = 2\nfrom = \"1h\"\nto = \"2h\"\nasked = \"60s\"\n";
    let reservation = |gpus: u32| format!("[reservations.gpus-{gpus}]\ngpus = {gpus}\n{window}");
    folder.write("r.toml", &format!("{}\n{}", reservation(4), reservation(16)));
    let timed = "sim run --protocol timed --nodes 2x4 --jobs jobs.csv --order dovetail";
    let mut printed = BTreeSet::new();
    for more in [
        "--queues q.toml --reservations r.toml --start-estimates 1h",
        "--pause-at 60 --checkpoint p.json",
    ] {
        keys(&folder.json(&format!("{timed} {more}")), &mut printed);
    }
    for key in ["queues", "reservations", "start_estimate", "estimates", "paused_at_ms"] {
        assert!(printed.contains(key), "{key} is not in {printed:?}");
    }
    let lacks: Vec<_> =
        printed.into_iter().filter(|key| !documented.contains(&format!("`{key}`"))).collect();
    assert!(lacks.is_empty(), "docs/reference/json.md does not name {lacks:?}");
}

/// What each share of the headline is a share of, and the words for a finding that is inferred.
#[test]
fn the_page_about_audits_names_what_an_audit_prints() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/audit.md");
    let page = fs::read_to_string(page).expect("a page");
    let row = page.lines().find(|line| line.starts_with("| first line |")).expect("a row");
    let printed = Folder::new().call("audit --example -o markdown").out;
    let head = printed.lines().find(|line| line.contains("You pay about")).expect("a headline");
    let shares = [
        ("You pay about", "the monthly bill; waste per month, its share of the bill"),
        ("depending on the split method", "its range across split methods"),
        ("of the GPU time", "the share of the GPU time that is unmeasured"),
    ];
    for (printed, told) in shares {
        assert!(head.contains(printed) && row.contains(told), "{printed}: {head}\n{row}");
    }
    let table = Folder::new().call("audit --example --all-findings").out;
    assert!(table.contains("confidence: medium"), "{table}");
    assert!(page.contains("The confidence of a finding is `medium`"), "the page says otherwise");
}

/// Flags of other programs that pages name.
const OF_OTHERS: [&str; 6] = ["--bench", "--file", "--locked", "--path", "--tag", "--test"];

/// The flags in a text.
fn flags(text: &str) -> BTreeSet<&str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let words = text.split(|letter| !is_part(letter));
    let is_name = |word: &str| {
        let name = word.strip_prefix("--");
        name.is_some_and(|name| name.starts_with(|letter: char| letter.is_ascii_lowercase()))
    };
    words.filter(|word| is_name(word)).collect()
}

#[test]
fn pages_name_no_flag_that_does_not_exist() {
    assert_eq!(flags("|--|--:| a--b `--at TIME`"), BTreeSet::from(["--at"]));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let reference = fs::read_to_string(root.join("docs/reference/cli.md")).expect("a page");
    let known = flags(&reference);
    let pages = fs::read_dir(root.join("docs")).expect("a folder");
    let pages = pages.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file());
    let mut seen = 0;
    for page in pages.chain([root.join("README.md")]) {
        let text = fs::read_to_string(&page).expect("a page");
        for flag in flags(&text) {
            assert!(
                known.contains(flag) || OF_OTHERS.contains(&flag),
                "{}: {flag}",
                page.display()
            );
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen}");
}

//! FOCUS datasets are held against the FinOps Foundation's own validator, where it can be had.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{Folder, is_soak};

/// The only one of its rules for 1.2 that is broken: it wants an invoice's number for each row,
/// beside another rule that wants none where there is no invoice.
const IMPOSSIBLE: &str = "InvoiceId-C-005-C";

/// What became of each rule, by its name.
struct Verdict {
    passed: usize,
    failed: Vec<String>,
}

/// The rules of 1.2.0.1, which is the newest that comes with the validator.
fn validate(python: &Path, dataset: &Path) -> Verdict {
    let place = "import focus_validator, os; print(os.path.dirname(os.path.dirname(focus_validator.__file__)))";
    let found = Command::new(python).args(["-c", place]).output().expect("it starts");
    let place = String::from_utf8(found.stdout).expect("a path");
    let done = Command::new(python)
        .args(["-m", "focus_validator.main", "--validate-version", "1.2.0.1", "--block-download"])
        .args(["--focus-dataset", "CostAndUsage", "--data-file"])
        .arg(dataset)
        // It looks for its list of currencies from where it is started.
        .current_dir(place.trim())
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let rules = |mark: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.contains(mark));
        let names = lines.filter_map(|line| line.split_whitespace().nth(1));
        names.map(|name| name.trim_end_matches(':').to_owned()).collect()
    };
    let (passed, failed) = (rules(": PASS ").len(), rules(": FAIL "));
    assert!(passed > 100, "{text}\n{}", String::from_utf8_lossy(&done.stderr));
    Verdict { passed, failed }
}

#[test]
fn the_rules_of_1_2_hold_but_the_one_that_cannot() {
    let python = std::env::var_os("DOVETAIL_FOCUS_PYTHON").filter(|path| !path.is_empty());
    let Some(python) = python.map(PathBuf::from) else {
        // Past the test's own output, which is not shown when it passes.
        let line = "skipped: the FOCUS validator: DOVETAIL_FOCUS_PYTHON names no Python that has focus-validator; make \
                    test sets it up where there is Python 3.12 or newer\n";
        std::io::stderr().write_all(line.as_bytes()).expect("standard error is open");
        return;
    };
    let folder = Folder::new();
    // The validator takes half a minute for a dataset. Those of both kinds are held against our own
    // reading of the rules in every run (cost.rs).
    let all: &[&str] = if is_soak() { &["", " --unused distributed"] } else { &[""] };
    for flags in all {
        let done = folder.call(&format!("cost --example --focus 1.2{flags}"));
        assert_eq!(done.code, Some(0), "{}", done.err);
        folder.write("focus.csv", &done.out);
        let found = validate(&python, &folder.path("focus.csv"));
        assert_eq!(found.failed, [IMPOSSIBLE], "{} passed", found.passed);
    }
    if !is_soak() {
        return;
    }
    let broken = folder.read("focus.csv").replace(",Usage,", ",Use,");
    folder.write("broken.csv", &broken);
    let found = validate(&python, &folder.path("broken.csv"));
    assert!(
        found.failed.iter().any(|rule| rule.starts_with("ChargeCategory")),
        "{:?}",
        found.failed
    );
}

//! Help texts.

use crate::program::Folder;

const COMMANDS: [&str; 18] = [
    "",
    "sim",
    "sim run",
    "sim replay",
    "sim compare",
    "sim sweep",
    "sim bounds",
    "trace import",
    "trace synth",
    "trace stats",
    "trace export",
    "usage",
    "usage idle",
    "audit",
    "cost",
    "cost job",
    "cost questions",
    "collect",
];

#[test]
#[cfg_attr(feature = "scheduler", ignore = "the help of the default build is documented")]
fn help_is_as_documented() {
    let folder = Folder::new();
    for command in [
        "",
        "sim",
        "sim run",
        "sim compare",
        "sim bounds",
        "trace import",
        "trace synth",
        "usage idle",
    ] {
        let done = folder.call(&format!("{command} --help"));
        let name = format!("help_{}", command.replace(' ', "_"));
        insta::assert_snapshot!(name.trim_end_matches('_'), done.whole());
    }
}

#[test]
fn help_fits_100_columns_and_names_every_flag_with_a_meaning() {
    let folder = Folder::new();
    for command in COMMANDS {
        let done = folder.call(&format!("{command} --help"));
        assert_eq!(done.code, Some(0), "{command}");
        for line in done.out.lines() {
            assert!(line.chars().count() <= 100, "{command}: {line}");
        }
        let lines: Vec<&str> = done.out.lines().collect();
        for (number, line) in lines.iter().enumerate().filter(|(_, l)| l.trim().starts_with("--")) {
            let has_meaning = lines.get(number + 1).is_some_and(|next| !next.trim().is_empty());
            assert!(has_meaning || line.trim().contains("  "), "{command}: {line}");
        }
    }
}

#[test]
fn the_reference_has_every_command() {
    let done = Folder::new().call("markdown-help");
    for command in COMMANDS {
        let heading = format!("\n## `{}`\n", format!("dovetail {command}").trim_end());
        assert!(done.out.contains(&heading), "{heading}");
    }
    assert!(done.out.contains("Exit codes") && !done.out.contains("markdown-help`\n"));
}

//! Help texts.

use crate::program::Folder;

const COMMANDS: [&str; 35] = [
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
    "usage gpus",
    "audit",
    "cost",
    "cost job",
    "cost questions",
    "cost digest",
    "collect",
    "demo",
    "partition plan",
    "partition show",
    "partition apply",
    "partition rollback",
    "partition size",
    "partition setup",
    "scheduler",
    "serve",
    "why",
    "queue",
    "top",
    "config",
    "version",
    "completion",
];

#[test]
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
fn the_help_of_the_program_is_one_screen_of_a_terminal() {
    let folder = Folder::new();
    let help = folder.call("--help").out;
    assert!(help.lines().count() <= 24, "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    for line in ["-h", "help", "help --help"] {
        assert_eq!(folder.call(line).out, help, "{line}");
    }
    // One `help` answers for all commands, so no group lists its own.
    assert_eq!(folder.call("help sim run").out, folder.call("sim run --help").out);
    for group in ["usage", "sim", "trace", "partition", "cost"] {
        let help = folder.call(&format!("{group} --help")).out;
        assert!(!help.contains("  help  "), "{help}");
    }
    // What has no room there is one command away.
    let options = folder.call("options").out;
    for wanted in ["--output", "--seed", "--threads", "--color", "--config", "Exit codes"] {
        assert!(options.contains(wanted), "{wanted}: {options}");
    }
}

#[test]
fn a_mistyped_command_or_flag_is_answered_with_the_nearest() {
    let folder = Folder::new();
    for (line, nearest) in [
        ("audti", "'audit'"),
        ("shceduler", "'scheduler'"),
        ("usage gpu", "'gpus'"),
        ("sim comapre", "'compare'"),
        ("audit --kubeconfg x", "'--kubeconfig'"),
        ("cost --exmaple", "'--example'"),
        ("cost job --perid 7d", "'--period'"),
        ("top --ouptut json", "'--output'"),
        ("config --output jsn", "'json'"),
        ("colect", "a similar subcommand exists: 'collect'"),
        ("help audti", "'audit'"),
        ("help sim rnu", "'run'"),
        ("cost jb", "'job'"),
        // `sim` is a value here.
        ("usage --config sim gpsu", "'gpus'"),
        ("usage gpus --promethus x", "'--prometheus'"),
        // Hidden aliases are not offered.
        ("audit --no-colour", "'--color'"),
        ("collect --anonymos", "'--anonymize'"),
        ("audit --look-fro 1m", "'--scrape-for'"),
    ] {
        let done = folder.call(line);
        assert_eq!(done.code, Some(2), "{line}");
        assert!(done.err.contains("similar") && done.err.contains(nearest), "{line}: {}", done.err);
    }
}

#[test]
fn a_flag_before_its_command_is_answered_with_its_place() {
    let folder = Folder::new();
    for (line, place) in [
        ("--kubeconfig x audit", "'audit --kubeconfig'"),
        ("--kubecnfig x audit", "'audit --kubeconfig'"),
        ("usage --prometheus x gpus", "'usage gpus --prometheus'"),
    ] {
        let done = folder.call(line);
        assert_eq!(done.code, Some(2), "{line}");
        let wanted = format!("after the command: {place}");
        assert!(done.err.contains(&wanted), "{line}: {}", done.err);
        assert!(!done.err.contains("similar"), "{line}: {}", done.err);
        assert!(!done.err.contains("--config"), "{line}: {}", done.err);
    }
}

#[test]
fn what_is_near_nothing_gets_no_tip() {
    let folder = Folder::new();
    for line in [
        "audit --severity x",
        "cost questions --queston x",
        "why --severity",
        "--kubeconfig x",
        "frobnicate",
        "help frobnicate",
        "sim polcies",
    ] {
        let done = folder.call(line);
        assert_eq!(done.code, Some(2), "{line}");
        assert!(!done.err.contains("tip:"), "{line}: {}", done.err);
        assert!(!done.err.contains("--version"), "{line}: {}", done.err);
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
        let is_flag = |line: &str| {
            let line = line.trim().as_bytes();
            line.starts_with(b"--") || (line.first() == Some(&b'-') && line.get(2) == Some(&b','))
        };
        for (number, line) in lines.iter().enumerate().filter(|(_, line)| is_flag(line)) {
            let has_meaning = lines.get(number + 1).is_some_and(|next| !next.trim().is_empty());
            assert!(has_meaning || line.trim().contains("  "), "{command}: {line}");
        }
    }
}

#[test]
fn help_lists_the_forms_that_a_command_takes_and_no_others() {
    let folder = Folder::new();
    let listed = |command: &str| -> Vec<String> {
        let help = folder.call(&format!("{command} --help")).out;
        let (_, after) = help.split_once("--output <FORMAT>").unwrap_or_default();
        let after = after.split("\n      --").next().unwrap_or_default();
        let items = after.lines().filter_map(|line| line.trim().strip_prefix("- "));
        items.filter_map(|item| Some(item.split_once(':')?.0.to_owned())).collect()
    };
    assert_eq!(listed("audit"), ["table", "json", "yaml", "html", "markdown", "sarif"]);
    assert_eq!(listed("cost"), ["table", "json", "yaml", "csv"]);
    assert_eq!(listed("cost job"), ["table", "json", "yaml"]);
    assert_eq!(listed("collect"), [""; 0]);
    let done = folder.call("cost --example --output xml");
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("[possible values: table, json, yaml, csv]"), "{}", done.err);
    let done = folder.call("cost --example --output sarif");
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("does not support -o sarif; use table, json, yaml or csv"));
    // A group has no result, so it promises no format.
    for group in ["usage", "sim", "trace", "partition"] {
        assert_eq!(listed(group), [""; 0], "{group}");
        let help = folder.call(&format!("{group} --help")).out;
        assert!(help.contains("the help of each command lists the formats"), "{help}");
    }
    // Before the command, too.
    let done = folder.call("--output json config");
    assert!(done.out.starts_with('{'), "{}{}", done.out, done.err);
}

#[test]
fn flags_are_those_that_kubectl_users_know() {
    let folder = Folder::new();
    assert_eq!(folder.call("version").out, format!("dovetail {}\n", env!("CARGO_PKG_VERSION")));
    let version = folder.call("version -o json").out;
    assert_eq!(version, format!("{{\"version\":\"{}\"}}\n", env!("CARGO_PKG_VERSION")));
    for shell in ["bash", "zsh", "fish"] {
        let script = folder.call(&format!("completion {shell}")).out;
        assert!(script.contains("dovetail") && script.contains("audit"), "{shell}: {script}");
    }
    for command in ["audit", "cost", "top", "queue"] {
        let help = folder.call(&format!("{command} --help")).out;
        for flag in ["-o, --output", "-n, --namespace", "-A, --all-namespaces", "--context"] {
            assert!(help.contains(flag), "{command}: {flag}: {help}");
        }
    }
    // A flag that must be given says so.
    let help = folder.call("usage gpus --help").out;
    let after = help.split_once("      --prometheus <URL>").expect("the flag").1;
    let after = after.split("\n      --").next().unwrap_or_default();
    assert!(after.contains("[required]"), "{help}");
    // Old names still work, and no help shows them.
    let old = folder.call("audit --example --look-for 1m --output json");
    assert_eq!(old.code, Some(0), "{}", old.err);
    assert!(!folder.call("audit --help").out.contains("look-for"));
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

#[test]
fn help_names_the_forms_that_a_command_has_and_no_others() {
    let folder = Folder::new();
    for (command, has, has_not) in [
        ("sim run", "html", "csv"),
        ("sim sweep", "csv", "sarif"),
        ("audit", "sarif", "csv"),
        ("cost job", "json", "csv"),
    ] {
        let help = folder.call(&format!("{command} --help")).out;
        let forms = &help[help.find("--output").expect("a flag")..];
        let forms = &forms[..forms.find("--seed").expect("the next flag")];
        assert!(forms.contains(has) && !forms.contains(has_not), "{command}: {forms}");
    }
    // It is read all the same, before and behind the command.
    for line in ["--output json config", "config --output json"] {
        assert!(folder.call(line).out.starts_with('{'), "{line}");
    }
    let done = folder.call("config --output csv");
    assert_eq!(done.code, Some(2));
    assert!(
        done.whole().contains("`dovetail config` does not support -o csv; use table, json or yaml")
    );
    assert!(!folder.call("collect --help").out.contains("--output FORMAT"));
}

/// A heading of flags that a command shares with others ends with these flags.
#[test]
fn only_prices_are_listed_as_prices() {
    const PRICES: [&str; 9] = [
        "--bill",
        "--exchange",
        "--gib-price",
        "--gpu-price",
        "--prices",
        "--provider",
        "--purchase",
        "--region",
        "--vcpu-price",
    ];
    let folder = Folder::new();
    let mut is_any = false;
    for command in COMMANDS {
        let help = folder.call(&format!("{command} --help")).out;
        let Some((_, prices)) = help.split_once("\nPrices:\n") else { continue };
        let of_section = prices.lines().take_while(|line| line.is_empty() || line.starts_with(' '));
        let first = of_section.filter_map(|line| line.split_whitespace().next());
        for flag in first.filter(|word| word.starts_with('-') && word.len() > 1) {
            is_any = true;
            assert!(PRICES.contains(&flag), "{command}: {flag} is listed under Prices");
        }
    }
    assert!(is_any);
}

//! The hook that checks commit messages, run on messages good and bad.

use std::path::Path;
use std::process::Command;

/// Whether the hook accepts a message, and what it says.
fn checked(message: &str) -> (bool, String) {
    let folder = std::env::temp_dir();
    let file = folder.join(format!("dovetail-commit-message-{}", std::process::id()));
    std::fs::write(&file, message).expect("a file in the folder for temporary ones");
    let hook = Path::new(env!("CARGO_MANIFEST_DIR")).join("../make/commit-msg");
    let output = Command::new("sh").arg(hook).arg(&file).output().expect("a shell");
    std::fs::remove_file(&file).expect("the file that was just written");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn subjects_are_short_and_have_no_full_stop() {
    let (longest, too_long) = ("x".repeat(72), "x".repeat(73));
    let accents = "é".repeat(72);
    let reverted = format!("Revert \"{too_long}\"");
    let scissors =
        format!("Fix it\n\n# ------------------------ >8 ------------------------\n{too_long}.");
    for good in [
        "Place gangs on the fewest racks that fit",
        "Fix it\n\nWith a body that ends with a full stop.\n",
        "# a comment of git\n\nFix it\n# another.\n",
        &longest,
        &accents,
        &reverted,
        &scissors,
    ] {
        assert_eq!(checked(good), (true, String::new()), "{good}");
    }
    for (bad, says) in [
        (&*too_long, "73 characters"),
        ("Fix it.", "full stop"),
        ("Fix it\nand that", "empty line"),
        ("\n# only a comment\n", "empty"),
    ] {
        let (is_accepted, said) = checked(bad);
        assert!(!is_accepted && said.contains(says), "{bad}: {said}");
    }
}

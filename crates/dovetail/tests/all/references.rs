//! Generated references say what the code says.

use std::fs;
use std::path::Path;

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

//! A module's name says what is in it.

use anyhow::Result;
use syn::visit::{self, Visit};

use super::outcome::{Outcome, Violation};
use super::source::RustFile;
use super::workspace::Workspace;

/// Names that fit anything.
const SAY_NOTHING: [&str; 8] =
    ["common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"];

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let violations = workspace.sources.iter().flat_map(violations_of).collect();
    Ok(Outcome { violations, looked_at: format!("{} files", workspace.sources.len()) })
}

fn violations_of(file: &RustFile) -> Vec<Violation> {
    let mut found = Vec::new();
    let parts = file.path.trim_end_matches(".rs").split('/');
    found.extend(parts.filter(|part| says_nothing(part)).map(|part| (1, part.to_owned())));
    let mut modules = ModuleFinder::default();
    modules.visit_file(&file.syntax);
    found.extend(modules.found);
    let violation = |(line, name)| Violation {
        path: file.path.clone(),
        line,
        message: format!("`{name}` says nothing about its content"),
        mend: "name it after the one thing it does".to_owned(),
    };
    found.into_iter().map(violation).collect()
}

/// Whole names and words of names: `string_utils` says as little as `utils`.
fn says_nothing(name: &str) -> bool {
    name.split(['_', '-']).any(|word| SAY_NOTHING.contains(&word))
}

#[derive(Default)]
struct ModuleFinder {
    found: Vec<(usize, String)>,
}

impl<'ast> Visit<'ast> for ModuleFinder {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let name = module.ident.to_string();
        if module.content.is_some() && says_nothing(&name) {
            self.found.push((module.ident.span().start().line, name));
        }
        visit::visit_item_mod(self, module);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_names_are_found_in_paths_and_inline_modules() {
        let count = |path, text| violations_of(&RustFile::parse(path, text).unwrap()).len();
        assert_eq!(count("crates/a/src/place.rs", "mod tests {}"), 0);
        assert_eq!(count("crates/a/src/utils.rs", ""), 1);
        assert_eq!(count("crates/a/src/common/place.rs", ""), 1);
        assert_eq!(count("crates/a/src/string_helpers.rs", ""), 1);
        assert_eq!(count("crates/a/src/place.rs", "\nmod misc { mod manager {} }"), 2);
    }
}

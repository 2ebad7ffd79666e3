//! A label, an annotation, a resource or a version of an API is spelled in one place.

use std::collections::BTreeMap;

use anyhow::Result;
use proc_macro2::{TokenStream, TokenTree};
use syn::LitStr;
use syn::visit::{self, Visit};

use super::outcome::{Outcome, Violation};
use super::source::RustFile;
use super::workspace::Workspace;

/// What these write is read by the program under test: with a spelling of their own they judge it.
const SPELL_FOR_THEMSELVES: [&str; 4] =
    ["crates/testkit/", "crates/lab/rehearsal/", "crates/lab/trace/src/synth/objects/", "fuzz/"];

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let (violations, names) = second_spellings(&workspace.sources);
    Ok(Outcome { violations, looked_at: format!("{names} names") })
}

/// Every spelling after the first of a name, and how many names there are.
fn second_spellings(files: &[RustFile]) -> (Vec<Violation>, usize) {
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    let mut violations = Vec::new();
    let is_held =
        |file: &&RustFile| !SPELL_FOR_THEMSELVES.iter().any(|folder| file.path.starts_with(folder));
    // Where the names live comes first, so that the others are the second ones.
    let is_home = |file: &RustFile| file.path.ends_with("/src/labels.rs");
    let mut files: Vec<&RustFile> = files.iter().filter(is_held).collect();
    files.sort_by_key(|file| !is_home(file));
    for file in files {
        let mut strings = Strings::default();
        strings.visit_file(&file.shipped());
        // A name without a domain looks like any word: only where it is declared it is a name.
        let declares = |text: &str| is_home(file) && !text.contains('/');
        for (text, line) in strings.found {
            let Some(home) = first.get(&text) else {
                if is_name(&text) || declares(&text) {
                    first.insert(text, format!("{}:{line}", file.path));
                }
                continue;
            };
            violations.push(Violation {
                path: file.path.clone(),
                line,
                message: format!("`{text}` is spelled in {home}, too"),
                mend: "use a constant of `dovetail_objects::labels`".to_owned(),
            });
        }
    }
    (violations, first.len())
}

/// `domain/name`, as Kubernetes names labels; a domain alone is none.
fn is_name(text: &str) -> bool {
    let Some((domain, name)) = text.split_once('/') else { return false };
    let of_domain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    let of_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    domain.contains('.')
        && !domain.starts_with('.')
        && domain.chars().all(of_domain)
        && !name.is_empty()
        && name.chars().all(of_name)
}

/// Literal strings with their lines; those of attributes, such as documentation, are none.
#[derive(Default)]
pub(super) struct Strings {
    pub(super) found: Vec<(String, usize)>,
}

impl Strings {
    fn add_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    let line = literal.span().start().line;
                    if let Ok(text) = syn::parse_str::<LitStr>(&literal.to_string()) {
                        self.found.push((text.value(), line));
                    }
                }
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Strings {
    fn visit_lit_str(&mut self, text: &'ast LitStr) {
        self.found.push((text.value(), text.span().start().line));
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        self.add_tokens(invocation.tokens.clone());
        visit::visit_macro(self, invocation);
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_spelling_is_found_wherever_it_stands() {
        let file = |path: &str, text: &str| RustFile::parse(path, text).unwrap();
        let names = "pub const A: &str = \"a.io/b\";\npub const P: &str = \"plain-name\";";
        let home = file("z/src/labels.rs", names);
        let lines = |text: &str| -> Vec<usize> {
            let home = file(&home.path, &home.text);
            let (found, _) = second_spellings(&[file("a/src/lib.rs", text), home]);
            found.iter().map(|violation| violation.line).collect()
        };
        let code = "/// \"a.io/b\"\nfn f() {\n g(\"a.io/b\");\n json!({\"a.io/b\": 1});\n}";
        assert_eq!(lines(code), [3, 4]);
        assert_eq!(lines("#[cfg(test)]\nmod tests { const A: &str = \"a.io/b\"; }"), [0; 0]);
        assert_eq!(lines("const A: [&str; 2] = [\"a.io/\", \"application/json\"];"), [0; 0]);
        // Without a domain it is a name where it is declared as one.
        assert_eq!(lines("const P: [&str; 3] = [\"plain-name\",\n\"word\", \"word\"];"), [1]);
        // A name may stand anywhere, once.
        assert_eq!(lines("const A: &str = \"c.io/d\";\nconst B: &str = \"c.io/d\";"), [2]);
    }
}

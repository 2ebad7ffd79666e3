//! Files, functions and pages for users stay small enough to read in one go.

use anyhow::Result;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::outcome::{Outcome, Violation};
use super::source::{RustFile, functions_in_tokens};
use super::workspace::{TextFile, Workspace};

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;
const PAGE_LINES_MAX: usize = 200;

/// Folders of pages in which people look things up: these may be longer.
const LONG_PAGES: [&str; 2] = ["docs/internals/", "docs/reference/"];

/// A function and where it stands, from `fn` to its closing brace.
struct Function {
    name: String,
    line: usize,
    lines: usize,
}

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let mut violations = Vec::new();
    let (mut file_lines, mut function_lines) = (Vec::new(), Vec::new());
    for file in &workspace.sources {
        let functions = functions(file);
        file_lines.push(file.text.lines().count());
        function_lines.extend(functions.iter().map(|function| function.lines));
        violations.extend(violations_of(file, &functions));
    }
    let pages: Vec<&TextFile> = workspace.texts.iter().filter(|file| is_page(&file.path)).collect();
    violations.extend(pages.iter().filter_map(|page| too_long_page(page)));
    let looked_at = format!(
        "{} files: {}; {} functions: {}; {} pages",
        file_lines.len(),
        spread(&mut file_lines),
        function_lines.len(),
        spread(&mut function_lines),
        pages.len(),
    );
    Ok(Outcome { violations, looked_at })
}

/// Whether a file is a page that users read from its beginning to its end.
fn is_page(path: &str) -> bool {
    let is_of_docs = path.starts_with("docs/") && path.ends_with(".md");
    path == "README.md" || is_of_docs && !LONG_PAGES.iter().any(|folder| path.starts_with(folder))
}

fn too_long_page(page: &TextFile) -> Option<Violation> {
    let lines = page.text.lines().count();
    (lines > PAGE_LINES_MAX).then(|| Violation {
        path: page.path.clone(),
        line: PAGE_LINES_MAX + 1,
        message: format!("the page has {lines} lines, {PAGE_LINES_MAX} are allowed"),
        mend: "move what few readers need to docs/internals, and link to it".to_owned(),
    })
}

fn violations_of(file: &RustFile, functions: &[Function]) -> Vec<Violation> {
    let violation = |line, message, mend: &str| Violation {
        path: file.path.clone(),
        line,
        message,
        mend: mend.to_owned(),
    };
    let lines = file.text.lines().count();
    let too_long_file = (lines > FILE_LINES_MAX).then(|| {
        let message = format!("the file has {lines} lines, {FILE_LINES_MAX} are allowed");
        violation(FILE_LINES_MAX + 1, message, "split it by idea")
    });
    let too_long_functions =
        functions.iter().filter(|function| function.lines > FUNCTION_LINES_MAX).map(|function| {
            let Function { name, line, lines } = function;
            let message = format!("`{name}` has {lines} lines, {FUNCTION_LINES_MAX} are allowed");
            violation(*line, message, "give its steps names of their own")
        });
    too_long_file.into_iter().chain(too_long_functions).collect()
}

fn functions(file: &RustFile) -> Vec<Function> {
    let mut finder = FunctionFinder { functions: Vec::new() };
    finder.visit_file(&file.syntax);
    finder.functions
}

struct FunctionFinder {
    functions: Vec<Function>,
}

impl FunctionFinder {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.span().start().line;
        let last = block.span().end().line;
        self.add_lines(signature.ident.to_string(), first, last);
    }

    fn add_lines(&mut self, name: String, first: usize, last: usize) {
        self.functions.push(Function { name, line: first, lines: last + 1 - first });
    }
}

impl<'ast> Visit<'ast> for FunctionFinder {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.add(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        for (name, first, last) in functions_in_tokens(invocation.tokens.clone()) {
            self.add_lines(name, first, last);
        }
    }
}

/// Median, ninetieth percentile and greatest, in lines.
fn spread(lines: &mut [usize]) -> String {
    lines.sort_unstable();
    let at = |percent: usize| lines.get((lines.len() * percent / 100).min(lines.len() - 1));
    if lines.is_empty() {
        return "none".to_owned();
    }
    let (median, p90, most) = (at(50), at(90), lines.last());
    let number = |value: Option<&usize>| value.copied().unwrap_or(0);
    format!("median {}, p90 {}, most {} lines", number(median), number(p90), number(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, String)> {
        let file = RustFile::parse("src/lib.rs", text).unwrap();
        let violations = violations_of(&file, &functions(&file));
        violations.into_iter().map(|violation| (violation.line, violation.message)).collect()
    }

    #[test]
    fn long_functions_are_found_in_items_methods_and_macros() {
        let body = |lines: usize| "    f();\n".repeat(lines - 2);
        let (fits, long) = (body(FUNCTION_LINES_MAX), body(FUNCTION_LINES_MAX + 1));
        assert_eq!(found(&format!("/// Doc.\nfn a() {{\n{fits}}}\n")), []);
        let plain = found(&format!("/// Doc.\nfn a() {{\n{long}}}\n"));
        assert_eq!(plain, [(2, "`a` has 71 lines, 70 are allowed".to_owned())]);
        assert_eq!(found(&format!("impl A {{\nfn a() {{\n{long}}}\n}}\n")).len(), 1);
        assert_eq!(found(&format!("m! {{\nfn a(x in y()) {{\n{long}}}\n}}\n")).len(), 1);
    }

    #[test]
    fn long_pages_are_found_outside_internals_and_reference() {
        let is_long = |path: &str, lines: usize| {
            let page = TextFile { path: path.to_owned(), text: "line\n".repeat(lines) };
            is_page(path) && too_long_page(&page).is_some()
        };
        for path in ["README.md", "docs/sharing.md", "docs/find-waste.md"] {
            assert!(!is_long(path, PAGE_LINES_MAX) && is_long(path, PAGE_LINES_MAX + 1), "{path}");
        }
        for path in ["docs/internals/audit.md", "docs/reference/cli.md", "CHANGELOG.md"] {
            assert!(!is_long(path, PAGE_LINES_MAX + 1), "{path}");
        }
    }

    #[test]
    fn long_files_are_found_with_their_tests() {
        assert_eq!(found(&"// line\n".repeat(FILE_LINES_MAX)), []);
        assert_eq!(found(&"// line\n".repeat(FILE_LINES_MAX + 1))[0].0, 801);
    }
}

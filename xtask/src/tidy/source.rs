//! Rust files, parsed, with the question every rule asks: which paths does the code name?

use std::path::Path;

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, Meta, UseTree};

/// A parsed file of the repository.
pub(super) struct RustFile {
    pub(super) path: String,
    pub(super) text: String,
    pub(super) syntax: syn::File,
    /// The whole file is test code: it lies in a folder of tests, or is a test module.
    pub(super) test_only: bool,
}

/// A path such as `std::time::Instant`, as the code names it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NamedPath {
    pub(super) segments: Vec<String>,
    pub(super) line: usize,
    pub(super) in_use: bool,
}

impl NamedPath {
    /// The crate or module the path starts from, where it says so: in `use`, or before a `::`.
    pub(super) fn first_of_several(&self) -> Option<&str> {
        let first = self.segments.first()?;
        (self.in_use || self.segments.len() > 1).then_some(first)
    }
}

impl RustFile {
    pub(super) fn parse(path: &str, text: &str) -> Result<Self> {
        let syntax = syn::parse_file(text)
            .map_err(|error| anyhow!("{path}:{}: {error}", error.span().start().line))?;
        let test_only =
            path.split('/').any(|part| matches!(part, "tests" | "benches" | "examples"));
        Ok(Self { path: path.to_owned(), text: text.to_owned(), syntax, test_only })
    }

    /// Lines of test code: all where the whole file is a test, else those of test modules and
    /// functions.
    pub(super) fn test_lines(&self) -> usize {
        match self.test_only {
            true => self.text.lines().count(),
            false => lines_of_tests(&self.syntax.items),
        }
    }

    /// The file without test code: nothing where the whole file is a test.
    pub(super) fn shipped(&self) -> syn::File {
        let mut syntax = self.syntax.clone();
        if self.test_only {
            syntax.items.clear();
        }
        drop_tests(&mut syntax.items);
        syntax
    }
}

/// Marks the files of modules that another file declares as `#[cfg(test)] mod name;`.
pub(super) fn mark_test_modules(files: &mut [RustFile]) {
    let mut modules = Vec::new();
    for file in files.iter() {
        let path = Path::new(&file.path);
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let parent = path.parent().unwrap_or(Path::new(""));
        let folder = match stem {
            "lib" | "main" | "mod" => parent.to_owned(),
            _ => parent.join(stem),
        };
        for item in &file.syntax.items {
            if let Item::Mod(module) = item
                && module.content.is_none()
                && module.attrs.iter().any(is_test_only)
            {
                modules.push(folder.join(module.ident.to_string()));
            }
        }
    }
    for file in files {
        let path = Path::new(&file.path);
        file.test_only |= modules
            .iter()
            .any(|module| path.starts_with(module) || path == module.with_extension("rs"));
    }
}

/// All paths that the code names, in macros and attributes too.
pub(super) fn named_paths(file: &syn::File) -> Vec<NamedPath> {
    let mut collector = PathCollector::default();
    collector.visit_file(file);
    collector.paths
}

fn lines_of_tests(items: &[Item]) -> usize {
    let of_item = |item: &Item| match item {
        item if attributes(item).iter().any(is_test_only) => {
            let span = item.span();
            span.end().line + 1 - span.start().line
        }
        Item::Mod(module) => module.content.as_ref().map_or(0, |(_, items)| lines_of_tests(items)),
        _ => 0,
    };
    items.iter().map(of_item).sum()
}

fn drop_tests(items: &mut Vec<Item>) {
    items.retain(|item| !attributes(item).iter().any(is_test_only));
    for item in items {
        if let Item::Mod(module) = item
            && let Some((_, items)) = &mut module.content
        {
            drop_tests(items);
        }
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// `#[test]`, `#[cfg(test)]` and `#[cfg(all(test, …))]`.
fn is_test_only(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else { return attribute.path().is_ident("test") };
    list.path.is_ident("cfg") && requires_test(list.tokens.clone())
}

fn requires_test(condition: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = condition.into_iter().collect();
    match tokens.as_slice() {
        [TokenTree::Ident(ident)] => ident == "test",
        [TokenTree::Ident(ident), TokenTree::Group(group)] if ident == "all" => group
            .stream()
            .into_iter()
            .any(|token| matches!(token, TokenTree::Ident(ident) if ident == "test")),
        _ => false,
    }
}

#[derive(Default)]
struct PathCollector {
    paths: Vec<NamedPath>,
}

impl PathCollector {
    fn add_use(&mut self, tree: &UseTree, before: &[String]) {
        let with = |name: String| before.iter().cloned().chain([name]).collect::<Vec<_>>();
        let (segments, line) = match tree {
            UseTree::Path(path) => return self.add_use(&path.tree, &with(path.ident.to_string())),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.add_use(tree, before));
            }
            UseTree::Name(name) => (with(name.ident.to_string()), name.ident.span()),
            UseTree::Rename(rename) => (with(rename.ident.to_string()), rename.ident.span()),
            UseTree::Glob(glob) => (with("*".to_owned()), glob.span()),
        };
        self.paths.push(NamedPath { segments, line: line.start().line, in_use: true });
    }

    /// Paths in tokens that are not parsed: idents joined by `::`, at every depth.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is_colon =
            |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == ':');
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => {
                    self.add_tokens(group.stream());
                    at += 1;
                }
                TokenTree::Ident(first) => {
                    let mut segments = vec![first.to_string()];
                    at += 1;
                    while is_colon(at)
                        && is_colon(at + 1)
                        && let Some(TokenTree::Ident(next)) = tokens.get(at + 2)
                    {
                        segments.push(next.to_string());
                        at += 3;
                    }
                    let line = first.span().start().line;
                    self.paths.push(NamedPath { segments, line, in_use: false });
                }
                _ => at += 1,
            }
        }
    }
}

impl<'ast> Visit<'ast> for PathCollector {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add_use(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.span().start().line;
        self.paths.push(NamedPath { segments, line, in_use: false });
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        self.visit_path(&invocation.path);
        self.add_tokens(invocation.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        self.visit_path(attribute.path());
        if let Meta::List(list) = &attribute.meta {
            self.add_tokens(list.tokens.clone());
        }
    }
}

/// Line ranges `first..=last` of functions written inside tokens that are not parsed, such as the
/// body of `proptest!`.
pub(super) fn functions_in_tokens(tokens: TokenStream) -> Vec<(String, usize, usize)> {
    let mut functions = Vec::new();
    let mut open: Option<(Option<String>, usize)> = None;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) if ident == "fn" => {
                open = Some((None, ident.span().start().line));
            }
            TokenTree::Ident(ident) => {
                if let Some((name @ None, _)) = &mut open {
                    *name = Some(ident.to_string());
                }
            }
            TokenTree::Group(group) => {
                let braces = group.delimiter() == Delimiter::Brace;
                if braces && let Some((Some(name), first)) = open.take() {
                    functions.push((name, first, group.span_close().end().line));
                }
                functions.extend(functions_in_tokens(group.stream()));
            }
            _ => {}
        }
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> RustFile {
        RustFile::parse(path, text).unwrap()
    }

    #[test]
    fn paths_are_found_in_uses_expressions_macros_and_attributes() {
        let file = file(
            "src/lib.rs",
            "use a::{b, c::d as e};\n#[derive(f::G)]\nstruct S;\nfn h() { i::j(k!(l::m)); }",
        );
        let found: Vec<String> =
            named_paths(&file.syntax).iter().map(|path| path.segments.join("::")).collect();
        for path in ["a::b", "a::c::d", "f::G", "i::j", "l::m"] {
            assert!(found.iter().any(|found| found == path), "{path} not in {found:?}");
        }
    }

    #[test]
    fn test_code_is_not_shipped() {
        let mut files = vec![
            file("crates/a/src/plan.rs", "#[cfg(test)]\nmod judge;\nfn kept() {}"),
            file("crates/a/src/plan/judge.rs", "fn dropped() {}"),
            file("crates/a/src/x.rs", "#[cfg(all(test, unix))]\nmod m { fn dropped() {} }"),
            file("crates/a/src/y.rs", "#[cfg(not(test))]\nmod m { fn kept() {} }"),
            file("crates/a/tests/all.rs", "fn dropped() {}"),
        ];
        mark_test_modules(&mut files);
        let kept: Vec<usize> = files.iter().map(|file| file.shipped().items.len()).collect();
        assert_eq!(kept, [1, 0, 0, 1, 0]);
        let tests: Vec<usize> = files.iter().map(RustFile::test_lines).collect();
        assert_eq!(tests, [2, 1, 2, 0, 1]);
    }
}

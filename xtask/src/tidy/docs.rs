//! What is public is documented, except fields and variants, whose names may say enough: a line
//! that only says a name again is not written.

use anyhow::Result;
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Ident, Lit, Meta, Visibility};

use super::outcome::{Outcome, Violation};
use super::source::RustFile;
use super::workspace::Workspace;

/// Words that add nothing to a name.
const FILLERS: &[&str] = &[
    "a", "all", "an", "and", "are", "as", "at", "be", "by", "each", "every", "for", "from", "had",
    "has", "have", "how", "if", "in", "is", "it", "its", "many", "of", "on", "one", "or", "so",
    "some", "that", "the", "their", "them", "they", "this", "those", "to", "was", "were", "what",
    "where", "which", "whose", "with",
];

/// Derives that make a program's help or a schema's descriptions from documentation.
const SHOW_IT: [&str; 5] = ["Args", "JsonSchema", "Parser", "Subcommand", "ValueEnum"];

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let is_product = |file: &&RustFile| file.path.starts_with("crates/") && !file.test_only;
    let files: Vec<&RustFile> = workspace.sources.iter().filter(is_product).collect();
    let violations = files.iter().flat_map(|file| violations_of(file)).collect();
    Ok(Outcome { violations, looked_at: format!("{} files", files.len()) })
}

fn violations_of(file: &RustFile) -> Vec<Violation> {
    let mut docs = Docs::default();
    docs.visit_file(&file.shipped());
    let missing = docs.missing.into_iter().map(|(name, span)| Violation {
        path: file.path.clone(),
        line: span.start().line,
        message: format!("`{name}` is public and not documented"),
        mend: "say what it means: unit, range, errors, the source of a formula".to_owned(),
    });
    let repeating = docs.repeating.into_iter().map(|(name, span)| Violation {
        path: file.path.clone(),
        line: span.start().line,
        message: format!("the documentation of `{name}` says its name again"),
        mend: "leave it out, or say what the name does not".to_owned(),
    });
    missing.chain(repeating).collect()
}

#[derive(Default)]
struct Docs {
    /// Names of the types around an item, with that of its module's file.
    around: Vec<String>,
    missing: Vec<(String, Span)>,
    repeating: Vec<(String, Span)>,
}

impl Docs {
    /// A function, a type or a constant.
    fn item(&mut self, attributes: &[Attribute], visibility: &Visibility, name: &Ident, of: &str) {
        match (visibility, lines(attributes).as_slice()) {
            (Visibility::Public(_), []) => self.missing.push((name.to_string(), name.span())),
            (Visibility::Public(_), _) => {}
            (_, lines) => self.refuse_repeating(lines, name, of),
        }
    }

    fn refuse_repeating(&mut self, lines: &[(String, Span)], name: &Ident, of: &str) {
        let [(line, span)] = lines else { return };
        let around = self.around.join(" ");
        let known: Vec<String> = words(&format!("{name} {of} {around}"));
        if words(line).iter().all(|word| known.contains(word)) {
            self.repeating.push((name.to_string(), *span));
        }
    }

    fn fields(&mut self, fields: &syn::Fields) {
        for field in fields {
            if let Some(name) = &field.ident {
                let of = CodeNames::of(|names| names.visit_type(&field.ty));
                self.refuse_repeating(&lines(&field.attrs), name, &of);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Docs {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.item(&item.attrs, &item.vis, &item.ident, "");
        if !is_shown(&item.attrs) {
            self.around.push(item.ident.to_string());
            self.fields(&item.fields);
            self.around.pop();
        }
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.item(&item.attrs, &item.vis, &item.ident, "");
        if is_shown(&item.attrs) {
            return;
        }
        self.around.push(item.ident.to_string());
        for variant in &item.variants {
            let of = CodeNames::of(|names| names.visit_fields(&variant.fields));
            self.refuse_repeating(&lines(&variant.attrs), &variant.ident, &of);
            self.around.push(variant.ident.to_string());
            self.fields(&variant.fields);
            self.around.pop();
        }
        self.around.pop();
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let of = CodeNames::of(|names| names.visit_signature(&item.sig));
        self.item(&item.attrs, &item.vis, &item.sig.ident, &of);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.item(&item.attrs, &item.vis, &item.ident, "");
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.item(&item.attrs, &item.vis, &item.ident, "");
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if item.trait_.is_some() {
            return;
        }
        self.around.push(CodeNames::of(|names| names.visit_type(&item.self_ty)));
        visit::visit_item_impl(self, item);
        self.around.pop();
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let of = CodeNames::of(|names| names.visit_signature(&item.sig));
        self.item(&item.attrs, &item.vis, &item.sig.ident, &of);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.item(&item.attrs, &item.vis, &item.ident, "");
        let methods = item.items.iter().filter_map(|item| match item {
            syn::TraitItem::Fn(method) => Some(method),
            _ => None,
        });
        for method in methods {
            self.item(&method.attrs, &item.vis, &method.sig.ident, "");
        }
    }
}

/// Names in a part of the code, one after the other.
#[derive(Default)]
struct CodeNames(String);

impl CodeNames {
    fn of(visit: impl FnOnce(&mut Self)) -> String {
        let mut names = Self::default();
        visit(&mut names);
        names.0
    }
}

impl<'ast> Visit<'ast> for CodeNames {
    fn visit_ident(&mut self, name: &'ast Ident) {
        self.0 += &format!(" {name}");
    }

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

/// Whether the documentation of fields or variants is text that people read.
fn is_shown(attributes: &[Attribute]) -> bool {
    let derives = attributes.iter().filter(|attribute| attribute.path().is_ident("derive"));
    let lists = derives.filter_map(|derive| derive.meta.require_list().ok());
    let mut derived = lists.flat_map(|list| list.tokens.clone());
    derived.any(|token| SHOW_IT.contains(&token.to_string().as_str()))
}

/// Lines of documentation with their places.
fn lines(attributes: &[Attribute]) -> Vec<(String, Span)> {
    let docs = attributes.iter().filter(|attribute| attribute.path().is_ident("doc"));
    let line = |doc: &Attribute| {
        let Meta::NameValue(pair) = &doc.meta else { return None };
        let Expr::Lit(value) = &pair.value else { return None };
        let Lit::Str(text) = &value.lit else { return None };
        Some((text.value(), doc.span()))
    };
    docs.filter_map(line).collect()
}

/// The words of a text or of names that are written together, without fillers and endings.
fn words(text: &str) -> Vec<String> {
    let (mut apart, mut was_small) = (String::new(), false);
    for letter in text.chars() {
        if letter.is_uppercase() && was_small {
            apart.push(' ');
        }
        was_small = letter.is_lowercase();
        apart.extend(letter.to_lowercase());
    }
    let single = apart.split(|letter: char| !letter.is_alphanumeric());
    let single = single.filter(|word| !word.is_empty() && !FILLERS.contains(word));
    single.map(|word| stem(word).to_owned()).collect()
}

/// A word without the ending of a plural or of a verb.
fn stem(word: &str) -> &str {
    let endings = ["ies", "es", "ed", "ing", "s", "d", "e", "y"];
    let cut = |ending| word.strip_suffix(ending).filter(|rest: &&str| rest.len() >= 3);
    endings.into_iter().find_map(cut).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_public_is_documented_and_no_line_says_a_name_again() {
        let text = "/// A node.\npub struct Node {\n    /// Its name.\n    pub name: String,\n\
                    /// Null while it starts.\n    pub since: u64,\n    pub pool: String,\n}\n\
                    pub fn gpus() -> u32 { 0 }\n\
                    /// The nodes.\nfn nodes() {}\n\
                    #[derive(clap::Args)]\nstruct Flags {\n    /// Name\n    name: String,\n}\n\
                    #[cfg(test)]\nmod tests { pub fn a() {} }\n";
        let file = RustFile::parse("crates/core/model/src/lib.rs", text).unwrap();
        let found = violations_of(&file);
        let found: Vec<(usize, &str)> =
            found.iter().map(|one| (one.line, one.message.as_str())).collect();
        let expected = [
            (9, "`gpus` is public and not documented"),
            (3, "the documentation of `name` says its name again"),
            (10, "the documentation of `nodes` says its name again"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn words_are_compared_without_their_endings() {
        assert_eq!(words("The policies of PodGroups"), ["polic", "pod", "group"]);
        assert_eq!(words("policy_version"), ["polic", "version"]);
    }
}

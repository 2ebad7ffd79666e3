//! What the program shows to people: help of the command line, and literals with several words.
//! Messages of panics and assertions are for people who fix the program, and are none.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprMethodCall, Field, LitStr, Macro, Meta, Variant};

use super::source::RustFile;

/// Derives whose documentation becomes help.
const HELP: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];

/// Folders whose literals no user of the program sees.
const NOT_SHOWN: [&str; 2] = ["crates/testkit/", "xtask/"];

/// Texts for people in a file, each with its line.
pub(super) fn shown(file: &RustFile) -> Vec<(String, usize)> {
    if NOT_SHOWN.iter().any(|folder| file.path.starts_with(folder)) {
        return Vec::new();
    }
    let mut texts = Texts::default();
    texts.visit_file(&file.shipped());
    texts.found.into_iter().map(|(text, line)| (without_placeholders(&text), line)).collect()
}

/// `{name}` stands for a value.
fn without_placeholders(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        plain.push_str(before);
        plain.push('`');
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
    }
    plain + rest
}

#[derive(Default)]
struct Texts {
    found: Vec<(String, usize)>,
    /// Whether documentation of fields and variants is help.
    is_help: bool,
}

impl Texts {
    fn add(&mut self, literal: &LitStr) {
        let text = literal.value();
        if text.contains(' ') {
            self.found.push((text, literal.span().start().line));
        }
    }

    fn add_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    if let Ok(text) = syn::parse_str::<LitStr>(&literal.to_string()) {
                        let line = literal.span().start().line;
                        let text = text.value();
                        if text.contains(' ') {
                            self.found.push((text, line));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// The documentation of an item, where it is help.
    fn add_help(&mut self, attributes: &[Attribute]) {
        for attribute in attributes.iter().filter(|_| self.is_help) {
            if attribute.path().is_ident("doc")
                && let Meta::NameValue(meta) = &attribute.meta
                && let Expr::Lit(expression) = &meta.value
                && let syn::Lit::Str(text) = &expression.lit
            {
                self.found.push((text.value(), text.span().start().line));
            }
        }
    }
}

fn derives_help(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("derive")).any(|attribute| {
        let Meta::List(list) = &attribute.meta else { return false };
        let mut tokens = list.tokens.clone().into_iter();
        tokens.any(|token| HELP.iter().any(|help| token.to_string() == *help))
    })
}

impl<'ast> Visit<'ast> for Texts {
    fn visit_lit_str(&mut self, literal: &'ast LitStr) {
        self.add(literal);
    }

    /// Attributes hold reasons and names.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_macro(&mut self, invoked: &'ast Macro) {
        let name = invoked.path.segments.last().map(|last| last.ident.to_string());
        let name = name.unwrap_or_default();
        let is_for_developers = ["panic", "todo", "unimplemented", "unreachable"].contains(&&*name)
            || name.contains("assert");
        if !is_for_developers {
            self.add_tokens(invoked.tokens.clone());
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        match call.method == "expect" || call.method == "expect_err" {
            true => self.visit_expr(&call.receiver),
            false => visit::visit_expr_method_call(self, call),
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.is_help = derives_help(&item.attrs);
        visit::visit_item_struct(self, item);
        self.is_help = false;
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.is_help = derives_help(&item.attrs);
        visit::visit_item_enum(self, item);
        self.is_help = false;
    }

    fn visit_field(&mut self, field: &'ast Field) {
        self.add_help(&field.attrs);
        visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &'ast Variant) {
        self.add_help(&variant.attrs);
        visit::visit_variant(self, variant);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_and_literals_are_shown_and_panics_and_tests_are_not() {
        let text = r#"
            /// Not shown.
            #[derive(Debug, Args)]
            struct Flags {
                /// Shown as help
                #[arg(long, help_heading = "in an attribute")]
                flag: bool,
            }
            struct Other {
                /// Not shown either.
                field: bool,
            }
            fn told(name: &str) -> String {
                let number = "7".parse().expect("of one word");
                assert!(name.len() > 1, "not for people");
                panic_free(format!("shown {name} at {line}"), "also shown");
                "word"
            }
            #[cfg(test)]
            mod tests { const TEXT: &str = "a test"; }
        "#;
        let file = RustFile::parse("crates/app/a/src/lib.rs", text).expect("Rust");
        let found: Vec<String> = shown(&file).into_iter().map(|(text, _)| text).collect();
        assert_eq!(found, [" Shown as help", "shown ` at `", "also shown"]);
        let file = RustFile::parse("crates/testkit/src/lib.rs", text).expect("Rust");
        assert!(shown(&file).is_empty());
    }
}

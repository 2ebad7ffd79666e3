//! Core never walks a hash map: its order is nobody's decision. Maps of `rustc-hash` are for
//! lookup. Where the order cannot matter (a sum), a comment `order-free: <why>` on the line or the
//! one above says so.

use std::collections::BTreeSet;

use anyhow::Result;
use syn::visit::{self, Visit};
use syn::{Expr, FnArg, Member, Pat, Type};

use super::outcome::{Outcome, Violation};
use super::source::RustFile;
use super::workspace::Workspace;

const HASHED: [&str; 2] = ["FxHashMap", "FxHashSet"];

const WALKS: [&str; 12] = [
    "difference",
    "drain",
    "extract_if",
    "intersection",
    "into_iter",
    "into_keys",
    "into_values",
    "iter",
    "iter_mut",
    "keys",
    "values",
    "values_mut",
];

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let core = workspace.sources.iter().filter(|file| file.path.starts_with("crates/core/"));
    let core: Vec<&RustFile> = core.collect();
    let mut violations: Vec<Violation> = Vec::new();
    for krate in workspace.crates.iter().filter(|krate| krate.folder.starts_with("crates/core/")) {
        let files: Vec<&RustFile> =
            core.iter().copied().filter(|file| krate.holds(&file.path)).collect();
        violations.extend(violations_of(&files));
    }
    Ok(Outcome { violations, looked_at: format!("{} files of core", core.len()) })
}

/// Looks at the files of one crate. A field counts as hashed in the file that declares it; a local
/// in its function.
fn violations_of(files: &[&RustFile]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in files {
        let shipped = file.shipped();
        let mut fields = FieldFinder::default();
        fields.visit_file(&shipped);
        let mut walks = WalkFinder { fields: fields.hashed, ..WalkFinder::default() };
        walks.visit_file(&shipped);
        let lines: Vec<&str> = file.text.lines().collect();
        let excused = |line: usize| {
            lines[line.saturating_sub(2)..line].iter().any(|line| line.contains("order-free: "))
        };
        for (line, name) in walks.found {
            if !excused(line) {
                violations.push(Violation {
                    path: file.path.clone(),
                    line,
                    message: format!("`{name}` is a hash map, and its order leaks"),
                    mend: "use BTreeMap, keep a sorted list beside it, or say `order-free: why`"
                        .to_owned(),
                });
            }
        }
    }
    violations
}

fn is_hashed(kind: &Type) -> bool {
    match kind {
        Type::Reference(reference) => is_hashed(&reference.elem),
        Type::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|last| HASHED.iter().any(|name| last.ident == name)),
        _ => false,
    }
}

#[derive(Default)]
struct FieldFinder {
    hashed: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for FieldFinder {
    fn visit_field(&mut self, field: &'ast syn::Field) {
        if let Some(name) = &field.ident
            && is_hashed(&field.ty)
        {
            self.hashed.insert(name.to_string());
        }
    }
}

#[derive(Default)]
struct WalkFinder {
    fields: BTreeSet<String>,
    locals: BTreeSet<String>,
    found: Vec<(usize, String)>,
}

impl WalkFinder {
    /// The name of the hash map that an expression is, if it is one.
    fn hashed_name(&self, expression: &Expr) -> Option<(usize, String)> {
        match expression {
            Expr::Reference(inner) => self.hashed_name(&inner.expr),
            Expr::Paren(inner) => self.hashed_name(&inner.expr),
            Expr::Field(field) => match &field.member {
                Member::Named(name) if self.fields.contains(&name.to_string()) => {
                    Some((name.span().start().line, name.to_string()))
                }
                _ => None,
            },
            Expr::Path(path) => {
                let name = path.path.get_ident()?;
                let line = name.span().start().line;
                self.locals.contains(&name.to_string()).then(|| (line, name.to_string()))
            }
            _ => None,
        }
    }

    fn enter(&mut self, signature: &syn::Signature, walk: impl FnOnce(&mut Self)) {
        let outer = std::mem::take(&mut self.locals);
        for argument in &signature.inputs {
            if let FnArg::Typed(argument) = argument
                && is_hashed(&argument.ty)
                && let Pat::Ident(name) = &*argument.pat
            {
                self.locals.insert(name.ident.to_string());
            }
        }
        walk(self);
        self.locals = outer;
    }
}

impl<'ast> Visit<'ast> for WalkFinder {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.enter(&function.sig, |finder| visit::visit_item_fn(finder, function));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.enter(&function.sig, |finder| visit::visit_impl_item_fn(finder, function));
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        let (pattern, declared) = match &local.pat {
            Pat::Type(typed) => (&*typed.pat, is_hashed(&typed.ty)),
            pattern => (pattern, false),
        };
        // `FxHashMap::default()` and the like.
        let made = local.init.as_ref().is_some_and(|init| match &*init.expr {
            Expr::Call(call) => matches!(&*call.func, Expr::Path(path)
                if path.path.segments.iter().any(|part| HASHED.iter().any(|name| part.ident == name))),
            _ => false,
        });
        if let Pat::Ident(name) = pattern
            && (declared || made)
        {
            self.locals.insert(name.ident.to_string());
        }
        visit::visit_local(self, local);
    }

    fn visit_expr_for_loop(&mut self, walk: &'ast syn::ExprForLoop) {
        self.found.extend(self.hashed_name(&walk.expr));
        visit::visit_expr_for_loop(self, walk);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if WALKS.iter().any(|name| call.method == name) {
            self.found.extend(self.hashed_name(&call.receiver));
        }
        visit::visit_expr_method_call(self, call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let file = RustFile::parse("crates/core/plan/src/lib.rs", text).unwrap();
        violations_of(&[&file]).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn walking_a_hashed_field_argument_or_local_is_found() {
        let text = "struct S { by_id: FxHashMap<u32, u32>, list: Vec<u32> }\n\
                    impl S { fn a(&self) -> u32 { self.by_id.values().copied().next().unwrap() } }\n\
                    fn b(map: &FxHashMap<u32, u32>) { for _ in map {} }\n\
                    fn c() { let set = FxHashSet::default(); for _ in &set {} }\n\
                    fn d(s: &S) { for _ in s.list.iter() {} }\n\
                    fn e(s: &S) -> Option<&u32> { s.by_id.get(&1) }\n\
                    fn f(map: &[u32]) { for _ in map.iter() {} }\n";
        assert_eq!(lines(text), [2, 3, 4]);
    }

    #[test]
    fn a_reason_excuses_a_walk() {
        let text = "fn b(map: &FxHashMap<u32, u32>) -> u32 {\n\
                    // order-free: a sum\n\
                    map.values().sum()\n\
                    }\n";
        assert_eq!(lines(text), [0_usize; 0]);
        assert_eq!(lines(&text.replace("order-free: a sum", "fast")), [3]);
    }
}

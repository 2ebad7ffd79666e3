//! Files of a crate that call each other in a circle must be read together, so circles stay small.
//!
//! A file calls another if it names what the other defines, through re-exports too, or a method
//! that the other alone defines, of a type that it names. A re-export by itself is no call.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use syn::visit::{self, Visit};
use syn::{Ident, ImplItem, Item, Type, UseTree, Visibility};

use super::outcome::{Outcome, Violation};
use super::source::{NamedPath, RustFile, named_paths};
use super::workspace::{Crate, Workspace};

/// Lines without tests that files of a circle may have together.
const LINES_MAX: usize = 1_000;

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let mut violations = Vec::new();
    let mut largest = 0;
    for krate in &workspace.crates {
        let source = format!("{}/src/", krate.folder);
        let is_shipped = |file: &&RustFile| !file.test_only && file.path.starts_with(&source);
        let files: Vec<&RustFile> = workspace.sources.iter().filter(is_shipped).collect();
        for circle in circles(krate, &files) {
            let lines = circle.iter().map(|file| lines_of(files[*file])).sum();
            largest = largest.max(lines);
            if lines > LINES_MAX {
                violations.push(violation(&circle, &files, lines));
            }
        }
    }
    let looked_at =
        format!("{} crates, the largest circle of {largest} lines", workspace.crates.len());
    Ok(Outcome { violations, looked_at })
}

fn lines_of(file: &RustFile) -> usize {
    file.text.lines().count() - file.test_lines()
}

fn violation(circle: &[usize], files: &[&RustFile], lines: usize) -> Violation {
    let mut paths: Vec<&str> = circle.iter().map(|file| files[*file].path.as_str()).collect();
    paths.sort_unstable();
    Violation {
        path: paths[0].to_owned(),
        line: 1,
        message: format!(
            "{} files with {lines} lines call each other, {LINES_MAX} are allowed: {}",
            paths.len(),
            paths[1..].join(", ")
        ),
        mend: "let what is shared be a part of its own that calls none of them".to_owned(),
    }
}

/// A file with what others can name in it.
struct Module {
    /// Its place in the crate, such as `["world", "pods"]`.
    path: Vec<String>,
    defined: BTreeSet<String>,
    /// What `use` brings into it, by name; globs by the path before the star.
    used: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    /// Names that it only passes on.
    re_exported: BTreeSet<String>,
    /// Paths that its code names outside of `use`.
    named: Vec<NamedPath>,
    /// Methods that it calls.
    called: BTreeSet<String>,
    /// Methods that it defines, with their types.
    methods: BTreeSet<(String, String)>,
}

/// Groups of files that call each other, directly or through others of the group.
fn circles(krate: &Crate, files: &[&RustFile]) -> Vec<Vec<usize>> {
    let modules: Vec<Module> = files.iter().map(|file| module(krate, file)).collect();
    let by_path: BTreeMap<&[String], usize> =
        modules.iter().enumerate().map(|(number, module)| (&*module.path, number)).collect();
    let resolver = Resolver { modules: &modules, by_path };
    let mut homes: BTreeMap<&str, BTreeSet<(usize, &str)>> = BTreeMap::new();
    for (number, module) in modules.iter().enumerate() {
        for (name, of) in &module.methods {
            homes.entry(name).or_default().insert((number, of));
        }
    }
    let calls: Vec<BTreeSet<usize>> = (0..modules.len())
        .map(|file| {
            let mut called = resolver.called_by(file);
            called.extend(methods_called_by(&modules[file], &homes));
            called.remove(&file);
            called
        })
        .collect();
    groups(&calls)
}

fn methods_called_by(
    module: &Module,
    homes: &BTreeMap<&str, BTreeSet<(usize, &str)>>,
) -> BTreeSet<usize> {
    let names_type = |name: &str| {
        module.used.contains_key(name)
            || module.defined.contains(name)
            || module.named.iter().any(|path| path.segments.iter().any(|part| part == name))
    };
    let mut called = BTreeSet::new();
    for name in &module.called {
        let Some(places) = homes.get(name.as_str()) else { continue };
        let Some((file, of)) = places.first().filter(|_| places.len() == 1) else { continue };
        if names_type(of) {
            called.insert(*file);
        }
    }
    called
}

fn module(krate: &Crate, file: &RustFile) -> Module {
    let inside = file.path.strip_prefix(&format!("{}/src/", krate.folder)).unwrap_or(&file.path);
    let mut path: Vec<String> =
        inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        path.pop();
    }
    let syntax = file.shipped();
    let mut module = Module {
        path,
        defined: BTreeSet::new(),
        used: BTreeMap::new(),
        globs: Vec::new(),
        re_exported: BTreeSet::new(),
        named: named_paths(&syntax),
        called: BTreeSet::new(),
        methods: BTreeSet::new(),
    };
    // Uses inside of functions.
    for path in module.named.iter().filter(|path| path.in_use) {
        if let Some(name) = path.segments.last() {
            module.used.insert(name.clone(), path.segments.clone());
        }
    }
    module.named.retain(|path| !path.in_use);
    collect(&syntax.items, &mut module);
    let mut calls = Calls(&mut module.called);
    calls.visit_file(&syntax);
    module
}

/// Items of a file, and of modules that stand in it.
fn collect(items: &[Item], module: &mut Module) {
    for item in items {
        module.defined.extend(defined(item).map(ToString::to_string));
        match item {
            Item::Mod(item) => {
                if let Some((_, items)) = &item.content {
                    collect(items, module);
                }
            }
            Item::Use(item) => {
                let passes_on = !matches!(item.vis, Visibility::Inherited);
                collect_use(&item.tree, &[], passes_on, module);
            }
            Item::Impl(item) => {
                let Type::Path(of) = &*item.self_ty else { continue };
                let Some(of) = of.path.segments.last().filter(|_| item.trait_.is_none()) else {
                    continue;
                };
                let methods = item.items.iter().filter_map(|item| match item {
                    ImplItem::Fn(method) => Some(method.sig.ident.to_string()),
                    _ => None,
                });
                let of = of.ident.to_string();
                module.methods.extend(methods.map(|name| (name, of.clone())));
            }
            _ => {}
        }
    }
}

fn defined(item: &Item) -> Option<&Ident> {
    match item {
        Item::Const(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Static(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        _ => None,
    }
}

fn collect_use(tree: &UseTree, before: &[String], passes_on: bool, module: &mut Module) {
    let with =
        |name: &Ident| before.iter().cloned().chain([name.to_string()]).collect::<Vec<String>>();
    let (name, path) = match tree {
        UseTree::Path(path) => {
            return collect_use(&path.tree, &with(&path.ident), passes_on, module);
        }
        UseTree::Group(group) => {
            let each = group.items.iter();
            return each.for_each(|tree| collect_use(tree, before, passes_on, module));
        }
        UseTree::Glob(_) => return module.globs.push(before.to_vec()),
        UseTree::Name(name) if name.ident == "self" => (before.last().cloned(), before.to_vec()),
        UseTree::Name(name) => (Some(name.ident.to_string()), with(&name.ident)),
        UseTree::Rename(name) => (Some(name.rename.to_string()), with(&name.ident)),
    };
    let Some(name) = name else { return };
    if passes_on {
        module.re_exported.insert(name.clone());
    }
    module.used.insert(name, path);
}

struct Calls<'c>(&'c mut BTreeSet<String>);

impl<'ast> Visit<'ast> for Calls<'_> {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.0.insert(call.method.to_string());
        visit::visit_expr_method_call(self, call);
    }
}

/// Finds the file that defines what another one names.
struct Resolver<'r> {
    modules: &'r [Module],
    by_path: BTreeMap<&'r [String], usize>,
}

impl Resolver<'_> {
    /// Files whose items a file names.
    fn called_by(&self, file: usize) -> BTreeSet<usize> {
        let module = &self.modules[file];
        let first_named =
            |name: &String| module.named.iter().any(|path| path.segments.first() == Some(name));
        let used = module
            .used
            .iter()
            .filter(|(name, _)| !module.re_exported.contains(*name) || first_named(name));
        let paths = used.map(|(_, path)| path.as_slice());
        let paths = paths.chain(module.named.iter().map(|path| path.segments.as_slice()));
        paths.filter_map(|path| self.home(file, path, 0)).collect()
    }

    /// The file that defines what a path means in a file.
    fn home(&self, file: usize, path: &[String], depth: usize) -> Option<usize> {
        // Re-exports in a circle end nowhere.
        if depth > 8 {
            return None;
        }
        let module = &self.modules[file];
        let (first, rest) = path.split_first()?;
        let joined = |at: &[String]| [at, rest].concat();
        match first.as_str() {
            "crate" => return self.absolute(rest, depth),
            "self" => return self.absolute(&joined(&module.path), depth),
            "super" => {
                let parent = module.path.split_last().map(|(_, parent)| parent)?;
                return self.above(parent, rest, depth);
            }
            _ => {}
        }
        if let Some(used) = module.used.get(first).filter(|used| used.as_slice() != path) {
            return self.home(file, &joined(used), depth + 1);
        }
        let below = [&module.path, path].concat();
        (1..=below.len())
            .any(|len| len > module.path.len() && self.by_path.contains_key(&below[..len]))
            .then(|| self.absolute(&below, depth))
            .flatten()
    }

    fn above(&self, at: &[String], path: &[String], depth: usize) -> Option<usize> {
        match path.split_first() {
            Some((first, rest)) if first == "super" => self.above(at.split_last()?.1, rest, depth),
            _ => self.absolute(&[at, path].concat(), depth),
        }
    }

    fn absolute(&self, path: &[String], depth: usize) -> Option<usize> {
        let len = (0..=path.len()).rev().find(|len| self.by_path.contains_key(&path[..*len]))?;
        let file = self.by_path[&path[..len]];
        let name = path.get(len)?;
        let module = &self.modules[file];
        if module.defined.contains(name) {
            return Some(file);
        }
        if module.used.contains_key(name) {
            return self.home(file, &path[len..], depth + 1);
        }
        let through = |glob: &Vec<String>| {
            let path: Vec<String> = glob.iter().chain(&path[len..]).cloned().collect();
            self.home(file, &path, depth + 1)
        };
        module.globs.iter().find_map(through)
    }
}

/// Groups of nodes that reach each other, those of one node left out.
fn groups(edges: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let reach: Vec<BTreeSet<usize>> = (0..edges.len())
        .map(|from| {
            let mut seen = BTreeSet::new();
            let mut next: Vec<usize> = edges[from].iter().copied().collect();
            while let Some(node) = next.pop() {
                if seen.insert(node) {
                    next.extend(&edges[node]);
                }
            }
            seen
        })
        .collect();
    let mut done = BTreeSet::new();
    let mut groups = Vec::new();
    for node in 0..edges.len() {
        let group: Vec<usize> =
            reach[node].iter().copied().filter(|other| reach[*other].contains(&node)).collect();
        if group.len() > 1 && done.insert(group[0]) {
            groups.push(group);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let files: Vec<RustFile> = files
            .iter()
            .map(|(path, text)| RustFile::parse(&format!("crates/a/src/{path}"), text).unwrap())
            .collect();
        let krate = Crate { folder: "crates/a".to_owned(), ..Crate::default() };
        let files: Vec<&RustFile> = files.iter().collect();
        let names = |circle: Vec<usize>| {
            circle.into_iter().map(|file| files[file].path[13..].to_owned()).collect()
        };
        circles(&krate, &files).into_iter().map(names).collect()
    }

    #[test]
    fn a_circle_is_found_through_imports_and_re_exports() {
        let circles = found(&[
            ("lib.rs", "mod a; mod b; mod c; pub use b::B;"),
            ("a.rs", "use crate::B; pub struct A(B);"),
            ("b.rs", "use super::c; pub struct B(c::C);"),
            ("c/mod.rs", "pub(crate) mod d; use self::d::D; pub struct C(D);"),
            ("c/d.rs", "pub struct D; fn of() -> crate::a::A { todo!() }"),
        ]);
        assert_eq!(circles, [["a.rs", "b.rs", "c/mod.rs", "c/d.rs"]]);
    }

    #[test]
    fn a_circle_is_found_through_methods() {
        let circles = found(&[
            ("lib.rs", "mod a; mod b; pub struct T;"),
            ("a.rs", "use crate::T; impl T { fn one(&self) { self.two() } }"),
            ("b.rs", "use crate::T; impl T { fn two(&self) { self.one() } }"),
        ]);
        assert_eq!(circles, [["a.rs", "b.rs"]]);
    }

    #[test]
    fn layers_and_re_exports_are_no_circle() {
        let circles = found(&[
            ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
            ("a.rs", "pub struct A; impl A { fn one(&self) {} }"),
            ("b.rs", "use crate::A; pub struct B(A); impl B { fn two(&self) { self.0.one() } }"),
        ]);
        assert!(circles.is_empty(), "{circles:?}");
    }
}

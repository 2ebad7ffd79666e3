//! A type can be read in one go: few files say what it does, with few methods.
//!
//! What can be called with `value.` counts, and what could as well be: free functions whose first
//! parameter is `&mut T`, methods of a trait that only this type implements, and what a `Deref` of
//! the type lends it. Traits that several types implement, or that come from elsewhere, are another
//! idea and do not count.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use syn::{FnArg, ImplItem, Item, Type};

use super::outcome::{Outcome, Violation};
use super::source::{RustFile, named_paths};
use super::workspace::{Crate, Workspace};

const FILES_MAX: usize = 3;
const METHODS_MAX: usize = 30;

/// A type by the file that defines it.
type Definition = (usize, String);

/// What can be called on a type.
#[derive(Debug, Default)]
struct Surface {
    line: usize,
    files: BTreeSet<usize>,
    methods: usize,
    derefs_to: Vec<Definition>,
}

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let mut violations = Vec::new();
    let mut types = 0;
    let shipped: Vec<&RustFile> = workspace.sources.iter().filter(|file| !file.test_only).collect();
    for krate in &workspace.crates {
        let surfaces = surfaces(krate, &shipped);
        types += surfaces.len();
        for ((file, name), surface) in &surfaces {
            let (files, methods) = total(surface, &surfaces);
            if files > FILES_MAX || methods > METHODS_MAX {
                violations.push(Violation {
                    path: shipped[*file].path.clone(),
                    line: surface.line,
                    message: format!(
                        "`{name}` has {methods} methods in {files} files, {METHODS_MAX} in {FILES_MAX} are allowed"
                    ),
                    mend: "let parts of it own their fields and what is done with them".to_owned(),
                });
            }
        }
    }
    Ok(Outcome { violations, looked_at: format!("{types} types") })
}

/// Files and methods of a type, with those of what it dereferences to.
fn total(surface: &Surface, all: &BTreeMap<Definition, Surface>) -> (usize, usize) {
    let (mut files, mut methods) = (surface.files.clone(), surface.methods);
    for target in surface.derefs_to.iter().filter_map(|target| all.get(target)) {
        files.extend(&target.files);
        methods += target.methods;
    }
    (files.len(), methods)
}

fn surfaces(krate: &Crate, shipped: &[&RustFile]) -> BTreeMap<Definition, Surface> {
    let of_crate = shipped.iter().enumerate().filter(|(_, file)| krate.holds(&file.path));
    let files: Vec<(usize, Vec<Item>, &str)> = of_crate
        .map(|(number, file)| (number, flat(file.shipped().items), file.path.as_str()))
        .collect();
    let mut surfaces: BTreeMap<Definition, Surface> = BTreeMap::new();
    for (number, items, _) in &files {
        for (ident, line) in items.iter().filter_map(defined) {
            let surface = Surface { line, ..Surface::default() };
            surfaces.entry((*number, ident)).or_insert(surface);
        }
    }
    let mut names: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    for (number, name) in surfaces.keys() {
        let path = shipped[*number].path.as_str();
        names.entry(name.as_str()).or_default().push((*number, path));
    }
    let extending = traits_of_one_type(&files);
    let mut found = Vec::new();
    for (number, items, path) in &files {
        let resolver =
            Resolver { number: *number, path, names: &names, uses: uses(shipped[*number]) };
        for item in items {
            found.extend(calls(item, &resolver, &extending).map(|call| (*number, call)));
        }
    }
    for (file, (definition, call)) in found {
        let Some(surface) = surfaces.get_mut(&definition) else { continue };
        match call {
            Call::Methods(0) => {}
            Call::Methods(methods) => {
                surface.methods += methods;
                surface.files.insert(file);
            }
            Call::DerefTo(target) => surface.derefs_to.push(target),
        }
    }
    surfaces
}

/// Items, with those of inline modules; what stands in functions is theirs alone.
fn flat(items: Vec<Item>) -> Vec<Item> {
    let each = items.into_iter().flat_map(|item| match item {
        Item::Mod(module) => flat(module.content.map(|(_, items)| items).unwrap_or_default()),
        item => vec![item],
    });
    each.collect()
}

fn defined(item: &Item) -> Option<(String, usize)> {
    let ident = match item {
        Item::Struct(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some((ident.to_string(), ident.span().start().line))
}

/// Traits of a crate that one type alone implements: they extend it.
fn traits_of_one_type(files: &[(usize, Vec<Item>, &str)]) -> BTreeSet<String> {
    let items = || files.iter().flat_map(|(_, items, _)| items);
    let defined: BTreeSet<String> = items()
        .filter_map(|item| match item {
            Item::Trait(item) => Some(item.ident.to_string()),
            _ => None,
        })
        .collect();
    let mut implementors: BTreeMap<String, BTreeSet<Option<String>>> = BTreeMap::new();
    for item in items() {
        if let Item::Impl(item) = item
            && let Some((path, _)) = &item.trait_
            && let Some(name) = path.segments.last().map(|segment| segment.ident.to_string())
        {
            implementors.entry(name).or_default().insert(name_of(&item.self_ty));
        }
    }
    let extends = |name: &String| implementors.get(name).is_some_and(|types| types.len() == 1);
    defined.into_iter().filter(extends).collect()
}

/// What an item lets a type do.
enum Call {
    Methods(usize),
    DerefTo(Definition),
}

fn calls(
    item: &Item,
    resolver: &Resolver<'_>,
    extending: &BTreeSet<String>,
) -> impl Iterator<Item = (Definition, Call)> + use<> {
    let found = match item {
        Item::Impl(block) => calls_of_block(block, resolver, extending),
        Item::Fn(function) => match function.sig.inputs.first() {
            Some(FnArg::Typed(first)) => match &*first.ty {
                Type::Reference(reference) if reference.mutability.is_some() => {
                    resolver.of(&reference.elem).map(|definition| (definition, Call::Methods(1)))
                }
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    found.into_iter()
}

fn calls_of_block(
    block: &syn::ItemImpl,
    resolver: &Resolver<'_>,
    extending: &BTreeSet<String>,
) -> Option<(Definition, Call)> {
    let definition = resolver.of(&block.self_ty)?;
    let of_trait = block.trait_.as_ref().and_then(|(path, _)| path.segments.last());
    let of_trait = of_trait.map(|segment| segment.ident.to_string());
    if of_trait.as_deref() == Some("Deref") {
        let target = block.items.iter().find_map(|item| match item {
            ImplItem::Type(target) if target.ident == "Target" => resolver.of(&target.ty),
            _ => None,
        })?;
        return Some((definition, Call::DerefTo(target)));
    }
    if of_trait.is_some_and(|name| !extending.contains(&name)) {
        return None;
    }
    let methods = block.items.iter().filter(|item| matches!(item, ImplItem::Fn(_))).count();
    Some((definition, Call::Methods(methods)))
}

/// The name of a type without its references and parameters.
fn name_of(of: &Type) -> Option<String> {
    match of {
        Type::Reference(reference) => name_of(&reference.elem),
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    }
}

/// Paths that `use` brings into a file, by their last word.
fn uses(file: &RustFile) -> BTreeMap<String, Vec<String>> {
    let paths = named_paths(&file.syntax).into_iter().filter(|path| path.in_use);
    paths.filter_map(|path| Some((path.segments.last()?.clone(), path.segments))).collect()
}

/// Tells which type of a crate a file means by a name.
struct Resolver<'r> {
    number: usize,
    path: &'r str,
    names: &'r BTreeMap<&'r str, Vec<(usize, &'r str)>>,
    uses: BTreeMap<String, Vec<String>>,
}

impl Resolver<'_> {
    fn of(&self, of: &Type) -> Option<Definition> {
        let name = name_of(of)?;
        let places = self.names.get(name.as_str())?;
        if places.iter().any(|(number, _)| *number == self.number) {
            return Some((self.number, name));
        }
        let used = self.uses.get(&name);
        let first = used.and_then(|path| path.first());
        if first.is_some_and(|first| first.starts_with("dovetail_") || first == "std") {
            return None;
        }
        // The word before the name is a module, a folder of modules, or says nothing of the place.
        let module = used.and_then(|path| path.len().checked_sub(2).map(|at| &path[at]));
        let in_module = |path: &str| {
            module.is_some_and(|module| {
                path.trim_end_matches(".rs").split('/').any(|part| part == module)
            })
        };
        let shared = |path: &str| {
            path.split('/')
                .zip(self.path.split('/'))
                .take_while(|(left, right)| left == right)
                .count()
        };
        let nearest = places.iter().max_by_key(|(number, path)| {
            (in_module(path), shared(path), std::cmp::Reverse(*number))
        });
        nearest.map(|(number, _)| (*number, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> BTreeMap<String, (usize, usize)> {
        let files: Vec<RustFile> =
            files.iter().map(|(path, text)| RustFile::parse(path, text).unwrap()).collect();
        let krate = Crate { folder: "crates/a".to_owned(), ..Crate::default() };
        let surfaces = surfaces(&krate, &files.iter().collect::<Vec<_>>());
        let sizes = surfaces.iter().map(|((file, name), surface)| {
            (format!("{}:{name}", files[*file].path), total(surface, &surfaces))
        });
        sizes.collect()
    }

    #[test]
    fn what_can_be_called_on_a_type_counts_wherever_it_stands() {
        let found = found(&[
            ("crates/a/src/lib.rs", "pub struct T; impl T { fn new() {} fn a(&self) {} }"),
            (
                "crates/a/src/b.rs",
                "use crate::T; pub(crate) fn grow(t: &mut T) {} fn see(t: &T) {}",
            ),
            ("crates/a/src/c.rs", "trait Ext { fn c(&self); } impl Ext for T { fn c(&self) {} }"),
            ("crates/a/src/d.rs", "impl std::fmt::Display for T { fn fmt(&self) {} }"),
            ("crates/a/src/e.rs", "struct Outer(T); impl Deref for Outer { type Target = T; }"),
            ("crates/a/src/f.rs", "#[cfg(test)] mod tests { impl T { fn only_tested(&self) {} } }"),
        ]);
        assert_eq!(found["crates/a/src/lib.rs:T"], (3, 4));
        assert_eq!(found["crates/a/src/e.rs:Outer"], (3, 4));
    }

    #[test]
    fn a_trait_of_several_types_is_an_idea_of_its_own() {
        let text = "trait Shape { fn area(&self); } struct A; struct B; \
                    impl Shape for A { fn area(&self) {} } impl Shape for B { fn area(&self) {} }";
        assert_eq!(found(&[("crates/a/src/lib.rs", text)])["crates/a/src/lib.rs:A"], (0, 0));
    }

    #[test]
    fn types_of_one_name_are_told_apart_by_their_module() {
        let found = found(&[
            ("crates/a/src/x/row.rs", "pub struct Row; impl Row { fn a(&self) {} }"),
            ("crates/a/src/y/row.rs", "pub struct Row; impl Row { fn a(&self) {} }"),
            ("crates/a/src/x/more.rs", "use super::row::Row; impl Row { fn b(&self) {} }"),
            ("crates/a/src/z.rs", "use crate::y::Row; impl Row { fn c(&self) {} fn d(&self) {} }"),
            ("crates/a/src/w.rs", "use dovetail_model::Row; fn e(row: &mut Row) {}"),
        ]);
        assert_eq!(found["crates/a/src/x/row.rs:Row"], (2, 2));
        assert_eq!(found["crates/a/src/y/row.rs:Row"], (2, 3));
    }
}

//! Everything the rules look at, read once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

use super::source::{RustFile, mark_test_modules};
use crate::codegen::root;

/// The repository: its crates, the packages they use, its text files.
pub(super) struct Workspace {
    pub(super) crates: Vec<Crate>,
    pub(super) packages: Vec<Package>,
    pub(super) texts: Vec<TextFile>,
    pub(super) sources: Vec<RustFile>,
}

/// A crate of this repository.
#[derive(Clone, Debug, Default)]
pub(super) struct Crate {
    pub(super) name: String,
    /// Folder from the root of the repository, such as `crates/core/model`.
    pub(super) folder: String,
    pub(super) dependencies: Vec<Dependency>,
    /// Names of all packages in the normal and build dependencies, and theirs.
    pub(super) closure: BTreeSet<String>,
}

/// A dependency that a crate declares.
#[derive(Clone, Debug)]
pub(super) struct Dependency {
    /// Name as the manifest spells it.
    pub(super) name: String,
    pub(super) kind: DependencyKind,
}

/// A package of the lock file that comes from elsewhere.
#[derive(Clone, Debug)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) licence: Option<String>,
}

/// A file of text, with its path from the root of the repository.
#[derive(Clone, Debug)]
pub(super) struct TextFile {
    pub(super) path: String,
    pub(super) text: String,
}

impl Workspace {
    /// Reads the repository this program was built from.
    pub(super) fn load() -> Result<Self> {
        let root = root();
        let metadata = MetadataCommand::new()
            .current_dir(&root)
            .exec()
            .context("cargo metadata: does the workspace build?")?;
        let texts = read_texts(&root)?;
        let mut sources = Vec::new();
        for file in texts.iter().filter(|file| file.path.ends_with(".rs")) {
            sources.push(RustFile::parse(&file.path, &file.text)?);
        }
        mark_test_modules(&mut sources);
        let packages = metadata.packages.iter().filter(|package| package.source.is_some());
        let packages = packages.map(|package| Package {
            name: package.name.to_string(),
            version: package.version.to_string(),
            licence: package.license.clone(),
        });
        Ok(Self { crates: crates(&metadata), packages: packages.collect(), texts, sources })
    }

    /// The text of a file, by its path from the root.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.texts.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }
}

impl Crate {
    pub(super) fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.folder)
    }

    /// Whether a file belongs to this crate.
    pub(super) fn holds(&self, path: &str) -> bool {
        path.strip_prefix(&self.folder).is_some_and(|rest| rest.starts_with('/'))
    }
}

/// The first line, counted from 1, that declares a key in a manifest; 1 where none does.
pub(super) fn line_of_key(text: &str, key: &str) -> usize {
    let declares =
        |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
    text.lines().position(declares).map_or(1, |index| index + 1)
}

fn crates(metadata: &Metadata) -> Vec<Crate> {
    let mut crates: Vec<Crate> = metadata
        .workspace_packages()
        .into_iter()
        .map(|package| {
            let manifest = package.manifest_path.strip_prefix(&metadata.workspace_root);
            let folder = manifest.ok().and_then(|path| path.parent());
            let dependencies = package.dependencies.iter().map(|dependency| Dependency {
                name: dependency.rename.clone().unwrap_or_else(|| dependency.name.clone()),
                kind: dependency.kind,
            });
            Crate {
                name: package.name.to_string(),
                folder: folder.map(ToString::to_string).unwrap_or_default(),
                dependencies: dependencies.collect(),
                closure: closure(metadata, &package.id.repr),
            }
        })
        .collect();
    crates.sort_by(|left, right| left.folder.cmp(&right.folder));
    crates
}

/// Names of all packages reached from one over normal and build dependencies.
fn closure(metadata: &Metadata, from: &str) -> BTreeSet<String> {
    let names: BTreeMap<&str, &str> = metadata
        .packages
        .iter()
        .map(|package| (package.id.repr.as_str(), package.name.as_str()))
        .collect();
    let nodes = metadata.resolve.as_ref().map_or(&[][..], |resolve| &resolve.nodes);
    let mut reached = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(id) = open.pop() {
        for node in nodes.iter().filter(|node| node.id.repr == id) {
            for dependency in &node.deps {
                let dev =
                    |kind: &cargo_metadata::DepKindInfo| kind.kind == DependencyKind::Development;
                let id = dependency.pkg.repr.as_str();
                if !dependency.dep_kinds.iter().all(dev) && reached.insert(id) {
                    open.push(id);
                }
            }
        }
    }
    reached.remove(from);
    reached.into_iter().filter_map(|id| names.get(id)).map(|name| (*name).to_owned()).collect()
}

/// All text files that git tracks or would track; a file that is not UTF-8 is not text.
fn read_texts(root: &Path) -> Result<Vec<TextFile>> {
    // Root may check a clone that a user owns: the code in it is being run anyway.
    let output = Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "-z"])
        .args(["--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("start git, which lists the files of the repository: install git")?;
    ensure!(
        output.status.success(),
        "`git ls-files` failed: run this in a clone of the repository"
    );
    let paths = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    let paths: BTreeSet<&str> = paths.split('\0').filter(|path| !path.is_empty()).collect();
    let mut texts = Vec::new();
    for path in paths {
        let full = root.join(path);
        // A tracked file that was deleted and not committed yet is listed too.
        if !full.is_file() {
            continue;
        }
        let bytes = std::fs::read(&full).with_context(|| format!("read {path}"))?;
        if let Ok(text) = String::from_utf8(bytes) {
            texts.push(TextFile { path: path.to_owned(), text });
        }
    }
    Ok(texts)
}

//! Where built programs are kept, and how two runs do not build the same at once.
//!
//! A module's folder is named after its version and a hash of everything that it is built from, so
//! a changed pin never meets an old program. A folder appears under its name only when it is
//! complete.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::BuildError;
use super::compile::compile;
use super::module::{Module, Pins};

/// The folder that holds the programs of a module, which is built where the folder is missing.
pub(super) fn folder_with(
    module: &Module,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, BuildError> {
    folder_below(&root()?, module, progress, compile)
}

/// As [`folder_with`], below a given folder and with a given way to build.
fn folder_below(
    root: &Path,
    module: &Module,
    progress: &mut dyn FnMut(&str),
    build: impl FnOnce(&Module, &Pins, &Path, &mut dyn FnMut(&str)) -> Result<(), BuildError>,
) -> Result<PathBuf, BuildError> {
    let pins = module.pins()?;
    let key = key(&module.source())?;
    let name = format!("{}-{}-{key}", module.name, pins.version);
    let folder = root.join(&name);
    if folder.is_dir() {
        return Ok(folder);
    }
    fs::create_dir_all(root).map_err(BuildError::file(root))?;
    let _lock = lock(&root.join(format!("{}.lock", module.name)), module, progress)?;
    // Another run may have built it while this one waited.
    if folder.is_dir() {
        return Ok(folder);
    }
    let partial = root.join(format!("{name}.partial"));
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(BuildError::file(&partial))?;
    }
    fs::create_dir(&partial).map_err(BuildError::file(&partial))?;
    build(module, &pins, &partial, progress)?;
    fs::rename(&partial, &folder).map_err(BuildError::file(&folder))?;
    Ok(folder)
}

/// Takes the lock of a module. The system gives it back when this process ends, however it ends.
fn lock(path: &Path, module: &Module, progress: &mut dyn FnMut(&str)) -> Result<File, BuildError> {
    let file = File::create(path).map_err(BuildError::file(path))?;
    if file.try_lock().is_err() {
        progress(&format!("another run is building {}: waiting for it", module.name));
        file.lock().map_err(BuildError::file(path))?;
    }
    Ok(file)
}

/// `$DOVETAIL_K8S_BIN`, else `dovetail/cluster` in the user's cache folder.
fn root() -> Result<PathBuf, BuildError> {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(chosen) = folder("DOVETAIL_K8S_BIN") {
        // Go runs in another folder than this process.
        return std::path::absolute(&chosen).map_err(BuildError::file(&chosen));
    }
    let caches = folder("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let caches = caches.or_else(|| folder("HOME").map(|home| home.join(".cache")));
    Ok(caches.ok_or(BuildError::NoCache)?.join("dovetail/cluster"))
}

/// Sixteen hexadecimal digits that stand for every file that Go reads in a folder. What lies in a
/// folder with a `go.mod` of its own belongs to another module.
fn key(source: &Path) -> Result<String, BuildError> {
    let mut hash = Sha256::new();
    let mut open = vec![source.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).map_err(BuildError::file(&folder))? {
            let path = entry.map_err(BuildError::file(&folder))?.path();
            if path.is_dir() {
                if !path.join("go.mod").exists() {
                    open.push(path);
                }
            } else if matches!(
                path.extension().and_then(|name| name.to_str()),
                Some("go" | "mod" | "sum")
            ) {
                files.push(path);
            }
        }
    }
    files.sort();
    for path in files {
        let text = fs::read(&path).map_err(BuildError::file(&path))?;
        let name = path.strip_prefix(source).unwrap_or(&path).to_string_lossy().into_owned();
        hash.update(format!("{name} {}\n", text.len()));
        hash.update(text);
    }
    Ok(hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::super::module::ETCD;
    use super::*;

    #[test]
    fn runs_that_meet_build_once_and_a_failed_build_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let failing = |_: &Module, _: &Pins, folder: &Path, _: &mut dyn FnMut(&str)| {
            fs::write(folder.join("half"), "").unwrap();
            Err(BuildError::NoCache)
        };
        assert!(folder_below(root.path(), &ETCD, &mut |_| {}, failing).is_err());

        let built = AtomicU32::new(0);
        let ask = || {
            folder_below(root.path(), &ETCD, &mut |_| {}, |_, _, folder, _| {
                built.fetch_add(1, Ordering::SeqCst);
                fs::write(folder.join("etcd"), "").unwrap();
                Ok(())
            })
            .unwrap()
        };
        let folders: Vec<PathBuf> = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            asking.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(built.load(Ordering::SeqCst), 1);
        assert!(folders.iter().all(|folder| folder.join("etcd").is_file()));
        assert!(!folders[0].join("half").exists());
    }

    #[test]
    fn any_changed_pin_changes_the_key() {
        let source = tempfile::tempdir().unwrap();
        let mut keys = Vec::new();
        for (file, text) in [("go.mod", "a"), ("go.sum", "a"), ("go.mod", "b"), ("main.go", "")] {
            fs::write(source.path().join(file), text).unwrap();
            keys.push(key(source.path()).unwrap());
        }
        fs::write(source.path().join("notes.txt"), "no part of the build").unwrap();
        let inner = source.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("go.mod"), "another module").unwrap();
        assert_eq!(keys.last(), Some(&key(source.path()).unwrap()));
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 4);
    }
}

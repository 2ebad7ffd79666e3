//! Files of one command that must not be the same: nothing that is read is overwritten, nothing
//! written is lost.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use dovetail_settings::errors::UsageError;

/// A file by the flag that names it.
pub type Named<'f> = (&'static str, Option<&'f Path>);

/// Refuses outputs that are one file, or that would replace an input. Two names are one file if
/// they lead to the same place, through links too.
///
/// # Errors
/// Names the two flags and the file.
pub fn refuse_shared(inputs: &[Named<'_>], outputs: &[Named<'_>]) -> Result<()> {
    let there = |files: &[Named<'_>]| -> Vec<(&'static str, PathBuf)> {
        let given = files.iter().filter_map(|(flag, path)| Some((*flag, place((*path)?))));
        given.collect()
    };
    let (inputs, written) = (there(inputs), there(outputs));
    for (number, (flag, place)) in written.iter().enumerate() {
        let mut others = inputs.iter().chain(&written[..number]);
        if let Some((other, _)) = others.find(|(_, other)| is_same(other, place)) {
            let given = outputs.iter().find_map(|(name, path)| path.filter(|_| name == flag));
            let file = given.unwrap_or(place).display();
            let text = format!("{other} and {flag} both name {file}: use two different files");
            return Err(UsageError(text).into());
        }
    }
    Ok(())
}

/// Where a name leads, also where nothing stands yet.
fn place(path: &Path) -> PathBuf {
    if let Ok(place) = fs::canonicalize(path) {
        return place;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = fs::canonicalize(folder.unwrap_or(Path::new(".")));
    match (folder, path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

/// Only files that keep what is written can lose it: a terminal or a pipe may be named twice.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other && (!one.exists() || one.is_file())
}

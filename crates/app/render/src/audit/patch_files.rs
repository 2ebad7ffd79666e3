//! `dovetail audit --patches DIR`: each patch as a file for kubectl, each changed part of a source
//! as YAML, and an index that says what each of them restarts.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use dovetail_auditing::document::{Document, FindingOut, object_words};
use dovetail_auditing::patch::PatchOut;
use dovetail_console::plain::plain;
use dovetail_settings::errors::UsageError;

use crate::text::markdown as safe;

/// Letters of an object's name in the name of a file.
const MOST_LETTERS: usize = 80;

const INDEX: &str = "index.md";

/// Refuses a folder that holds something, before long work; makes one that is missing.
///
/// # Errors
/// Names the folder, and what is in it.
pub fn check(folder: &Path) -> Result<()> {
    let name = folder.display();
    fs::create_dir_all(folder)
        .with_context(|| format!("--patches {name}: cannot make the folder"))?;
    let mut files = fs::read_dir(folder)
        .with_context(|| format!("--patches {name}: cannot read the folder"))?;
    match files.next() {
        None => Ok(()),
        Some(file) => {
            let file = file.map(|file| file.file_name()).unwrap_or_default();
            let file = file.to_string_lossy();
            let text =
                format!("--patches {name}: `{file}` is in it: name a new or an empty folder");
            Err(UsageError(plain(&text)).into())
        }
    }
}

/// Writes all patches; answers with their number.
///
/// # Errors
/// Names the file that cannot be written.
pub fn write(folder: &Path, document: &Document) -> Result<usize> {
    let put = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("{}: cannot be written", path.display()))
    };
    let mut index = format!(
        "# Patches\n\nOf the audit of {}. Read a patch before you apply it; commands are for this folder. \
         A patch that the server refuses (conflict, test failed) was made for an object that has changed since: audit \
         again. `.yaml` is the part of the object's own source that changes, `null` in it removes a field.\n",
        document.taken_at
    );
    let mut number = 0;
    for finding in &document.findings {
        for patch in &finding.patches {
            number += 1;
            let base = base_name(number, finding, patch);
            let file = format!("{base}.json");
            if let Some(body) = &patch.body {
                put(&file, &format!("{}\n", body.get()))?;
            }
            let source = patch.yaml().map(|yaml| (format!("{base}.yaml"), yaml));
            if let Some((name, yaml)) = &source {
                put(name, yaml)?;
            }
            let source = source.as_ref().map(|(name, _)| name.as_str());
            index += &entry(number, finding, patch, &file, source);
        }
    }
    put(INDEX, &index)?;
    Ok(number)
}

fn entry(
    number: usize,
    finding: &FindingOut,
    patch: &PatchOut,
    file: &str,
    source: Option<&str>,
) -> String {
    let object = safe(&object_words(&patch.object));
    let mut text = format!("\n## {number}. {} {object}\n\n", finding.check.id);
    text += &format!("{}: {}\n\n", safe(finding.title), patch.words());
    text += &format!("- restarts or evicts: {}\n", safe(&patch.restarts));
    for warning in &patch.warnings {
        text += &format!("- **{}**\n", safe(warning));
    }
    if let Some(source) = source {
        text += &format!("- in the source: {}\n", safe(source));
    }
    match patch.patch.command(Some(file)) {
        Some(command) => text + &format!("\n```\n{command}\n```\n"),
        None => text + "- nothing to run: the change belongs into the object's source\n",
    }
}

/// Number, check and object: what a file is about can be seen in a listing.
fn base_name(number: usize, finding: &FindingOut, patch: &PatchOut) -> String {
    let object = &patch.object;
    let parts = [object.kind.as_str(), &object.namespace, &object.name];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let name: String = parts.join("-").chars().take(MOST_LETTERS).collect();
    format!("{number:03}-{}-{}", finding.check.id, name.replace(':', "_"))
}

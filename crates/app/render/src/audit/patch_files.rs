//! `dovetail audit --patches FOLDER`: each patch as a file for kubectl, each changed part of a
//! source as YAML, and an index of what each of them restarts and risks.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};
use dovetail_auditing::document::{Document, FindingOut};
use dovetail_auditing::patch::{PatchOut, WithheldOut};
use dovetail_auditing::words::object_words;
use dovetail_console::plain::plain;
use dovetail_settings::errors::UsageError;

use crate::text::markdown as safe;

/// Letters of an object's name in the name of a file.
const MOST_LETTERS: usize = 80;

const INDEX: &str = "index.md";

/// What holds after each patch, and what nothing is known of.
const CHECKED: &str = "each pod then still has a node that accepts it by selectors, node \
                       affinity, taints and resources, and pods that must move have room. \
                       Actions of other controllers are not checked.";

/// Refuses a folder that holds something, before long work. One that is missing is made by
/// [`write()`], so that an interrupted audit leaves none behind.
///
/// # Errors
/// Names the folder, and what is in it.
pub fn check(folder: &Path) -> Result<()> {
    let name = folder.display();
    let mut files = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        files => files.with_context(|| {
            format!(
                "--patches {name}: cannot read the folder; pass the path of a new or empty folder"
            )
        })?,
    };
    match files.next() {
        None => Ok(()),
        Some(file) => {
            let file = file.map(|file| file.file_name()).unwrap_or_default();
            let file = file.to_string_lossy();
            let text = format!(
                "--patches {name}: the folder contains `{file}`: pass the path of a new or empty \
                 folder"
            );
            Err(UsageError(plain(&text)).into())
        }
    }
}

/// Writes all patches, into a folder that is made if it is missing; answers with their number.
///
/// # Errors
/// Names the folder or the file that cannot be written.
pub fn write(folder: &Path, document: &Document) -> Result<usize> {
    fs::create_dir_all(folder).with_context(|| {
        let name = folder.display();
        format!(
            "--patches {name}: cannot create the folder; pass the path of a new or empty folder"
        )
    })?;
    let put = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("{}: cannot be written", path.display()))
    };
    let mut index = format!(
        "# Patches\n\nFrom the audit of {}. Apply them in this order. You can stop after any \
         patch: {CHECKED} Read a patch before you apply it; run the commands in this folder. If the API \
         server rejects a patch (conflict, test failed), the object has changed: run the audit \
         again. A `.yaml` file is the part of the object's own source that changes; `null` in it \
         removes a field.\n",
        document.taken_at
    );
    index += &not_checked(document);
    let all = document.findings.iter();
    let all = all.flat_map(|finding| finding.patches.iter().map(move |patch| (finding, patch)));
    let mut all: Vec<(&FindingOut, &PatchOut)> = all.collect();
    all.sort_by_key(|(_, patch)| patch.order);
    let number = all.len();
    for (place, (finding, patch)) in all.into_iter().enumerate() {
        let base = base_name(place + 1, finding, patch);
        let file = format!("{base}.json");
        if let Some(body) = &patch.body {
            put(&file, &format!("{}\n", body.get()))?;
        }
        let source = patch.yaml().map(|yaml| (format!("{base}.yaml"), yaml));
        if let Some((name, yaml)) = &source {
            put(name, yaml)?;
        }
        let source = source.as_ref().map(|(name, _)| name.as_str());
        index += &entry(place + 1, finding, patch, &file, source);
    }
    index += &withheld(document);
    put(INDEX, &index)?;
    Ok(number)
}

/// What the patches could not be checked against.
fn not_checked(document: &Document) -> String {
    let what: Vec<String> = document.unseen.iter().map(|unseen| safe(&unseen.what)).collect();
    match what.is_empty() {
        true => String::new(),
        false => format!(
            "\nThe audit did not see the following, so the patches are not checked against it: {}.\n",
            what.join("; ")
        ),
    }
}

/// Changes that would do harm, with what comes first.
fn withheld(document: &Document) -> String {
    let all = document.findings.iter();
    let all = all.flat_map(|finding| finding.withheld.iter().map(move |of| (finding, of)));
    let line = |(finding, of): (&FindingOut, &WithheldOut)| {
        let object = safe(&finding.object_words());
        format!("- {} {object}: {}\n", finding.check.id, safe(&of.words()))
    };
    match all.map(line).collect::<String>() {
        lines if lines.is_empty() => lines,
        lines => format!("\n## Patches not written\n\n{lines}"),
    }
}

fn entry(
    number: usize,
    finding: &FindingOut,
    patch: &PatchOut,
    file: &str,
    source: Option<&str>,
) -> String {
    let object = safe(&object_words(&patch.object));
    let mut text = format!("\n## {number}. {} {object}\n\n", patch.fixes.join(", "));
    text += &format!("{}: {}\n\n", safe(finding.title), patch.words());
    text += &format!("- effect on pods: {}\n", safe(&patch.restarts));
    for warning in &patch.warnings {
        text += &format!("- **{}**\n", safe(warning));
    }
    if let Some(source) = source {
        text += &format!("- for your chart or manifest: {}\n", safe(source));
    }
    match patch.patch.command(Some(file)) {
        Some(command) => text + &format!("\n```\n{command}\n```\n"),
        None => text + "- no command: change the object's source\n",
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

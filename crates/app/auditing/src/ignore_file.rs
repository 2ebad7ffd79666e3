//! The file of findings that somebody ignores.

use std::path::Path;

use anyhow::{Context, Result};
use dovetail_audit::{AuditReport, Finding, Suppression, SuppressionPolicy, check};
use dovetail_console::plain::plain_sentence;
use dovetail_facts::ObjectRef;
use dovetail_settings::errors::BadInput;
use dovetail_settings::toml_file::TomlFile;
use serde::Deserialize;

use super::baseline::{object as object_out, object_words};

/// As written, in TOML.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct IgnoreFile {
    /// Checks that nobody may ignore, also by annotation.
    #[serde(default)]
    never: Vec<String>,
    #[serde(default)]
    ignore: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    check: String,
    /// `Kind namespace/name`, or `Kind name`; without it every object.
    object: Option<String>,
    reason: String,
}

/// Reads the file.
pub fn read(path: &Path) -> Result<SuppressionPolicy> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("--ignore-file {name}: cannot read the file"))?;
    parse(&text, &name).map_err(|problem| BadInput(format!("--ignore-file {problem}")).into())
}

/// The same of text; `name` is the file in messages.
///
/// # Errors
/// Names the file, and the line or entry that makes no sense.
pub fn parse(text: &str, name: &str) -> Result<SuppressionPolicy, String> {
    let text = TomlFile::of(name, text);
    let file: IgnoreFile = text.parse("ignore").map_err(|error| error.0)?;
    let known = |id: &str| match check(id) {
        Some(check) => Ok(check.id.to_owned()),
        None => {
            Err(format!("{name}: `{id}` is not a check; `audit --explain all` lists all checks"))
        }
    };
    let mut policy = SuppressionPolicy::default();
    for id in &file.never {
        policy.never.insert(known(id)?);
    }
    for (number, entry) in file.ignore.iter().enumerate() {
        if entry.reason.trim().is_empty() {
            let number = number + 1;
            return Err(format!(
                "{name}: entry {number}: `reason` is empty; state why the finding is ignored"
            ));
        }
        policy.suppressions.push(Suppression {
            check: known(&entry.check)?,
            object: entry.object.as_deref().map(|text| object(text, name)).transpose()?,
            by: format!("{name}, entry {}", number + 1),
            why: entry.reason.clone(),
        });
    }
    Ok(policy)
}

/// Entries that no finding is of, in words: what they name may be misspelt, or mended.
pub fn without_effect(policy: &SuppressionPolicy, report: &AuditReport) -> Vec<String> {
    let is_of = |entry: &Suppression, finding: &Finding| {
        let is_object = entry.object.as_ref().is_none_or(|object| *object == finding.object);
        is_object && entry.check.eq_ignore_ascii_case(finding.check.id)
    };
    let told = policy.suppressions.iter().filter_map(|entry| {
        let Suppression { check, object, by, .. } = entry;
        if policy.never.contains(check) {
            let text = format!(
                "{by}: the file also lists {check} under `never`: remove one of the two entries"
            );
            return Some(plain_sentence(&text));
        }
        if report.findings.iter().any(|priced| is_of(entry, &priced.finding)) {
            return None;
        }
        let of = object.as_ref().map(|of| format!(" of {}", object_words(&object_out(of))));
        let of = of.unwrap_or_default();
        Some(plain_sentence(&format!(
            "{by}: no finding {check}{of} exists, so this entry has no effect"
        )))
    });
    told.collect()
}

fn object(text: &str, name: &str) -> Result<ObjectRef, String> {
    let problem = || {
        format!(
            "{name}: `{text}` is not an object; write `Deployment prod/serve` or `NodePool h100`"
        )
    };
    let (kind, rest) = text.split_once(' ').ok_or_else(problem)?;
    let (namespace, object) = rest.split_once('/').unwrap_or(("", rest));
    match kind.is_empty() || object.is_empty() {
        true => Err(problem()),
        false => Ok(ObjectRef::new(kind, namespace, object)),
    }
}

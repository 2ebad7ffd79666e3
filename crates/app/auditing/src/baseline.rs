//! An earlier audit, to compare with.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use dovetail_console::plain::plain;
use dovetail_facts::ObjectRef;
use dovetail_settings::errors::{BadInput, UsageError};
use dovetail_units::place::bad_json;
use serde::{Deserialize, Serialize};

/// Name and version of the form.
pub const SCHEMA: &str = "dovetail-audit/1";

/// Findings of an earlier audit by what they are about.
#[derive(Debug)]
pub struct Baseline {
    pub taken_at: String,
    pub findings: BTreeMap<(String, BaselineObject), Worth>,
}

/// What a finding came to.
#[derive(Clone, Copy, Debug)]
pub struct Worth {
    pub usd_micros_per_month: Option<i64>,
    pub gpu_hours_per_month: Option<f64>,
}

/// An object, as in the JSON of an audit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BaselineObject {
    pub kind: String,
    #[serde(default)]
    pub namespace: String,
    #[serde(default)]
    pub name: String,
}

/// An object of the facts, harmless to show.
pub fn object(of: &ObjectRef) -> BaselineObject {
    BaselineObject { kind: plain(&of.kind), namespace: plain(&of.namespace), name: plain(&of.name) }
}

/// An object as people write it.
pub fn object_words(object: &BaselineObject) -> String {
    let slash = if object.namespace.is_empty() { "" } else { "/" };
    format!("{} {}{slash}{}", object.kind, object.namespace, object.name).trim_end().to_owned()
}

#[derive(Deserialize)]
struct File {
    schema: String,
    taken_at: String,
    /// The only namespace whose findings it has.
    namespace: Option<String>,
    findings: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    object: BaselineObject,
    usd_micros_per_month: Option<i64>,
    gpu_hours_per_month: Option<f64>,
}

/// Reads what `dovetail audit --output json` wrote, to compare it with an audit that shows the
/// findings of one namespace, or all of them. A baseline of one namespace is refused for another
/// audit: every finding elsewhere would be new.
pub fn read(path: &Path, shown: Option<&str>) -> Result<Baseline> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("--baseline {name}: cannot read the file"))?;
    let bad = |problem: String| BadInput(format!("--baseline {name}: {problem}"));
    let file: File = serde_json::from_str(&text).map_err(|error| {
        let told = bad_json(&name, 1, "not an audit report", &error.to_string());
        BadInput(format!("--baseline {told}; create it with `dovetail audit -o json`"))
    })?;
    if file.schema != SCHEMA {
        return Err(bad(format!("schema `{}` is not {SCHEMA}", plain(&file.schema))).into());
    }
    if let Some(only) = file.namespace.as_deref().map(plain)
        && shown.map(plain).as_ref() != Some(&only)
    {
        return Err(UsageError(format!(
            "--baseline {name}: the file has only the findings of namespace {only}: add \
             `-n {only}`, or create a baseline of all namespaces with `dovetail audit -o json`"
        ))
        .into());
    }
    let one = |entry: Entry| {
        let BaselineObject { kind, namespace, name } = entry.object;
        let object =
            BaselineObject { kind: plain(&kind), namespace: plain(&namespace), name: plain(&name) };
        let worth = Worth {
            usd_micros_per_month: entry.usd_micros_per_month,
            gpu_hours_per_month: entry.gpu_hours_per_month,
        };
        ((plain(&entry.id), object), worth)
    };
    Ok(Baseline {
        taken_at: plain(&file.taken_at),
        findings: file.findings.into_iter().map(one).collect(),
    })
}

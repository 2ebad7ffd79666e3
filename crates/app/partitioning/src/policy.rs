//! What may be changed, from a `SharingPolicy` in a file.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use dovetail_console::plain::plain;
use dovetail_model::MigTable;
use dovetail_settings::errors::BadInput;
use serde::Deserialize;

/// What may be changed of which nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Labels that a node must have; no labels: every node.
    pub node_selector: BTreeMap<String, String>,
    /// Profiles that may be created; none: all.
    pub profiles: Vec<String>,
    /// Free GPUs of each model that stay whole.
    pub keep_whole: u32,
    /// Whether whole GPUs may be put into MIG mode.
    pub allow_mode_change: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Object {
    #[serde(default)]
    api_version: String,
    kind: String,
    #[serde(default, rename = "metadata")]
    _metadata: serde_json::Value,
    #[serde(default, rename = "status")]
    _status: serde_json::Value,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    #[serde(default)]
    node_selector: BTreeMap<String, String>,
    mode: String,
    #[serde(default)]
    profiles: Vec<String>,
    #[serde(default)]
    keep_whole: u32,
    #[serde(default)]
    allow_mode_change: bool,
    #[serde(default)]
    moves: Option<String>,
    /// A plan writes nothing.
    #[serde(default, rename = "apply")]
    _apply: bool,
}

/// Reads a policy.
///
/// # Errors
/// A file that cannot be read, or a field with the rule it breaks.
pub fn read(path: &Path, tables: &[MigTable]) -> Result<Policy> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{}: cannot be read", path.display()))?;
    let wrong = |problem: String| BadInput(format!("{}: {}", path.display(), plain(&problem)));
    let mut json = serde_json::Deserializer::from_str(&text);
    let object: Object = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = error.path().to_string();
        let problem = error.into_inner();
        wrong(format!(
            "line {}: field `{field}`: {problem}; write JSON, for example with `kubectl create \
             --dry-run=client -o json -f policy.yaml`",
            problem.line()
        ))
    })?;
    policy(object, tables).map_err(|problem| wrong(problem).into())
}

fn policy(object: Object, tables: &[MigTable]) -> Result<Policy, String> {
    if object.kind != "SharingPolicy" || !object.api_version.starts_with("dovetail.dev/") {
        let (version, kind) = (object.api_version, object.kind);
        return Err(format!(
            "field `kind`: `{version} {kind}`: expected a dovetail.dev SharingPolicy"
        ));
    }
    let spec = object.spec;
    if spec.mode != "mig" {
        let mode = spec.mode;
        return Err(format!("field `spec.mode`: `{mode}`: layouts are planned for mode `mig`"));
    }
    if let Some(moves) = spec.moves.filter(|moves| moves != "never") {
        return Err(format!("field `spec.moves`: `{moves}`: no pods are moved yet: write `never`"));
    }
    for (number, name) in spec.profiles.iter().enumerate() {
        if tables.iter().all(|table| table.profile(name).is_none()) {
            return Err(format!("field `spec.profiles[{number}]`: no GPU has a profile `{name}`"));
        }
    }
    Ok(Policy {
        node_selector: spec.node_selector,
        profiles: spec.profiles,
        keep_whole: spec.keep_whole,
        allow_mode_change: spec.allow_mode_change,
    })
}

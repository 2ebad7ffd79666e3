//! What may be changed, from a `SharingPolicy` in a file.

use std::path::Path;

use anyhow::{Context, Result};
use dovetail_console::plain::plain;
use dovetail_model::MigTable;
use dovetail_settings::errors::BadInput;
use dovetail_sharing::{Mode, PolicySpec, SharingPolicy, of_spec};
use dovetail_units::place::{FilePosition, bad_json};
use serde::Deserialize;

/// The version of the API that is read.
pub(crate) const VERSION: &str = "dovetail.dev/v1alpha1";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Object {
    #[serde(default)]
    api_version: String,
    kind: String,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default, rename = "status")]
    _status: serde_json::Value,
    spec: PolicySpec,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
}

/// Reads a policy.
///
/// # Errors
/// A file that cannot be read, or a field with the rule it breaks.
pub fn read(path: &Path, tables: &[MigTable]) -> Result<SharingPolicy> {
    let policy = read_any(path, tables)?;
    if policy.name.is_empty() {
        let problem = "field `metadata.name`: missing: name the policy, as in \
                       {\"metadata\": {\"name\": \"shared\"}}; nodes record it with each change";
        return Err(BadInput(format!("{}: {problem}", plain(&path.display().to_string()))).into());
    }
    Ok(policy)
}

/// A policy that may have no name.
fn read_any(path: &Path, tables: &[MigTable]) -> Result<SharingPolicy> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{}: cannot be read", path.display()))?;
    let name = path.display().to_string();
    let wrong = |problem: String| BadInput(format!("{name}: {}", plain(&problem)));
    let object = match text.trim_start().starts_with('{') {
        true => from_json(&name, &text),
        false => from_yaml(&name, &text),
    };
    let object = object.map_err(|problem| BadInput(plain(&problem)))?;
    policy(object, tables).map_err(|problem| wrong(problem).into())
}

fn from_json(name: &str, text: &str) -> Result<Object, String> {
    let mut json = serde_json::Deserializer::from_str(text);
    let object = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        // Without a field, the text itself is wrong.
        let what = match error.path().to_string().as_str() {
            "." | "?" => "invalid JSON".to_owned(),
            field => format!("field `{field}`"),
        };
        bad_json(name, 1, &what, &error.into_inner().to_string())
    })?;
    let after =
        |error: serde_json::Error| bad_json(name, 1, "text after the policy", &error.to_string());
    json.end().map_err(after)?;
    Ok(object)
}

fn from_yaml(name: &str, text: &str) -> Result<Object, String> {
    serde_saphyr::from_str(text).map_err(|error| {
        let line = error.location().map_or(1, |at| at.line());
        let place = FilePosition::line(name, line.max(1));
        // The reader of YAML knows the line, and that of its value the field.
        let value = serde_saphyr::from_str::<serde_json::Value>(text).ok();
        match value.map(serde_path_to_error::deserialize::<_, Object>) {
            Some(Err(of_field)) if of_field.path().iter().next().is_some() => {
                let field = of_field.path().to_string();
                format!("{place}: field `{field}`: {}", of_field.into_inner())
            }
            _ => format!("{place}: invalid YAML: {}", error.without_snippet()),
        }
    })
}

/// Reads a policy to plan MIG layouts with.
///
/// # Errors
/// As [`read`]; a policy of another mode.
pub fn read_mig(path: &Path, tables: &[MigTable]) -> Result<PolicySpec> {
    let spec = read_any(path, tables)?.spec;
    if spec.mode != Mode::Mig {
        let problem = format!(
            "{}: field `spec.mode`: `{}`: only mode `mig` has layouts to plan; to see what another mode changes, \
             run `dovetail partition apply --dry-run --policy FILE`",
            path.display(),
            spec.mode.word()
        );
        return Err(BadInput(problem).into());
    }
    Ok(spec)
}

fn policy(object: Object, tables: &[MigTable]) -> Result<SharingPolicy, String> {
    if object.kind != "SharingPolicy" || object.api_version != VERSION {
        let (version, kind) = (object.api_version, object.kind);
        return Err(format!(
            "field `kind`: `{version} {kind}`: expected `{VERSION} SharingPolicy`"
        ));
    }
    let spec = object.spec;
    if let Some(problem) = of_spec(&spec, tables) {
        return Err(format!("field {problem}"));
    }
    let (name, uid) = (object.metadata.name, String::new());
    Ok(SharingPolicy { name, uid, spec, status: serde_json::Value::Null })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_to_apply_has_a_name_and_one_to_plan_with_needs_none() {
        let folder = std::env::temp_dir().join(format!("dovetail-policy-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("policy.json");
        let object = |metadata: &str| {
            format!(
                "{{\"apiVersion\": \"{VERSION}\", \"kind\": \"SharingPolicy\", \
                 \"metadata\": {metadata}, \"spec\": {{\"mode\": \"mig\"}}}}"
            )
        };
        std::fs::write(&file, object("{}")).expect("a file");
        let refused = read(&file, &[]).expect_err("no name").to_string();
        assert!(refused.contains("field `metadata.name`: missing"), "{refused}");
        assert!(read_mig(&file, &[]).is_ok());
        std::fs::write(&file, object("{\"name\": \"shared\"}")).expect("a file");
        assert_eq!(read(&file, &[]).expect("a policy").name, "shared");
        let yaml = |mode: &str| {
            format!(
                "apiVersion: {VERSION}\nkind: SharingPolicy\nmetadata:\n  name: shared\n\
                 spec:\n  mode: {mode}\n"
            )
        };
        std::fs::write(&file, yaml("mig")).expect("a file");
        let policy = read(&file, &[]).expect("a policy");
        assert_eq!((&*policy.name, policy.spec.mode), ("shared", Mode::Mig));
        std::fs::write(&file, yaml("cut")).expect("a file");
        let refused = read(&file, &[]).expect_err("no mode").to_string();
        assert!(refused.contains("policy.json:6: field `spec.mode`: unknown variant"), "{refused}");
        std::fs::write(&file, "kind: [SharingPolicy\n").expect("a file");
        let refused = read(&file, &[]).expect_err("no YAML").to_string();
        assert!(refused.contains(": invalid YAML: "), "{refused}");
        std::fs::remove_dir_all(&folder).expect("it is there");
    }
}

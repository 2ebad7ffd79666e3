//! What may be changed, from a `SharingPolicy` in a file.

use std::path::Path;

use anyhow::{Context, Result};
use dovetail_console::plain::plain_message;
use dovetail_model::MigTable;
use dovetail_settings::errors::BadInput;
use dovetail_sharing::{Mode, PolicySpec, SharingPolicy, of_spec};
use dovetail_units::place::{FilePosition, bad_json};
use serde::Deserialize;

use crate::field_line::line_of;

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

/// A file, for messages about what it says.
struct PolicyFile {
    name: String,
    text: String,
    is_json: bool,
}

impl PolicyFile {
    fn read(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("{name}: cannot be read"))?;
        let is_json = text.trim_start().starts_with('{');
        Ok(Self { name, text, is_json })
    }

    /// A policy that may have no name.
    fn policy(&self, tables: &[MigTable]) -> Result<SharingPolicy> {
        let object = match self.is_json {
            true => from_json(&self.name, &self.text),
            false => from_yaml(&self.name, &self.text),
        };
        let object = object.map_err(|problem| BadInput(plain_message(&problem)))?;
        policy(object, tables).map_err(|(field, why)| self.wrong(&field, &why))
    }

    /// A field with the rule that it breaks.
    fn wrong(&self, field: &str, why: &str) -> anyhow::Error {
        let place = FilePosition::line(&self.name, line_of(&self.text, self.is_json, field));
        BadInput(plain_message(&format!("{place}: field `{field}`: {why}"))).into()
    }
}

/// Reads a policy.
///
/// # Errors
/// A file that cannot be read, or a field with the rule it breaks.
pub fn read(path: &Path, tables: &[MigTable]) -> Result<SharingPolicy> {
    let file = PolicyFile::read(path)?;
    let policy = file.policy(tables)?;
    if policy.name.is_empty() {
        let why = "missing: name the policy, as in {\"metadata\": {\"name\": \"shared\"}}; nodes \
                   record it with each change";
        return Err(file.wrong("metadata.name", why));
    }
    Ok(policy)
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
        if matches!(error.without_snippet(), serde_saphyr::Error::MultipleDocuments { .. }) {
            return format!("{place}: several YAML documents: write each policy to its own file");
        }
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
    let file = PolicyFile::read(path)?;
    let spec = file.policy(tables)?.spec;
    if spec.mode != Mode::Mig {
        let why = format!(
            "`{}`: only mode `mig` has layouts to plan; to see what another mode changes, run \
             `dovetail partition apply --dry-run --policy FILE`",
            spec.mode.word()
        );
        return Err(file.wrong("spec.mode", &why));
    }
    Ok(spec)
}

/// # Errors
/// A field, and the rule that it breaks.
fn policy(object: Object, tables: &[MigTable]) -> Result<SharingPolicy, (String, String)> {
    if object.kind != "SharingPolicy" || object.api_version != VERSION {
        let (version, kind) = (object.api_version, object.kind);
        let why = format!("`{version} {kind}`: expected `{VERSION} SharingPolicy`");
        return Err(("kind".to_owned(), why));
    }
    let spec = object.spec;
    if let Some(problem) = of_spec(&spec, tables) {
        let told = problem.to_string();
        let field = problem.field().unwrap_or_else(|| "spec".to_owned());
        let why = told.strip_prefix(&format!("{field}: ")).unwrap_or(&told).to_owned();
        return Err((field, why));
    }
    let (name, uid) = (object.metadata.name, String::new());
    Ok(SharingPolicy { name, uid, spec, status: serde_json::Value::Null })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules of the CustomResourceDefinition, which no API server has checked.
    #[test]
    fn a_value_outside_the_rules_of_the_definition_is_refused_with_its_line() {
        let folder = std::env::temp_dir().join(format!("dovetail-rules-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let refused = |name: &str, text: String| {
            let file = folder.join(name);
            std::fs::write(&file, text).expect("a file");
            read_mig(&file, &[]).expect_err("a broken rule").to_string()
        };
        let labels = |count: usize| -> String {
            (0..count).map(|key| format!(" k{key}: v")).collect::<Vec<_>>().join(",")
        };
        let long = "x".repeat(4_097);
        for (field, value, told) in [
            ("budget: {percentPerDay", "0}", "`spec.budget.percentPerDay`: 0: must be 1 to 100"),
            ("budget: {percentPerDay", "101}", "`spec.budget.percentPerDay`: 101: must be 1"),
            ("keepWhole", "2000000", "`spec.keepWhole`: 2000000: must be 0 to 1000000"),
            ("waitMinutes", "1441", "`spec.waitMinutes`: 1441: must be 0 to 1440"),
            ("guard: {query", &format!("{long}}}"), "`spec.guard.query`: 4097 characters: must be"),
            (
                "nodeSelector",
                &format!("{{{}}}", labels(17)),
                "`spec.nodeSelector`: 17 keys: must be at most 16",
            ),
        ] {
            let head = format!("apiVersion: {VERSION}\nkind: SharingPolicy\n");
            let yaml = format!("{head}spec:\n  mode: mig\n  {field}: {value}\n");
            let error = refused("policy.yaml", yaml);
            assert!(error.contains(&format!("policy.yaml:5: field {told}")), "{error}");
        }
        // A message is not cut in the middle of what it lists.
        let field = "x".repeat(300);
        let head = format!("apiVersion: {VERSION}\nkind: SharingPolicy\n");
        let error = refused("policy.yaml", format!("{head}spec:\n  mode: mig\n  {field}: 1\n"));
        assert!(error.contains(&field) && error.contains("`apply`"), "{error}");
        let json = format!(
            "{{\"apiVersion\": \"{VERSION}\", \"kind\": \"SharingPolicy\",\n\"spec\": {{\"mode\": \
             \"mig\",\n\"budget\":\n{{\"percentPerDay\": 0}}}}}}"
        );
        let error = refused("policy.json", json);
        assert!(error.contains("policy.json:4: field `spec.budget.percentPerDay`: 0:"), "{error}");
        std::fs::remove_dir_all(&folder).expect("it is there");
    }

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
        std::fs::write(&file, format!("{}---\n{}", yaml("mig"), yaml("mig"))).expect("a file");
        let refused = read(&file, &[]).expect_err("two policies").to_string();
        assert!(refused.contains(": several YAML documents: write each policy"), "{refused}");
        std::fs::write(&file, "kind: [SharingPolicy\n").expect("a file");
        let refused = read(&file, &[]).expect_err("no YAML").to_string();
        assert!(refused.contains(": invalid YAML: "), "{refused}");
        std::fs::remove_dir_all(&folder).expect("it is there");
    }
}

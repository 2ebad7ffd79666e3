//! CustomResourceDefinitions of our own kinds: the envelope is the same for all of them.

use serde_json::{Value, json};

use crate::labels::DEFINITIONS;

/// What a CustomResourceDefinition says of one of our kinds. The schemas of `spec` and `status` are
/// derived ([`crate::structural()`]) from the types that read and write them.
pub struct Definition {
    /// The kind, such as `Queue`.
    pub kind: &'static str,
    /// Its plural, as in the path of a request.
    pub plural: &'static str,
    /// What an object of it is, for `kubectl explain`.
    pub description: &'static str,
    /// Columns of `kubectl get`: name, path and type of each.
    pub columns: &'static [(&'static str, &'static str, &'static str)],
    pub spec: Value,
    pub status: Value,
    /// Rules in CEL over the whole object, with the message to whoever breaks one.
    pub rules: &'static [(&'static str, &'static str)],
    /// Where the fields of `spec` stand in the code, and the chore that writes the manifest.
    pub source: (&'static str, &'static str),
}

impl Definition {
    /// The definition as an object.
    pub fn object(&self) -> Value {
        let column = |&(name, path, kind): &(&str, &str, &str)| json!({"name": name, "type": kind, "jsonPath": path});
        json!({
            "apiVersion": format!("{DEFINITIONS}/v1"),
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{}.dovetail.dev", self.plural)},
            "spec": {
                "group": "dovetail.dev",
                "names": {
                    "kind": self.kind,
                    "listKind": format!("{}List", self.kind),
                    "plural": self.plural,
                    "singular": self.kind.to_ascii_lowercase(),
                },
                "scope": "Cluster",
                "versions": [{
                    "name": "v1alpha1",
                    "served": true,
                    "storage": true,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": self.columns.iter().map(column).collect::<Vec<_>>(),
                    "schema": {"openAPIV3Schema": self.schema()},
                }],
            },
        })
    }

    /// The manifest: the definition as YAML, with a line that says what wrote it.
    pub fn manifest(&self) -> String {
        let (file, chore) = self.source;
        let yaml = yaml(&self.object());
        format!("# Written by `cargo xtask codegen {chore}`. Change {file}.\n{yaml}")
    }

    fn schema(&self) -> Value {
        let mut schema = json!({
            "type": "object",
            "description": self.description,
            "required": ["spec"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"type": "object"},
                "spec": self.spec,
                "status": self.status,
            },
        });
        if !self.rules.is_empty() {
            let rule = |&(rule, message): &(&str, &str)| json!({"rule": rule, "message": message});
            schema["x-kubernetes-validations"] = self.rules.iter().map(rule).collect();
        }
        schema
    }
}

/// An object as YAML. What the library cannot write stays JSON, which is YAML, too.
pub fn yaml(object: &Value) -> String {
    serde_saphyr::to_string(object).unwrap_or_else(|_| object.to_string())
}

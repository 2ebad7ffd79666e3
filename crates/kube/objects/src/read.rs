//! Reading one object so that a strange one is told apart and stops nothing.

use dovetail_units::place;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::field_path::field_path;
use super::json::nullable;
use super::meta::Meta;

/// An object with a field of another shape than its kind has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Error)]
#[error("{kind} {}{}: field `{field}`: {problem}", Of(&.meta.namespace), .meta.name)]
pub struct Strange {
    /// Kind, as manifests write it.
    pub kind: &'static str,
    /// What could be read of its name and identity.
    pub meta: Meta,
    /// The node a pod is bound to, if that could be read.
    pub node: Box<str>,
    /// Path of the first field that could not be read.
    pub field: String,
    pub problem: String,
}

/// A namespace and the slash behind it.
struct Of<'a>(&'a str);

impl std::fmt::Display for Of<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(out, "{}/", self.0) }
    }
}

/// Reads one object from its JSON.
pub fn read<T: DeserializeOwned>(kind: &'static str, json: &[u8]) -> Result<T, Box<Strange>> {
    serde_json::from_slice(json).map_err(|error| Box::new(explain(kind, json, &error)))
}

fn explain(kind: &'static str, json: &[u8], error: &serde_json::Error) -> Strange {
    let (meta, node) = skeleton(json);
    let (field, problem) = (field_path(json, error), without_position(error));
    Strange { kind, meta, node, field, problem }
}

/// What is wrong, without where: what the server sends is one line that nobody sees.
fn without_position(error: &serde_json::Error) -> String {
    place::without_position(&error.to_string()).0.to_owned()
}

/// What can be read of an object whatever the rest looks like: each part by itself.
fn skeleton(json: &[u8]) -> (Meta, Box<str>) {
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Identity {
        namespace: Option<Box<str>>,
        name: Option<Box<str>>,
        uid: Option<Box<str>>,
        resource_version: Option<Box<str>>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Spec {
        #[serde(deserialize_with = "nullable")]
        node_name: Box<str>,
    }
    let whole: serde_json::Value = serde_json::from_slice(json).unwrap_or_default();
    let part = |name: &str| whole.get(name).cloned().unwrap_or_default();
    let meta = serde_json::from_value::<Meta>(part("metadata")).unwrap_or_else(|_| {
        let identity: Identity = serde_json::from_value(part("metadata")).unwrap_or_default();
        Meta {
            namespace: identity.namespace.unwrap_or_default(),
            name: identity.name.unwrap_or_default(),
            uid: identity.uid.unwrap_or_default(),
            resource_version: identity.resource_version.unwrap_or_default(),
            ..Meta::default()
        }
    });
    let spec: Spec = serde_json::from_value(part("spec")).unwrap_or_default();
    (meta, spec.node_name)
}

//! Namespaces.

use serde::Deserialize;

use super::meta::Meta;

/// A namespace: affinity between pods may choose namespaces by label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Namespace {
    /// Name, identity, labels.
    #[serde(rename = "metadata")]
    pub meta: Meta,
}

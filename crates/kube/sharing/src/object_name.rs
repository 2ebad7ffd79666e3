//! The name of an object, as events and records have it.

use serde::{Deserialize, Serialize};

/// An object that events can be about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectName {
    pub api_version: String,
    pub kind: String,
    /// Empty for objects of the whole cluster.
    pub namespace: String,
    pub name: String,
    /// Empty if it is not known.
    pub uid: String,
}

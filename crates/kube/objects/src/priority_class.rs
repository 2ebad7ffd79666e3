//! Priority classes.

use serde::Deserialize;

use super::json::nullable;
use super::meta::Meta;

/// A named priority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PriorityClass {
    /// Name and identity.
    #[serde(rename = "metadata")]
    pub meta: Meta,
    /// Higher goes first.
    #[serde(deserialize_with = "nullable")]
    pub value: i32,
    /// Whether pods that name no class get this one.
    #[serde(deserialize_with = "nullable")]
    pub global_default: bool,
    /// `Never` or `PreemptLowerPriority`.
    #[serde(deserialize_with = "nullable")]
    pub preemption_policy: Box<str>,
}

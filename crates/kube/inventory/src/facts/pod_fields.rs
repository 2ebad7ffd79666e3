//! Fields that tell of pods, in whatever shape an object describes them: facts read them, and
//! collections keep them.

use dovetail_model::is_gpu_resource;
use serde_json::Value;

/// Whether resources of a container contain GPUs.
pub(crate) fn requests_gpus(resources: &Value) -> bool {
    let limits = resources["limits"].as_object();
    limits.is_some_and(|limits| limits.keys().any(|name| is_gpu_resource(name)))
}

/// Whether a status counts pods, or jobs of a set, that have succeeded.
pub(crate) fn has_succeeded(status: &Value) -> bool {
    match status {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            name == "succeeded" && value.as_u64().is_some_and(|count| count > 0)
                || has_succeeded(value)
        }),
        Value::Array(items) => items.iter().any(has_succeeded),
        _ => false,
    }
}

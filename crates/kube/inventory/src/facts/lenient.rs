//! Parts of objects, read as far as the audit needs them.

use dovetail_objects::field_path;
use serde::Deserialize;

use crate::dump::{RawObject, Skipped};

/// Reads a part of an object; what is wrong is told with its path.
pub(super) fn lenient<'a, T: Deserialize<'a>>(raw: &RawObject<'a>) -> Result<T, Skipped> {
    serde_json::from_str(raw.json)
        .map_err(|error| raw.skipped(&field_path(raw.json.as_bytes(), &error), &error.to_string()))
}

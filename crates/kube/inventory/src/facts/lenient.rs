//! Parts of objects, read as far as the audit needs them.

use serde::Deserialize;

use crate::dump::{RawObject, Skipped};

/// Reads a part of an object; what is wrong is told with its path.
pub(super) fn lenient<'a, T: Deserialize<'a>>(raw: &RawObject<'a>) -> Result<T, Skipped> {
    serde_json::from_str(raw.json).map_err(|_| {
        let mut input = serde_json::Deserializer::from_str(raw.json);
        match serde_path_to_error::deserialize::<_, T>(&mut input) {
            Err(error) => raw.skipped(&error.path().to_string(), &error.inner().to_string()),
            Ok(_) => raw.skipped(".", "there is text behind the object"),
        }
    })
}

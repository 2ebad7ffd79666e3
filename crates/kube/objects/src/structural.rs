//! Schemas of CustomResourceDefinitions, derived from the types that read and write the objects.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

/// The structural schema of a type: without references, `$schema` and titles, as the API server
/// wants it.
pub fn structural<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    RecursiveTransform(written_out).transform(&mut schema);
    schema.to_value()
}

/// A transform for the schema of a status: it is written as a whole, but a server takes one that
/// lacks fields.
pub fn none_required(schema: &mut Schema) {
    schema.remove("required");
}

/// Puts a description of several lines on one, and leaves out a default that is empty: a field that
/// is absent is read the same way.
fn written_out(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    let empty = [Value::Null, "".into(), Vec::<Value>::new().into(), Map::new().into()];
    if schema.get("default").is_some_and(|default| empty.contains(default)) {
        schema.remove("default");
    }
}

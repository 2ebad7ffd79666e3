//! The rules that the CustomResourceDefinition has for the values of `spec`. The API server checks
//! objects by them; policies in files are checked by the same schema here.
//!
//! Types, names and patterns are checked by the types that a policy is read into.

use std::sync::LazyLock;

use dovetail_objects::structural;
use serde_json::Value;

use crate::policy::PolicySpec;

static SCHEMA: LazyLock<Value> = LazyLock::new(structural::<PolicySpec>);

/// The first field of a spec whose value breaks a rule, and the rule.
pub(crate) fn broken_rule(spec: &PolicySpec) -> Option<(String, String)> {
    let value = serde_json::to_value(spec).ok()?;
    broken_within("", &value, &SCHEMA)
}

fn broken_within(field: &str, value: &Value, schema: &Value) -> Option<(String, String)> {
    if let Some(why) = broken(value, schema) {
        return Some((field.to_owned(), why));
    }
    match value {
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            let within = if field.is_empty() { key.clone() } else { format!("{field}.{key}") };
            let of_key = schema["properties"].get(key).unwrap_or(&schema["additionalProperties"]);
            broken_within(&within, value, of_key)
        }),
        Value::Array(items) => items.iter().enumerate().find_map(|(place, item)| {
            broken_within(&format!("{field}[{place}]"), item, &schema["items"])
        }),
        _ => None,
    }
}

/// The rule that a value itself breaks.
fn broken(value: &Value, schema: &Value) -> Option<String> {
    let limit = |keyword: &str| schema[keyword].as_u64();
    let too_many = |count: usize, keyword: &str, what: &str| {
        let most = limit(keyword)?;
        (count as u64 > most).then(|| format!("{count} {what}: must be at most {most}"))
    };
    match value {
        Value::Number(number) => {
            let (least, most) = (limit("minimum")?, limit("maximum")?);
            let is_within = number.as_u64().is_some_and(|it| (least..=most).contains(&it));
            (!is_within).then(|| format!("{number}: must be {least} to {most}"))
        }
        Value::String(text) => too_many(text.chars().count(), "maxLength", "characters"),
        Value::Array(items) => too_many(items.len(), "maxItems", "entries"),
        Value::Object(fields) => too_many(fields.len(), "maxProperties", "keys"),
        Value::Bool(_) | Value::Null => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What the types check, and what is no rule.
    const OTHERS: [&str; 11] = [
        "type",
        "format",
        "enum",
        "pattern",
        "nullable",
        "required",
        "properties",
        "additionalProperties",
        "items",
        "default",
        "description",
    ];
    const CHECKED: [&str; 5] = ["minimum", "maximum", "maxLength", "maxItems", "maxProperties"];

    fn all_are_known(schema: &Value) {
        let Some(keywords) = schema.as_object() else { return };
        for (keyword, value) in keywords {
            let is_known = OTHERS.contains(&&**keyword) || CHECKED.contains(&&**keyword);
            assert!(is_known, "files are not checked for the rule {keyword} of the definition");
            match (&**keyword, value) {
                ("properties", Value::Object(fields)) => fields.values().for_each(all_are_known),
                ("items" | "additionalProperties", schema) => all_are_known(schema),
                ("minimum" | "maximum", limit) => assert!(limit.is_u64(), "{limit}"),
                _ => {}
            }
        }
    }

    #[test]
    fn every_rule_of_the_definition_is_checked() {
        all_are_known(&SCHEMA);
        let told = |field: &str, value: Value| {
            let mut spec = json!({"mode": "mig"});
            spec[field] = value;
            let spec: PolicySpec = serde_json::from_value(spec).expect("a spec");
            broken_rule(&spec).map_or(String::new(), |(field, why)| format!("{field}: {why}"))
        };
        assert_eq!(told("apply", json!(true)), "");
        let budget = |percent: u32| json!({"percentPerDay": percent});
        assert_eq!(told("budget", budget(100)), "");
        assert_eq!(told("budget", budget(101)), "budget.percentPerDay: 101: must be 1 to 100");
        assert_eq!(told("budget", budget(0)), "budget.percentPerDay: 0: must be 1 to 100");
        let query = |length: usize| json!({"query": "x".repeat(length)});
        assert_eq!(told("guard", query(4_096)), "");
        let long = "guard.query: 4097 characters: must be at most 4096";
        assert_eq!(told("guard", query(4_097)), long);
        let classes = |count: usize| json!(vec!["c"; count]);
        assert_eq!(told("classes", classes(16)), "");
        assert_eq!(told("classes", classes(17)), "classes: 17 entries: must be at most 16");
        let labels = |count: usize| -> Value {
            (0..count).map(|key| (format!("k{key}"), json!("v"))).collect()
        };
        assert_eq!(told("nodeSelector", labels(16)), "");
        assert_eq!(told("nodeSelector", labels(17)), "nodeSelector: 17 keys: must be at most 16");
        assert_eq!(told("keepWhole", json!(2_000_000)), "keepWhole: 2000000: must be 0 to 1000000");
    }
}

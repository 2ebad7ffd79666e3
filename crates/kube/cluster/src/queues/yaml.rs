//! JSON values as YAML text, as manifests are written: blocks, and quotes only where they are
//! needed.

use serde_json::Value;

pub(crate) fn text(value: &Value) -> String {
    let mut out = String::new();
    block(value, 0, &mut out);
    out
}

fn block(value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) => {
            // Whatever order the map keeps, the text has one.
            let sorted: std::collections::BTreeMap<_, _> = fields.iter().collect();
            for (key, value) in sorted {
                out.push_str(&format!("{indent}{}:", scalar(key)));
                below(value, depth + 1, out);
            }
        }
        Value::Array(items) => {
            for item in items {
                let mut text = String::new();
                block(item, depth + 1, &mut text);
                if text.is_empty() {
                    text = format!("{}\n", inline(item));
                }
                // The dash stands where the first line's indentation ends.
                let first = text.trim_start();
                out.push_str(&format!("{indent}- {first}"));
            }
        }
        plain => out.push_str(&format!("{indent}{}\n", inline(plain))),
    }
}

/// What stands behind a key.
fn below(value: &Value, depth: usize, out: &mut String) {
    let is_block = match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if is_block {
        out.push('\n');
        block(value, depth, out);
    } else {
        out.push_str(&format!(" {}\n", inline(value)));
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

/// A text, in quotes unless it can only be read as that text.
fn scalar(text: &str) -> String {
    let is_word = text.chars().next().is_some_and(char::is_alphabetic)
        && text.chars().all(|c| c.is_ascii_alphanumeric() || " -_./,()".contains(c))
        && !text.ends_with(' ')
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
            .contains(&text.to_ascii_lowercase().as_str());
    // A JSON text is a YAML text.
    if is_word { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_lists_and_texts_that_need_quotes() {
        let value = json!({"a": {"b": [{"c": 1, "d": {}}, "plain word"]}, "e": "yes", "f": "1: 2"});
        let expected = "\
a:
  b:
    - c: 1
      d: {}
    - plain word
e: \"yes\"
f: \"1: 2\"
";
        assert_eq!(text(&value), expected);
    }
}

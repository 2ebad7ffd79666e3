//! A value of JSON as YAML: blocks for objects and lists, and JSON's own spelling for all else,
//! which is YAML too (YAML 1.2, section 1.3).

use serde_json::Value;

/// Words that YAML 1.1 readers take for something else than text.
const TAKEN: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];

/// The text of a document.
pub fn yaml(value: &Value) -> String {
    let mut text = String::new();
    match is_block(value) {
        true => block(value, 0, &mut text),
        false => text = scalar(value) + "\n",
    }
    text
}

/// Whether a value takes lines of its own.
fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

fn block(value: &Value, indent: usize, text: &mut String) {
    let margin = " ".repeat(indent);
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                *text += &format!("{margin}{}:", word(key));
                match is_block(value) {
                    true => {
                        text.push('\n');
                        block(value, indent + 2, text);
                    }
                    false => *text += &format!(" {}\n", scalar(value)),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                // The first line of a block follows its dash.
                let mut lines = String::new();
                match is_block(item) {
                    true => block(item, indent + 2, &mut lines),
                    false => lines = scalar(item) + "\n",
                }
                *text += &format!("{margin}- {}", lines.trim_start());
            }
        }
        _ => {}
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => word(text),
        value => value.to_string(),
    }
}

/// A text as it is where nothing in it means anything to YAML, else in quotes.
fn word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./ ".contains(letter);
    let begins = text.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let is_taken = TAKEN.iter().any(|taken| taken.eq_ignore_ascii_case(text));
    match begins && text.chars().all(is_plain) && !text.ends_with(' ') && !is_taken {
        true => text.to_owned(),
        false => Value::from(text).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_means_something_to_yaml_is_quoted() {
        let value = json!({
            "schema": "dovetail-audit/1", "empty": [], "none": null, "share": 0.25,
            "list": [{"name": "a: b # c", "on": "yes"}, [1, "2"], "- x"],
        });
        assert_eq!(
            yaml(&value),
            "empty: []\nlist:\n  - name: \"a: b # c\"\n    \"on\": \"yes\"\n  - - 1\n    - \"2\"\n  \
             - \"- x\"\nnone: null\nschema: dovetail-audit/1\nshare: 0.25\n"
        );
        assert_eq!([yaml(&json!({})), yaml(&json!("a\nb"))], ["{}\n", "\"a\\nb\"\n"]);
    }
}

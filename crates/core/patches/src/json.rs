//! JSON as a plain tree, written in ASCII alone: exact for a machine, harmless on a screen.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A JSON value. Numbers are integers: nothing that is patched is anything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Json {
    /// `null`; in a merge patch it removes a field.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    Text(String),
    List(Vec<Json>),
    /// Fields by name.
    Object(BTreeMap<String, Json>),
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Json {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl Json {
    /// An object of these fields.
    pub fn object<const N: usize>(fields: [(&str, Json); N]) -> Self {
        Self::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// A field of an object.
    pub fn get(&self, field: &str) -> Option<&Json> {
        match self {
            Self::Object(fields) => fields.get(field),
            _ => None,
        }
    }

    /// What fields lead to, one after the other.
    pub fn at(&self, path: &[&str]) -> Option<&Json> {
        path.iter().try_fold(self, |value, field| value.get(field))
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The items of a list; of anything else none.
    pub fn items(&self) -> &[Json] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    /// The fields of an object; of anything else none.
    pub fn fields(&self) -> impl Iterator<Item = (&String, &Json)> {
        let fields = if let Self::Object(fields) = self { Some(fields) } else { None };
        fields.into_iter().flatten()
    }

    /// In one line, in ASCII: other letters are escaped.
    pub fn to_line(&self) -> String {
        let mut line = String::new();
        self.write(&mut line);
        line
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Null => *out += "null",
            Self::Bool(value) => *out += if *value { "true" } else { "false" },
            Self::Integer(number) => *out += &number.to_string(),
            Self::Text(text) => quote(text, out, false),
            Self::List(items) => {
                out.push('[');
                for (place, item) in items.iter().enumerate() {
                    *out += if place > 0 { "," } else { "" };
                    item.write(out);
                }
                out.push(']');
            }
            Self::Object(fields) => {
                out.push('{');
                for (place, (name, value)) in fields.iter().enumerate() {
                    *out += if place > 0 { "," } else { "" };
                    quote(name, out, false);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// As YAML in block style, for a person's file; each line ends in a line feed.
    pub fn to_yaml(&self) -> String {
        let mut text = String::new();
        self.block(&mut text, 0);
        text
    }

    /// The value on lines of its own, or behind what stands already.
    fn block(&self, out: &mut String, depth: usize) {
        match self {
            Self::Object(fields) if !fields.is_empty() => {
                for (place, (name, value)) in fields.iter().enumerate() {
                    // The first of an item stands behind its dash.
                    if place > 0 || out.ends_with('\n') || out.is_empty() {
                        *out += &"  ".repeat(depth);
                    }
                    scalar(name, out);
                    out.push(':');
                    value.behind(out, depth);
                }
            }
            Self::List(items) if !items.is_empty() => {
                for (place, item) in items.iter().enumerate() {
                    if place > 0 || out.ends_with('\n') || out.is_empty() {
                        *out += &"  ".repeat(depth);
                    }
                    *out += "- ";
                    item.block(out, depth + 1);
                }
            }
            Self::Text(text) => {
                scalar(text, out);
                out.push('\n');
            }
            _ => {
                self.write(out);
                out.push('\n');
            }
        }
    }

    /// The value behind the name of its field.
    fn behind(&self, out: &mut String, depth: usize) {
        match self {
            Self::Object(fields) if !fields.is_empty() => {
                out.push('\n');
                self.block(out, depth + 1);
            }
            Self::List(items) if !items.is_empty() => {
                out.push('\n');
                self.block(out, depth);
            }
            _ => {
                out.push(' ');
                self.block(out, depth);
            }
        }
    }
}

/// Text as YAML: bare where it can only be read as text, else quoted.
fn scalar(text: &str, out: &mut String) {
    let is_bare = text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./".contains(letter))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
            .contains(&text.to_ascii_lowercase().as_str());
    if is_bare {
        *out += text;
    } else {
        quote(text, out, true);
    }
}

/// Text in double quotes. YAML escapes letters beyond the first plane whole, JSON in two halves.
fn quote(text: &str, out: &mut String, is_yaml: bool) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            ' '..='~' => out.push(letter),
            letter if is_yaml && letter > '\u{ffff}' => {
                // Writing to a text cannot fail.
                let _ = write!(out, "\\U{:08x}", u32::from(letter));
            }
            letter => {
                for half in letter.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{half:04x}");
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_ascii_and_in_yaml_no_text_is_taken_for_something_else() {
        let hostile = "a\u{202e}\"\\\n😀'";
        let value = Json::object([
            ("text", hostile.into()),
            ("no", "no".into()),
            ("gpus", "8".into()),
            ("empty", Json::List(Vec::new())),
            (
                "list",
                Json::List(vec![
                    Json::object([("b", Json::Integer(-1)), ("a", Json::Null)]),
                    Json::List(vec!["x".into(), Json::Bool(true)]),
                ]),
            ),
        ]);
        assert_eq!(
            value.to_line(),
            r#"{"empty":[],"gpus":"8","list":[{"a":null,"b":-1},["x",true]],"no":"no","text":"a\u202e\"\\\u000a\ud83d\ude00'"}"#
        );
        let yaml = "empty: []\ngpus: \"8\"\nlist:\n- a: null\n  b: -1\n- - x\n  - true\n\"no\": \"no\"\n\
                    text: \"a\\u202e\\\"\\\\\\u000a\\U0001f600'\"\n";
        assert_eq!(value.to_yaml(), yaml);
    }
}

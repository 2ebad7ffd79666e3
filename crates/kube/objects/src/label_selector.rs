//! Label selectors, as `metav1.LabelSelectorAsSelector` reads them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use super::json::nullable;
use super::label_set::Labels;

/// Which labels are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LabelSelector {
    /// None at all: the selector is absent.
    #[default]
    Nothing,
    /// Those for which every term holds; without a term all labels.
    Of(Box<[LabelTerm]>),
    /// It is written in a way that is not understood, as the text says; it matches nothing.
    Unreadable(Box<str>),
}

/// One term of a selector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelTerm {
    pub key: Box<str>,
    /// What is asked of it.
    pub test: LabelTest,
}

/// What a [`LabelTerm`] asks; values ascend.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LabelTest {
    /// One of the values.
    In(Box<[Box<str>]>),
    /// Absent, or none of the values.
    NotIn(Box<[Box<str>]>),
    Exists,
    DoesNotExist,
}

impl LabelSelector {
    /// A selector from its terms.
    pub fn of(mut terms: Vec<LabelTerm>) -> Self {
        terms.sort();
        terms.dedup();
        Self::Of(terms.into_boxed_slice())
    }

    /// The same, and these labels with these values as well.
    pub fn and_labels<'a>(&self, pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let Self::Of(terms) = self else { return self.clone() };
        let term = |(key, value): (&str, &str)| LabelTerm {
            key: key.into(),
            test: LabelTest::In([value.into()].into()),
        };
        Self::of(terms.iter().cloned().chain(pairs.map(term)).collect())
    }

    /// Whether these labels are meant.
    pub fn matches(&self, labels: &Labels) -> bool {
        let Self::Of(terms) = self else { return false };
        terms.iter().all(|term| term.accepts(labels.get(&term.key)))
    }

    /// Whether it is there and without a term.
    pub fn is_everything(&self) -> bool {
        matches!(self, Self::Of(terms) if terms.is_empty())
    }
}

impl LabelTerm {
    /// Whether a label of this value (`None`: absent) satisfies the term.
    pub fn accepts(&self, value: Option<&str>) -> bool {
        let listed = |values: &[Box<str>]| {
            value.is_some_and(|value| values.iter().any(|have| **have == *value))
        };
        match &self.test {
            LabelTest::In(values) => listed(values),
            LabelTest::NotIn(values) => !listed(values),
            LabelTest::Exists => value.is_some(),
            LabelTest::DoesNotExist => value.is_none(),
        }
    }

    /// Reads an operator and its values; the error says what is wrong.
    pub(crate) fn read(
        key: Box<str>,
        operator: &str,
        values: Vec<Box<str>>,
    ) -> Result<Self, String> {
        if let Some(value) = values.iter().find(|value| !is_label_value(value)) {
            return Err(format!(
                "`{key} {operator}` has `{value}`, which is not a valid label value"
            ));
        }
        let mut values = values;
        values.sort();
        values.dedup();
        let test = match (operator, values.is_empty()) {
            ("In", false) => LabelTest::In(values.into()),
            ("NotIn", false) => LabelTest::NotIn(values.into()),
            ("Exists", true) => LabelTest::Exists,
            ("DoesNotExist", true) => LabelTest::DoesNotExist,
            ("In" | "NotIn", true) => return Err(format!("`{key} {operator}` has no values")),
            ("Exists" | "DoesNotExist", false) => {
                return Err(format!("`{key} {operator}` has values but takes none"));
            }
            _ => return Err(format!("`{key} {operator}` has an unknown operator")),
        };
        Ok(Self { key, test })
    }
}

/// Whether a label can have this value: up to 63 letters, digits, `-`, `_` and `.`, the first and
/// last of them a letter or a digit.
pub(super) fn is_label_value(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric();
    let inner = |c: char| plain(c) || matches!(c, '-' | '_' | '.');
    text.len() <= 63
        && text.chars().all(inner)
        && text.chars().next().is_none_or(plain)
        && text.chars().last().is_none_or(plain)
}

/// The canonical text: equal selectors are written alike.
impl fmt::Display for LabelSelector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => out.write_str("nothing"),
            Self::Unreadable(_) => out.write_str("unreadable"),
            Self::Of(terms) if terms.is_empty() => out.write_str("everything"),
            Self::Of(terms) => {
                for (place, term) in terms.iter().enumerate() {
                    let comma = if place == 0 { "" } else { "," };
                    write!(out, "{comma}{term}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for LabelTerm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &[Box<str>]| values.join(",");
        match &self.test {
            LabelTest::In(values) if values.len() == 1 => write!(out, "{}={}", self.key, values[0]),
            LabelTest::In(values) => write!(out, "{} in ({})", self.key, list(values)),
            LabelTest::NotIn(values) => write!(out, "{} notin ({})", self.key, list(values)),
            LabelTest::Exists => write!(out, "{}", self.key),
            LabelTest::DoesNotExist => write!(out, "!{}", self.key),
        }
    }
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
struct Written {
    #[serde(deserialize_with = "nullable")]
    #[schemars(with = "BTreeMap<String, LabelValue>", extend("maxProperties" = 64))]
    match_labels: Labels,
    #[serde(deserialize_with = "nullable")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    match_expressions: Vec<Expression>,
}

// `key operator values`, as label and node selectors write it.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend(
    "required" = ["key", "operator"],
    "x-kubernetes-validations" = [{
        "rule": "(self.operator in [\"In\", \"NotIn\"]) == \
                 (has(self.values) && size(self.values) > 0)",
        "message": "In and NotIn need values, Exists and DoesNotExist take none",
    }]
))]
pub(super) struct Expression {
    #[serde(deserialize_with = "nullable")]
    #[schemars(length(min = 1, max = 317))]
    pub(super) key: Box<str>,
    #[serde(deserialize_with = "nullable")]
    #[schemars(extend("enum" = ["In", "NotIn", "Exists", "DoesNotExist"]))]
    pub(super) operator: Box<str>,
    #[serde(deserialize_with = "nullable")]
    #[schemars(
        length(max = 64),
        inner(length(max = 63)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub(super) values: Vec<Box<str>>,
}

/// The value of a label, in schemas.
struct LabelValue;

impl JsonSchema for LabelValue {
    fn schema_name() -> Cow<'static, str> {
        "LabelValue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "maxLength": 63})
    }
}

impl JsonSchema for LabelSelector {
    fn schema_name() -> Cow<'static, str> {
        "LabelSelector".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Written::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for LabelSelector {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let Some(written) = Option::<Written>::deserialize(input)? else {
            return Ok(Self::Nothing);
        };
        let labels = written.match_labels.iter();
        let labels =
            labels.map(|(key, value)| LabelTerm::read(key.into(), "In", vec![value.into()]));
        let expressions = written.match_expressions.into_iter();
        let expressions = expressions.map(|e| LabelTerm::read(e.key, &e.operator, e.values));
        let terms: Result<Vec<LabelTerm>, String> = labels.chain(expressions).collect();
        Ok(match terms {
            Ok(terms) => Self::of(terms),
            Err(problem) => Self::Unreadable(problem.into()),
        })
    }
}

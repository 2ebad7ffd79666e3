//! On which line of a file a field is, for messages about its value: what a file is read into knows
//! no lines.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::{Spanned, with_deserializer_from_str};

/// The line of a field such as `spec.profiles[1]`; where it is absent, that of the object that
/// lacks it.
pub(crate) fn line_of(text: &str, is_json: bool, field: &str) -> u64 {
    let keys: Vec<&str> = field.split(['.', '[', ']']).filter(|key| !key.is_empty()).collect();
    line_at(text, is_json, &keys)
}

/// The same of a field with these keys and numbers on the way to it: a key may have dots.
pub(crate) fn line_at(text: &str, is_json: bool, keys: &[&str]) -> u64 {
    let line = |length: usize| match is_json {
        true => in_json(text, &keys[..length]),
        false => in_yaml(text, &keys[..length]),
    };
    (1..=keys.len()).rev().find_map(line).unwrap_or(1)
}

fn in_json(text: &str, keys: &[&str]) -> Option<u64> {
    let mut json = serde_json::Deserializer::from_str(text);
    let found = At::<Here> { keys, leaf: PhantomData }.deserialize(&mut json);
    Some(found.err()?.line() as u64).filter(|line| *line > 0)
}

fn in_yaml(text: &str, keys: &[&str]) -> Option<u64> {
    let at = At::<Spanned<IgnoredAny>> { keys, leaf: PhantomData };
    let found = with_deserializer_from_str(text, |yaml| at.deserialize(yaml));
    Some(found.ok()??.referenced.line()).filter(|line| *line > 0)
}

/// Cannot be read: the reader's error has the place of the value.
enum Here {}

impl<'de> Deserialize<'de> for Here {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom("the field"))
    }
}

/// Goes down to the value at the end of some keys, and reads that as `L`.
struct At<'k, L> {
    keys: &'k [&'k str],
    leaf: PhantomData<L>,
}

impl<'de, L: Deserialize<'de>> DeserializeSeed<'de> for At<'_, L> {
    type Value = Option<L>;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Option<L>, D::Error> {
        match self.keys {
            [] => L::deserialize(input).map(Some),
            _ => input.deserialize_any(self),
        }
    }
}

impl<'de, L: Deserialize<'de>> Visitor<'de> for At<'_, L> {
    type Value = Option<L>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object or a list")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Option<L>, M::Error> {
        let [first, rest @ ..] = self.keys else { return Ok(None) };
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == *first {
                found = map.next_value_seed(At::<L> { keys: rest, leaf: PhantomData })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Option<L>, S::Error> {
        let [first, rest @ ..] = self.keys else { return Ok(None) };
        let wanted: Option<usize> = first.parse().ok();
        let (mut place, mut found) = (0, None);
        loop {
            if wanted == Some(place) {
                let at = At::<L> { keys: rest, leaf: PhantomData };
                let Some(one) = list.next_element_seed(at)? else { return Ok(found) };
                found = one;
            } else if list.next_element::<IgnoredAny>()?.is_none() {
                return Ok(found);
            }
            place += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_on_its_line_and_an_absent_one_on_that_of_its_object() {
        let yaml = "kind: P\nspec:\n  mode: mps\n  profiles:\n  - a\n  - b\n  guard: {hours: 1,\n    \
                    query: x}\n";
        let json = "{\n \"spec\": {\n  \"mode\": \"mps\",\n  \"profiles\": [\n   \"a\",\n   \"b\"],\n  \
                    \"guard\":\n  {\"hours\": 1,\n   \"query\": \"x\"}}}";
        for (field, in_yaml, in_json) in [
            ("spec.mode", 3, 3),
            ("spec.profiles[1]", 6, 6),
            ("spec.guard.hours", 7, 8),
            ("spec.guard.query", 8, 9),
            ("metadata.name", 1, 1),
        ] {
            assert_eq!(line_of(yaml, false, field), in_yaml, "{field}");
            assert_eq!(line_of(json, true, field), in_json, "{field}");
        }
        // An object of several lines is on the line on which it begins.
        assert_eq!(line_of(json, true, "spec.replicas"), 2);
        assert_eq!(line_of("a: 1\nspec: {mode: mps}\n", false, "spec.replicas"), 2);
    }
}

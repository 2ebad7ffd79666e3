//! The JSON of an object, of which only what is read is kept.
//!
//! Whether a field is read is found out by reading: a field is not read if the object is the same
//! with a value there that no type accepts, and without the field. Having the types tell it, with a
//! reader that notes what they ignore, is a second copy of the readers of all types.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Kind, Object};

/// Fields that are known at most: keys of labels and annotations are fields, too.
const MOST_FIELDS: usize = 10_000;
/// Stands for [`UNREADABLE`] while the JSON is a value.
const MARK: &str = "\0";
/// A number that is too large for any type, and that can be passed over.
const UNREADABLE: &str = "1e999";

/// Which fields of the objects of one kind are read, as far as objects with these fields were seen.
#[derive(Debug, Default)]
pub struct ReadFields {
    is_read: BTreeMap<Vec<FieldStep>, bool>,
}

/// A step to a field: a key of an object, or every element of a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FieldStep {
    Key(String),
    Element,
}

impl ReadFields {
    /// The object with its JSON, of which only the fields that are read are kept: commands,
    /// settings and secrets of containers are not among them. Reading that gives the same object.
    /// What cannot be read is kept whole.
    pub fn read(&mut self, kind: Kind, json: &[u8]) -> (Object, Box<str>) {
        let object = Object::read(kind, json);
        let text = match object {
            Object::Strange(..) => None,
            _ => self.kept(kind, json, &object),
        };
        (object, text.unwrap_or_else(|| String::from_utf8_lossy(json).into_owned()).into())
    }

    fn kept(&mut self, kind: Kind, json: &[u8], object: &Object) -> Option<String> {
        let whole: Value = serde_json::from_slice(json).ok()?;
        let is_same = |text: &str| Object::read(kind, text.as_bytes()) == *object;
        if self.is_read.len() > MOST_FIELDS {
            self.is_read.clear();
        }
        for _ in 0..2 {
            let mut value = whole.clone();
            self.strip(&mut value, is_same);
            let text = value.to_string();
            if is_same(&text) {
                return Some(text);
            }
            // One that made no difference before makes one here: it is read.
            self.is_read.retain(|_, is_read| *is_read);
        }
        None
    }

    /// Takes the fields that are not read out of a value.
    fn strip(&mut self, value: &mut Value, is_same: impl Fn(&str) -> bool) {
        let mut open = vec![Vec::new()];
        while let Some(parent) = open.pop() {
            for step in steps(value, &parent) {
                let path = [&parent[..], &[step]].concat();
                let is_read = self.is_read.entry(path.clone()).or_insert_with(|| {
                    let mut unreadable = value.clone();
                    at(&mut unreadable, &path, &mut |field| *field = MARK.into());
                    let mark = Value::from(MARK).to_string();
                    let mut without = value.clone();
                    drop_field(&mut without, &path);
                    !is_same(&unreadable.to_string().replace(&mark, UNREADABLE))
                        || !is_same(&without.to_string())
                });
                match is_read {
                    true => open.push(path),
                    false => drop_field(value, &path),
                }
            }
        }
    }
}

/// The steps that lead on from a field.
fn steps(value: &mut Value, path: &[FieldStep]) -> BTreeSet<FieldStep> {
    let mut steps = BTreeSet::new();
    at(value, path, &mut |field| match field {
        Value::Object(fields) => steps.extend(fields.keys().cloned().map(FieldStep::Key)),
        Value::Array(elements) if !elements.is_empty() => _ = steps.insert(FieldStep::Element),
        _ => {}
    });
    steps
}

/// Takes a field out. Elements of lists become `null`: how many there are may be read.
fn drop_field(value: &mut Value, path: &[FieldStep]) {
    match path.split_last() {
        Some((FieldStep::Key(key), parent)) => at(value, parent, &mut |field| {
            field.as_object_mut().map(|fields| fields.remove(key));
        }),
        _ => at(value, path, &mut |field| *field = Value::Null),
    }
}

/// Does something with the fields at the end of a path.
fn at(value: &mut Value, path: &[FieldStep], act: &mut impl FnMut(&mut Value)) {
    match (path.split_first(), value) {
        (None, value) => act(value),
        (Some((FieldStep::Key(key), rest)), Value::Object(fields)) => {
            fields.get_mut(key).into_iter().for_each(|field| at(field, rest, act));
        }
        (Some((FieldStep::Element, rest)), Value::Array(elements)) => {
            elements.iter_mut().for_each(|element| at(element, rest, act));
        }
        _ => {}
    }
}

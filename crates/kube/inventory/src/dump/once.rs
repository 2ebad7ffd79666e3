//! Each object of a dump once: files overlap, and so do lists. Of several versions of an object the
//! newest counts, or the last where nothing says which is newer.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use super::reader::{RawObject, Sink};
use super::{COLLECTION, Skipped};

/// Objects of which the input has several versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeveralVersions {
    pub objects: usize,
    /// The first of them: kind, namespace and name.
    pub example: String,
}

/// Which objects were read, and which version of each counts.
#[derive(Default)]
pub(super) struct SeenObjects {
    /// By kind, group, namespace and name.
    of: FxHashMap<Box<str>, SeenObject>,
    pub(super) several: Option<SeveralVersions>,
    /// Whether versions were handed on before newer ones of the same objects were read.
    pub(super) is_outdated: bool,
}

/// The version of an object that counts.
struct SeenObject {
    /// Its place among all objects of the dump.
    place: u64,
    version: Option<u64>,
    /// A hash of its text, by which versions without a number are compared.
    text: u64,
    has_others: bool,
}

impl SeenObjects {
    /// Whether an object is new, or newer than what was read of it.
    fn take(&mut self, raw: &RawObject<'_>, place: u64) -> bool {
        let key = key(raw);
        let (version, text) = (raw.version, text(raw));
        let Some(seen) = self.of.get_mut(&*key) else {
            self.of.insert(key, SeenObject { place, version, text, has_others: false });
            return true;
        };
        let (is_same, is_newer) = match (seen.version, version) {
            (Some(seen), Some(version)) => (version == seen, version > seen),
            (None, None) => (text == seen.text, true),
            _ => (false, true),
        };
        if is_same {
            return false;
        }
        if !std::mem::replace(&mut seen.has_others, true) {
            let first = || SeveralVersions { objects: 0, example: named(raw) };
            self.several.get_or_insert_with(first).objects += 1;
        }
        if is_newer {
            (seen.place, seen.version, seen.text) = (place, version, text);
            self.is_outdated = true;
        }
        is_newer
    }

    /// Whether an object at a place is the version that counts, once all objects were read.
    fn counts(&self, raw: &RawObject<'_>, place: u64) -> bool {
        self.of.get(&*key(raw)).is_none_or(|seen| seen.place == place)
    }
}

fn key(raw: &RawObject<'_>) -> Box<str> {
    // Versions of a group serve the same objects.
    let group = raw.api_version.split_once('/').map_or("", |(group, _)| group);
    [raw.kind, group, raw.namespace, raw.name].join("\0").into()
}

fn text(raw: &RawObject<'_>) -> u64 {
    if raw.version.is_some() {
        return 0;
    }
    let mut hasher = FxHasher::default();
    raw.json.hash(&mut hasher);
    hasher.finish()
}

fn named(raw: &RawObject<'_>) -> String {
    let slash = if raw.namespace.is_empty() { "" } else { "/" };
    format!("{} {}{slash}{}", raw.kind, raw.namespace, raw.name)
}

/// Hands each object on once.
pub(super) struct Once<'s> {
    seen: &'s mut SeenObjects,
    /// Whether all objects were read before, so that it is known which versions count.
    is_second: bool,
    place: u64,
    sink: &'s mut dyn Sink,
}

impl<'s> Once<'s> {
    pub(super) fn first(seen: &'s mut SeenObjects, sink: &'s mut dyn Sink) -> Self {
        Self { seen, is_second: false, place: 0, sink }
    }

    pub(super) fn second(seen: &'s mut SeenObjects, sink: &'s mut dyn Sink) -> Self {
        Self { seen, is_second: true, place: 0, sink }
    }

    fn wants(&mut self, raw: &RawObject<'_>) -> bool {
        self.place += 1;
        // What a collection says of itself stands at its beginning and at its end.
        let is_apart = raw.kind == COLLECTION || raw.name.is_empty();
        is_apart
            || match self.is_second {
                true => self.seen.counts(raw, self.place),
                false => self.seen.take(raw, self.place),
            }
    }
}

impl Sink for Once<'_> {
    fn object(&mut self, object: &RawObject<'_>) {
        if self.wants(object) {
            self.sink.object(object);
        }
    }

    fn objects(&mut self, objects: &[RawObject<'_>]) {
        let wanted: Vec<RawObject<'_>> =
            objects.iter().filter(|object| self.wants(object)).cloned().collect();
        self.sink.objects(&wanted);
    }

    fn skipped(&mut self, skipped: Skipped) {
        self.sink.skipped(skipped);
    }

    fn empty_list(&mut self, kind: &str) {
        self.sink.empty_list(kind);
    }
}

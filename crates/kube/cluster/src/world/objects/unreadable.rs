//! Objects that cannot be read, pods apart: they count as gone.

use std::collections::BTreeMap;

use dovetail_objects::{Kind, Strange};

use super::listing::Key;

/// What is known of them.
#[derive(Debug, Default)]
pub(crate) struct Unreadable(BTreeMap<(Kind, Key), Box<Strange>>);

impl Unreadable {
    pub(crate) fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Strange> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&key(kind, namespace, name)).map(|strange| &**strange)
    }

    pub(crate) fn put(&mut self, kind: Kind, strange: Box<Strange>) {
        let meta = &strange.meta;
        self.0.insert(key(kind, &meta.namespace, &meta.name), strange);
    }

    pub(crate) fn remove(&mut self, kind: Kind, namespace: &str, name: &str) {
        if !self.0.is_empty() {
            self.0.remove(&key(kind, namespace, name));
        }
    }

    pub(crate) fn names(&self, kind: Kind) -> impl Iterator<Item = &Key> {
        self.0.keys().filter(move |(of, _)| *of == kind).map(|(_, key)| key)
    }
}

fn key(kind: Kind, namespace: &str, name: &str) -> (Kind, Key) {
    (kind, (namespace.into(), name.into()))
}

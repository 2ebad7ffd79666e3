//! Lists and what comes late: which objects of a watch to believe.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dovetail_objects::{Kind, Meta};

/// How many deletions are remembered, so that an older state of the object that comes late does not
/// bring it back.
const REMEMBERED_DELETIONS: usize = 16_384;

/// Namespace and name.
pub(crate) type Key = (Box<str>, Box<str>);

/// Lists that are complete or under way, and deletions seen lately.
#[derive(Debug, Default)]
pub(crate) struct Listings {
    complete: BTreeSet<Kind>,
    /// Objects that a list under way has contained so far.
    under_way: BTreeMap<Kind, BTreeSet<Key>>,
    deleted: BTreeMap<(Kind, Key), u64>,
    oldest_first: VecDeque<(Kind, Key)>,
}

impl Listings {
    /// Whether a state of an object is to be believed. In a list everything is, but what is known
    /// already needs no second look; on a watch nothing older than what is known, or than its
    /// deletion.
    pub(crate) fn accepts(&mut self, kind: Kind, meta: &Meta, stored: Option<&Meta>) -> bool {
        let same = stored.is_some_and(|stored| {
            stored.uid == meta.uid
                && stored.resource_version == meta.resource_version
                && !meta.resource_version.is_empty()
        });
        if let Some(seen) = self.under_way.get_mut(&kind) {
            seen.insert(key(meta));
            return !same;
        }
        let newer_than = |known: Option<u64>| match (meta.version(), known) {
            (Some(version), Some(known)) => version > known,
            _ => true,
        };
        let deleted = self.deleted.get(&(kind, key(meta))).copied();
        !same && newer_than(stored.and_then(Meta::version)) && newer_than(deleted)
    }

    /// Whether a deletion concerns the object that is known, and not one of the same name before
    /// it.
    pub(crate) fn accepts_deletion(
        &mut self,
        kind: Kind,
        meta: &Meta,
        stored: Option<&Meta>,
    ) -> bool {
        if let Some(version) = meta.version() {
            self.remember(kind, key(meta), version);
        }
        stored.is_some_and(|stored| meta.uid.is_empty() || stored.uid == meta.uid)
    }

    pub(crate) fn begin(&mut self, kind: Kind) {
        self.under_way.insert(kind, BTreeSet::new());
        self.deleted.retain(|(of, _), _| *of != kind);
        self.oldest_first.retain(|(of, _)| *of != kind);
    }

    /// A list is complete: which of the stored objects it did not contain.
    pub(crate) fn complete(&mut self, kind: Kind, stored: Vec<Key>) -> Vec<Key> {
        self.complete.insert(kind);
        let Some(seen) = self.under_way.remove(&kind) else { return Vec::new() };
        stored.into_iter().filter(|key| !seen.contains(key)).collect()
    }

    pub(crate) fn are_all_complete(&self) -> bool {
        Kind::ALL.iter().all(|kind| self.complete.contains(kind))
    }

    fn remember(&mut self, kind: Kind, key: Key, version: u64) {
        let known = self.deleted.entry((kind, key.clone())).or_insert_with(|| {
            self.oldest_first.push_back((kind, key));
            version
        });
        *known = version.max(*known);
        if self.oldest_first.len() > REMEMBERED_DELETIONS
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.deleted.remove(&oldest);
        }
    }
}

fn key(meta: &Meta) -> Key {
    (meta.namespace.clone(), meta.name.clone())
}

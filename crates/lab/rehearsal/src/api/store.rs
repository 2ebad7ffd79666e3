//! All objects, their history, and the one counter of versions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::{Value, json};

use super::kind::{CollectionName, ResourceKind};

/// An object in one version. `kind` and `apiVersion` are left out: they depend on who asks.
#[derive(Debug)]
pub(crate) struct StoredObject {
    pub(crate) value: Value,
    pub(crate) revision: u64,
    json: OnceLock<Bytes>,
}

impl StoredObject {
    /// The content under a version.
    pub(crate) fn new(mut value: Value, revision: u64) -> Self {
        value["metadata"]["resourceVersion"] = json!(revision.to_string());
        Self { value, revision, json: OnceLock::new() }
    }

    /// The same content under another version: the last state of a deleted object.
    pub(crate) fn at_revision(&self, revision: u64) -> Self {
        Self::new(self.value.clone(), revision)
    }

    /// As JSON without kind.
    pub(crate) fn json(&self) -> &Bytes {
        self.json.get_or_init(|| Bytes::from(self.value.to_string()))
    }

    /// Appends the JSON with kind.
    pub(crate) fn write(&self, kind: &ResourceKind, out: &mut Vec<u8>) {
        let start = format!(r#"{{"kind":"{}","apiVersion":"{}","#, kind.kind, kind.api_version());
        out.extend_from_slice(start.as_bytes());
        out.extend_from_slice(&self.json()[1..]);
    }

    pub(crate) fn with_kind(&self, kind: &ResourceKind) -> Value {
        let mut value = self.value.clone();
        value["kind"] = json!(kind.kind);
        value["apiVersion"] = json!(kind.api_version());
        value
    }
}

/// One change in the history of a collection.
#[derive(Clone, Debug)]
pub(crate) struct StoredChange {
    pub(crate) revision: u64,
    key: String,
    /// The object before, unless it was created.
    pub(crate) before: Option<Arc<StoredObject>>,
    /// The object after; for a deletion its last state under the version of the deletion.
    pub(crate) after: Arc<StoredObject>,
    pub(crate) deleted: bool,
}

impl StoredChange {
    /// Whether both are of one object.
    pub(crate) fn is_of(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

/// Objects of one kind, and what happened to them lately.
#[derive(Debug)]
pub(crate) struct Collection {
    objects: BTreeMap<String, Arc<StoredObject>>,
    history: VecDeque<StoredChange>,
    /// Greatest version that is no longer in the history.
    forgotten: u64,
}

/// The whole state of the server.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) revision: u64,
    collections: BTreeMap<CollectionName, Collection>,
    history_limit: usize,
    objects_created: u64,
    /// Collections that were written since that was last asked.
    written: BTreeSet<CollectionName>,
    /// What is written now is only tried.
    pub(crate) is_trial: bool,
}

/// The server's key of an object within its collection.
pub(crate) fn key_of(namespace: Option<&str>, name: &str) -> String {
    namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
}

impl Store {
    pub(crate) fn new(history_limit: usize) -> Self {
        Self {
            revision: 1,
            collections: BTreeMap::new(),
            history_limit,
            objects_created: 0,
            written: BTreeSet::new(),
            is_trial: false,
        }
    }

    /// Collections that were written since the last call.
    pub(crate) fn take_written(&mut self) -> BTreeSet<CollectionName> {
        std::mem::take(&mut self.written)
    }

    pub(crate) fn get(&self, collection: &CollectionName, key: &str) -> Option<Arc<StoredObject>> {
        self.collections.get(collection)?.objects.get(key).cloned()
    }

    /// All objects of a collection in the order of their keys.
    pub(crate) fn all<'s>(
        &'s self,
        collection: &CollectionName,
    ) -> impl Iterator<Item = &'s Arc<StoredObject>> + use<'s> {
        self.collections.get(collection).into_iter().flat_map(|found| found.objects.values())
    }

    /// A fresh UID: counted, so that equal runs give equal UIDs.
    pub(crate) fn next_uid(&mut self) -> String {
        self.objects_created += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.objects_created)
    }

    /// Creates or replaces an object. A trial keeps nothing and returns what would be there.
    pub(crate) fn put(
        &mut self,
        collection: &CollectionName,
        key: String,
        value: Value,
    ) -> Arc<StoredObject> {
        if self.is_trial {
            return Arc::new(StoredObject::new(value, self.revision));
        }
        self.revision += 1;
        let (revision, limit) = (self.revision, self.history_limit);
        let object = Arc::new(StoredObject::new(value, revision));
        let found = self.collection(collection);
        let before = found.objects.insert(key.clone(), object.clone());
        let after = object.clone();
        found.record(StoredChange { revision, key, before, after, deleted: false }, limit);
        self.written.insert(collection.clone());
        object
    }

    /// Removes an object and returns its last state; in a trial it stays.
    pub(crate) fn remove(
        &mut self,
        collection: &CollectionName,
        key: &str,
    ) -> Option<Arc<StoredObject>> {
        let before = self.get(collection, key)?;
        if self.is_trial {
            return Some(before);
        }
        self.revision += 1;
        let (revision, limit) = (self.revision, self.history_limit);
        let after = Arc::new(before.at_revision(revision));
        let found = self.collection(collection);
        found.objects.remove(key);
        let (key, before) = (key.to_owned(), Some(before));
        found.record(
            StoredChange { revision, key, before, after: after.clone(), deleted: true },
            limit,
        );
        self.written.insert(collection.clone());
        Some(after)
    }

    pub(crate) fn collection(&mut self, name: &CollectionName) -> &mut Collection {
        let revision = self.revision;
        self.collections.entry(name.clone()).or_insert_with(|| Collection::new(revision))
    }

    /// Forgets every change up to now: older versions can be neither listed nor watched.
    pub(crate) fn compact(&mut self) {
        let revision = self.revision;
        for collection in self.collections.values_mut() {
            collection.history.clear();
            collection.forgotten = revision;
        }
    }
}

impl Collection {
    fn new(revision: u64) -> Self {
        Self {
            objects: BTreeMap::new(),
            history: VecDeque::new(),
            forgotten: revision.saturating_sub(1),
        }
    }

    fn record(&mut self, change: StoredChange, limit: usize) {
        self.history.push_back(change);
        if self.history.len() > limit
            && let Some(oldest) = self.history.pop_front()
        {
            self.forgotten = oldest.revision;
        }
    }

    /// At most `limit` changes after a version, oldest first, or the oldest version that can still
    /// be asked for.
    pub(crate) fn changes_after(
        &self,
        revision: u64,
        limit: usize,
    ) -> Result<Vec<StoredChange>, u64> {
        if revision < self.forgotten {
            return Err(self.forgotten);
        }
        let start = self.history.partition_point(|change| change.revision <= revision);
        Ok(self.history.range(start..).take(limit).cloned().collect())
    }

    pub(crate) fn objects(&self) -> &BTreeMap<String, Arc<StoredObject>> {
        &self.objects
    }

    /// What was different at an older version: the objects by key, `None` where there was none.
    /// `None` as a whole if the history no longer reaches back.
    pub(crate) fn differences_at(
        &self,
        revision: u64,
    ) -> Option<BTreeMap<String, Option<Arc<StoredObject>>>> {
        if revision < self.forgotten {
            return None;
        }
        let newer = self.history.iter().rev().take_while(|change| change.revision > revision);
        let mut differences = BTreeMap::new();
        for change in newer {
            differences.insert(change.key.clone(), change.before.clone());
        }
        Some(differences)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods() -> CollectionName {
        (String::new(), "pods".to_owned())
    }

    fn store() -> Store {
        let mut store = Store::new(3);
        for (name, phase) in [("a", 1), ("b", 1), ("a", 2)] {
            store.put(&pods(), name.to_owned(), json!({"metadata": {}, "phase": phase}));
        }
        store
    }

    #[test]
    fn an_older_version_is_rebuilt_from_the_history() {
        let mut store = store();
        store.remove(&pods(), "b");
        let collection = store.collection(&pods());
        let at_3 = collection.differences_at(3).unwrap();
        assert_eq!(at_3["a"].as_ref().unwrap().value["phase"], 1);
        assert_eq!(at_3["b"].as_ref().unwrap().revision, 3);
        assert!(collection.differences_at(1).is_none(), "the first change was forgotten");
    }

    #[test]
    fn changes_are_told_until_they_are_forgotten() {
        let mut store = store();
        let changes = store.collection(&pods()).changes_after(2, 9).unwrap();
        assert_eq!(changes.iter().map(|change| change.revision).collect::<Vec<_>>(), [3, 4]);
        store.compact();
        assert_eq!(store.collection(&pods()).changes_after(2, 9).unwrap_err(), 4);
        assert!(store.collection(&pods()).changes_after(4, 9).unwrap().is_empty());
    }
}

//! A server in miniature: objects with versions, and the messages that watches of them deliver.

use std::collections::{BTreeMap, VecDeque};

use dovetail_cluster::world::Change;
use dovetail_objects::{Kind, Meta, Object};
use serde_json::{Value, json};

/// Kind, namespace, name.
pub(crate) type Key = (Kind, String, String);

/// What a watch delivers of one change.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    Applied(Kind, Value),
    Deleted(Kind, Value),
}

impl Message {
    pub(crate) fn change(&self) -> Change {
        match self {
            Self::Applied(kind, value) => Change::Applied(read(*kind, value)),
            Self::Deleted(kind, value) => {
                let meta: Meta = serde_json::from_value(value["metadata"].clone()).unwrap();
                Change::Deleted(*kind, meta)
            }
        }
    }
}

pub(crate) fn read(kind: Kind, value: &Value) -> Object {
    Object::read(kind, value.to_string().as_bytes())
}

/// The objects, and what each kind's watch has yet to deliver.
#[derive(Clone, Default)]
pub(crate) struct Server {
    pub(crate) objects: BTreeMap<Key, Value>,
    waiting: BTreeMap<Kind, VecDeque<Message>>,
    /// Everything ever delivered, for what comes twice or late.
    delivered: Vec<Message>,
    version: u64,
    /// When objects are created from now on; a second after each other by default.
    pub(crate) time: Option<String>,
}

impl Server {
    /// Creates or updates an object; what it has already of `metadata.uid` stays.
    pub(crate) fn apply(&mut self, kind: Kind, namespace: &str, name: &str, body: Value) {
        self.version += 1;
        let key = (kind, namespace.to_owned(), name.to_owned());
        let uid = match self.objects.get(&key) {
            Some(known) => known["metadata"]["uid"].clone(),
            None => json!(format!("uid-{}", self.version)),
        };
        let mut object = body;
        let created = self.time.clone().unwrap_or_else(|| {
            format!("2026-11-01T10:{:02}:{:02}Z", self.version / 60 % 60, self.version % 60)
        });
        let known = self.objects.get(&key).map(|o| o["metadata"]["creationTimestamp"].clone());
        let meta = &mut object["metadata"];
        meta["name"] = json!(name);
        meta["uid"] = uid;
        meta["resourceVersion"] = json!(self.version.to_string());
        meta["creationTimestamp"] = known.unwrap_or_else(|| json!(created));
        if !namespace.is_empty() {
            meta["namespace"] = json!(namespace);
        }
        self.objects.insert(key, object.clone());
        self.waiting.entry(kind).or_default().push_back(Message::Applied(kind, object));
    }

    /// Changes an object that is there.
    pub(crate) fn change(&mut self, key: &Key, change: impl FnOnce(&mut Value)) {
        let Some(mut object) = self.objects.get(key).cloned() else { return };
        change(&mut object);
        self.apply(key.0, &key.1.clone(), &key.2.clone(), object);
    }

    /// Deletes an object.
    pub(crate) fn delete(&mut self, key: &Key) {
        let Some(mut object) = self.objects.remove(key) else { return };
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.waiting.entry(key.0).or_default().push_back(Message::Deleted(key.0, object));
    }

    /// The next message of a kind's watch.
    pub(crate) fn next(&mut self, kind: Kind) -> Option<Message> {
        let message = self.waiting.get_mut(&kind)?.pop_front()?;
        self.delivered.push(message.clone());
        Some(message)
    }

    /// A message that was delivered before.
    pub(crate) fn again(&self, choice: usize) -> Option<&Message> {
        self.delivered.get(choice % self.delivered.len().max(1))
    }

    /// A list of a kind: everything there is. The watch before it delivers nothing more, the one
    /// after it only what is newer.
    pub(crate) fn list(&mut self, kind: Kind) -> Vec<Change> {
        self.waiting.remove(&kind);
        self.delivered.retain(|message| match message {
            Message::Applied(of, _) | Message::Deleted(of, _) => *of != kind,
        });
        let all = self.objects.iter().filter(|((of, _, _), _)| *of == kind);
        let all = all.map(|(_, object)| Change::Applied(read(kind, object)));
        let mut changes = vec![Change::Listing(kind)];
        changes.extend(all);
        changes.push(Change::Listed(kind));
        changes
    }

    pub(crate) fn keys(&self, kind: Kind) -> Vec<Key> {
        self.objects.keys().filter(|(of, _, _)| *of == kind).cloned().collect()
    }

    pub(crate) fn has_news(&self) -> bool {
        self.waiting.values().any(|queue| !queue.is_empty())
    }
}

//! What a process sees of the objects of one kind: lists and changes, late and in order.

use dovetail_cluster::world::Change;
use dovetail_objects::{Kind, Object};

use crate::api::{CollectionName, Server};

/// One kind's watch.
#[derive(Debug)]
pub(crate) struct Sight {
    pub(crate) kind: Kind,
    pub(crate) collection: CollectionName,
    /// Version up to which everything was seen; `None` before the first list.
    pub(crate) seen: Option<u64>,
    /// A delivery is on its way.
    pub(crate) is_due: bool,
}

impl Sight {
    pub(crate) fn of(kind: Kind) -> Self {
        let collection = (kind.group().to_owned(), kind.plural().to_owned());
        Self { kind, collection, seen: None, is_due: false }
    }

    /// The next list begins from nothing.
    pub(crate) fn expire(&mut self) {
        self.seen = None;
    }

    /// What is delivered now, at most so many changes; and whether there is more.
    pub(crate) fn look(&mut self, server: &mut Server, most: usize) -> (Vec<Change>, bool) {
        let revision = server.state.store.revision;
        let collection = server.state.store.collection(&self.collection);
        let found = self.seen.and_then(|seen| collection.changes_after(seen, most).ok());
        let Some(found) = found else {
            self.seen = Some(revision);
            return (self.list(server), false);
        };
        let is_more = found.len() == most;
        self.seen = match found.last() {
            Some(last) if is_more => Some(last.revision),
            _ => Some(revision),
        };
        let changes = found.iter().map(|change| {
            let object = Object::read(self.kind, change.after.json());
            match change.deleted {
                true => Change::Deleted(self.kind, object.meta().clone()),
                false => Change::Applied(object),
            }
        });
        (changes.collect(), is_more)
    }

    fn list(&self, server: &mut Server) -> Vec<Change> {
        let objects = server.state.store.all(&self.collection);
        let objects = objects.map(|object| Change::Applied(Object::read(self.kind, object.json())));
        let mut changes = vec![Change::Listing(self.kind)];
        changes.extend(objects);
        changes.push(Change::Listed(self.kind));
        changes
    }
}

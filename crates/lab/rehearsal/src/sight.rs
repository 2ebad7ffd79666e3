//! What a process sees of the objects of one kind: lists and changes, late and in order.

use dovetail_cluster::world::Change;
use dovetail_control::control::Input;
use dovetail_objects::{Kind, Object, ReadFields};

use crate::api::{ApiServer, CollectionName, Stored};

/// One kind's watch.
#[derive(Debug)]
pub(crate) struct Sight {
    pub(crate) kind: Kind,
    pub(crate) collection: CollectionName,
    /// Version up to which everything was seen; `None` before the first list.
    pub(crate) seen: Option<u64>,
    /// A delivery is on its way.
    pub(crate) is_due: bool,
    /// For what is seen, if it is recorded.
    fields: Option<ReadFields>,
}

impl Sight {
    pub(crate) fn of(kind: Kind, is_recorded: bool) -> Self {
        let collection = (kind.group().to_owned(), kind.plural().to_owned());
        let fields = is_recorded.then(ReadFields::default);
        Self { kind, collection, seen: None, is_due: false, fields }
    }

    /// The next list begins from nothing.
    pub(crate) fn expire(&mut self) {
        self.seen = None;
    }

    /// What is delivered now, at most so many changes; and whether there is more.
    pub(crate) fn look(&mut self, server: &mut ApiServer, most: usize) -> (Vec<Input>, bool) {
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
            let (object, json) = read(self.kind, &mut self.fields, &change.after);
            let change = match change.deleted {
                true => Change::Deleted(self.kind, object.meta().clone()),
                false => Change::Applied(object),
            };
            Input::Change(change, json)
        });
        (changes.collect(), is_more)
    }

    fn list(&mut self, server: &mut ApiServer) -> Vec<Input> {
        let objects = server.state.store.all(&self.collection).map(|object| {
            let (object, json) = read(self.kind, &mut self.fields, object);
            Input::Change(Change::Applied(object), json)
        });
        let mut changes = vec![Input::Change(Change::Listing(self.kind), None)];
        changes.extend(objects);
        changes.push(Input::Change(Change::Listed(self.kind), None));
        changes
    }
}

/// An object as it is stored, with its JSON if that is recorded.
fn read(
    kind: Kind,
    fields: &mut Option<ReadFields>,
    stored: &Stored,
) -> (Object, Option<Box<str>>) {
    match fields {
        None => (Object::read(kind, stored.json()), None),
        Some(fields) => {
            let (object, json) = fields.read(kind, stored.json());
            (object, Some(json))
        }
    }
}

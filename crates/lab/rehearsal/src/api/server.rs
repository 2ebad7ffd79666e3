//! The server's state: kinds, objects, and the journal of binds.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::call::{Call, Route};
use super::failure::Failure;
use super::kind::{CollectionName, Kind, Kinds};
use super::now::whole_seconds;
use super::store::{Object, Store, key_of};
use super::{Bound, Settings};

/// An API server as plain data: time is what it was told last.
#[derive(Debug)]
pub struct Server {
    pub(crate) settings: Settings,
    pub(crate) kinds: Kinds,
    pub(crate) store: Store,
    pub(crate) bound: Vec<Bound>,
    now: Timestamp,
}

impl Server {
    /// A server with nothing but the namespaces that every cluster has.
    pub fn new(settings: Settings, now_ms: u64) -> Self {
        let mut kinds = Kinds::of_minor(settings.minor);
        for (group, version) in &settings.without {
            kinds.remove(group, version);
        }
        let store = Store::new(settings.history_limit);
        let now = whole_seconds(now_ms);
        let mut server = Self { settings, kinds, store, bound: Vec::new(), now };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            if let Some(kind) = server.kinds.find("", "v1", "namespaces") {
                let namespace = json!({"metadata": {"name": name}});
                let made = super::create::create(&mut server, &kind, None, namespace);
                debug_assert!(made.is_ok(), "a namespace that exists from the start");
            }
        }
        server
    }

    /// Sets the clock, in milliseconds since 1970.
    pub fn pass(&mut self, now_ms: u64) {
        self.now = whole_seconds(now_ms);
    }

    /// How it is set up.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Adds a kind, as a CustomResourceDefinition would.
    pub fn register(&mut self, kind: Kind) {
        self.kinds.register(kind);
    }

    /// The kind with this plural, in the first group and version that has it.
    pub fn kind(&self, plural: &str) -> Option<Arc<Kind>> {
        self.kinds.find_plural(plural)
    }

    /// Where a request leads; `None` if there is nothing at its path.
    pub fn route(&self, method: &str, path: &str, query: &str) -> Option<Result<Route, Failure>> {
        Route::find(&self.kinds, method, path, query)
    }

    /// Version of the latest write.
    pub fn revision(&self) -> u64 {
        self.store.revision
    }

    /// Collections that were written since the last call.
    pub fn take_written(&mut self) -> BTreeSet<CollectionName> {
        self.store.take_written()
    }

    /// Forgets all history, as etcd's compaction does: continued lists and watches from older
    /// versions get 410.
    pub fn compact(&mut self) {
        self.store.compact();
    }

    /// Every bind that took effect, in order.
    pub fn bound(&self) -> &[Bound] {
        &self.bound
    }

    /// All objects of a kind, in the order of namespace and name.
    pub fn all<'s>(&'s self, kind: &Kind) -> impl Iterator<Item = &'s Value> + use<'s> {
        self.store.all(&kind.collection()).map(|object| &object.value)
    }

    /// All objects of a kind as one who reads them sees them, with their kind.
    pub fn all_with_kind(&self, kind: &Kind) -> Vec<Value> {
        self.store.all(&kind.collection()).map(|object| object.with_kind(kind)).collect()
    }

    /// Writes an object as a test wants it, also where the real server would never have it so.
    /// Nothing happens if there is none.
    pub fn overwrite(
        &mut self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) {
        let key = key_of(namespace, name);
        let Some(there) = self.store.get(&kind.collection(), &key) else { return };
        let mut value = there.value.clone();
        change(&mut value);
        self.store.put(&kind.collection(), key, value);
    }

    /// What the clock was set to, in whole seconds.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// The object that a request names.
    pub(crate) fn named(&self, call: &Call) -> Result<Arc<Object>, Failure> {
        let key = key_of(call.namespace.as_deref(), &call.name);
        let found = self.store.get(&call.kind.collection(), &key);
        found.ok_or_else(|| Failure::not_found(&call.kind, &call.name))
    }

    /// Refuses what would be made in a namespace that is missing or going away.
    pub(crate) fn check_namespace(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
    ) -> Result<(), Failure> {
        let Some(namespaces) = self.kinds.find("", "v1", "namespaces") else { return Ok(()) };
        let Some(found) = self.store.get(&namespaces.collection(), namespace) else {
            return Err(Failure::not_found(&namespaces, namespace));
        };
        if found.value["status"]["phase"] == "Terminating" {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let message = format!("namespace {namespace} is being terminated");
            let failure = Failure::forbidden(kind, name, &why);
            return Err(failure.caused_by("NamespaceTerminating", &message));
        }
        Ok(())
    }
}

/// What the real server's storage says of an object that is not the one meant.
pub(crate) fn wrong_object(
    kind: &Kind,
    namespace: Option<&str>,
    name: &str,
    what: &str,
    asked: &str,
    found: &Value,
) -> Failure {
    let place = match kind.plural.as_str() {
        "nodes" => "minions",
        plural => plural,
    };
    let key = format!("/registry/{place}/{}", key_of(namespace, name));
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: {what} in precondition: {asked}, \
         {what} in object meta: {}",
        found.as_str().unwrap_or_default()
    );
    Failure::conflict(kind, name, &why)
}

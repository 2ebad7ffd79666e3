//! The server as those see it who serve it or play with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::call::Route;
use super::failure::ApiFailure;
use super::kind::{CollectionName, ResourceKind};
use super::now::whole_seconds;
use super::state::ServerState;
use super::store::key_of;
use super::{Bound, Settings};

/// An API server as plain data: time is what it was told last.
#[derive(Debug)]
pub struct ApiServer {
    pub(crate) state: ServerState,
}

impl ApiServer {
    /// A server with nothing but the namespaces that every cluster has.
    pub fn new(settings: Settings, now_ms: u64) -> Self {
        Self { state: ServerState::new(settings, now_ms) }
    }

    /// Sets the clock, in milliseconds since 1970.
    pub fn pass(&mut self, now_ms: u64) {
        self.state.now = whole_seconds(now_ms);
    }

    /// How it is set up.
    pub fn settings(&self) -> &Settings {
        &self.state.settings
    }

    /// Adds a kind, as a CustomResourceDefinition would.
    pub fn register(&mut self, kind: ResourceKind) {
        self.state.kinds.register(kind);
    }

    /// The kind with this plural, in the first group and version that has it.
    pub fn kind(&self, plural: &str) -> Option<Arc<ResourceKind>> {
        self.state.kinds.find_plural(plural)
    }

    /// Where a request leads; `None` if there is nothing at its path.
    pub fn route(
        &self,
        method: &str,
        path: &str,
        query: &str,
    ) -> Option<Result<Route, ApiFailure>> {
        Route::find(&self.state.kinds, method, path, query)
    }

    /// Version of the latest write.
    pub fn revision(&self) -> u64 {
        self.state.store.revision
    }

    /// Collections that were written since the last call.
    pub fn take_written(&mut self) -> BTreeSet<CollectionName> {
        self.state.store.take_written()
    }

    /// Forgets all history, as etcd's compaction does: continued lists and watches from older
    /// versions get 410.
    pub fn compact(&mut self) {
        self.state.store.compact();
    }

    /// Every bind that took effect, in order.
    pub fn bound(&self) -> &[Bound] {
        &self.state.bound
    }

    /// All objects of a kind, in the order of namespace and name.
    pub fn all<'s>(&'s self, kind: &ResourceKind) -> impl Iterator<Item = &'s Value> + use<'s> {
        self.state.store.all(&kind.collection()).map(|object| &object.value)
    }

    /// All objects of a kind as one who reads them sees them, with their kind.
    pub fn all_with_kind(&self, kind: &ResourceKind) -> Vec<Value> {
        self.state.store.all(&kind.collection()).map(|object| object.with_kind(kind)).collect()
    }

    /// Writes an object as a test wants it, also where the real server would never have it so.
    /// Nothing happens if there is none.
    pub fn overwrite(
        &mut self,
        kind: &ResourceKind,
        namespace: Option<&str>,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) {
        let key = key_of(namespace, name);
        let Some(there) = self.state.store.get(&kind.collection(), &key) else { return };
        let mut value = there.value.clone();
        change(&mut value);
        self.state.store.put(&kind.collection(), key, value);
    }
}

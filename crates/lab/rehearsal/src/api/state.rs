//! The server's state: kinds, objects, and the journal of binds.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::call::Call;
use super::failure::ApiFailure;
use super::kind::{Kinds, ResourceKind};
use super::now::whole_seconds;
use super::store::{Store, StoredObject, key_of};
use super::{Bound, Settings};

/// Kinds, objects, the journal of binds, and the time.
#[derive(Debug)]
pub(crate) struct ServerState {
    pub(crate) settings: Settings,
    pub(crate) kinds: Kinds,
    pub(crate) store: Store,
    pub(crate) bound: Vec<Bound>,
    pub(crate) now: Timestamp,
}

impl ServerState {
    pub(crate) fn new(settings: Settings, now_ms: u64) -> Self {
        let mut kinds = Kinds::of_minor(settings.minor);
        for (group, version) in &settings.without {
            kinds.remove(group, version);
        }
        let store = Store::new(settings.history_limit);
        let now = whole_seconds(now_ms);
        let mut state = Self { settings, kinds, store, bound: Vec::new(), now };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            if let Some(kind) = state.kinds.find("", "v1", "namespaces") {
                let namespace = json!({"metadata": {"name": name}});
                let made = super::create::create(&kind, None, namespace, &mut state);
                debug_assert!(made.is_ok(), "a namespace that exists from the start");
            }
        }
        state
    }

    /// What the clock was set to, in whole seconds.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// The object that a request names.
    pub(crate) fn named(&self, call: &Call) -> Result<Arc<StoredObject>, ApiFailure> {
        let key = key_of(call.namespace.as_deref(), &call.name);
        let found = self.store.get(&call.kind.collection(), &key);
        found.ok_or_else(|| ApiFailure::not_found(&call.kind, &call.name))
    }

    /// Refuses what would be made in a namespace that is missing or going away.
    pub(crate) fn check_namespace(
        &self,
        kind: &ResourceKind,
        namespace: &str,
        name: &str,
    ) -> Result<(), ApiFailure> {
        let Some(namespaces) = self.kinds.find("", "v1", "namespaces") else { return Ok(()) };
        let Some(found) = self.store.get(&namespaces.collection(), namespace) else {
            return Err(ApiFailure::not_found(&namespaces, namespace));
        };
        if found.value["status"]["phase"] == "Terminating" {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let message = format!("namespace {namespace} is being terminated");
            let failure = ApiFailure::forbidden(kind, name, &why);
            return Err(failure.caused_by("NamespaceTerminating", &message));
        }
        Ok(())
    }
}

/// What the real server's storage says of an object that is not the one meant.
pub(crate) fn wrong_object(
    kind: &ResourceKind,
    namespace: Option<&str>,
    name: &str,
    what: &str,
    asked: &str,
    found: &Value,
) -> ApiFailure {
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
    ApiFailure::conflict(kind, name, &why)
}

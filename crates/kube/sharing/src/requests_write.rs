//! Writes to the template of a workload by server-side apply, and the same as text for manifests.

use serde_json::{Map, Value, json};

use crate::names::{FIELD_MANAGER, FORMER_REQUESTS};
use crate::owner::{GpuContainer, Owner};
use crate::requests_record::{RequestsRecord, RequestsStep};

/// Everything that dovetail owns of a workload, for server-side apply with the field manager
/// `dovetail`. The server refuses it if the workload has changed since it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestsWrite {
    pub record: RequestsRecord,
    pub body: Value,
    /// Reason, message and whether it is a warning, for events on the workload and its policy,
    /// which are created before the write.
    pub event: Option<(&'static str, String, bool)>,
}

impl RequestsWrite {
    pub(crate) fn new(
        owner: &Owner,
        record: RequestsRecord,
        event: Option<(&'static str, String, bool)>,
    ) -> Self {
        let mut amounts = Map::from_iter([(record.asked().to_owned(), json!("1"))]);
        if record.step != RequestsStep::Returned {
            // A field of another manager cannot be removed, only set.
            amounts.insert(record.from.clone(), json!("0"));
        }
        let mut resources = json!({"limits": amounts});
        if record.has_requests {
            resources["requests"] = resources["limits"].clone();
        }
        let text = serde_json::to_string(&record).unwrap_or_default();
        let body = json!({
            "apiVersion": owner.about.api_version,
            "kind": owner.about.kind,
            "metadata": {
                "name": owner.about.name,
                "namespace": owner.about.namespace,
                "uid": owner.about.uid,
                "resourceVersion": owner.resource_version(),
                "annotations": {FORMER_REQUESTS: text},
            },
            "spec": {"template": {"spec": {"containers": [
                {"name": record.container, "resources": resources},
            ]}}},
        });
        Self { record, body, event }
    }

    /// The workload as it is once this is written, for a dry run, which writes nothing: with the
    /// record and what its container asks for by then. Its pods are those of before.
    pub fn applied_to(&self, owner: &Owner) -> Owner {
        let mut owner = owner.clone();
        for one in owner.containers.iter_mut().filter(|one| one.name == self.record.container) {
            one.gpus = vec![(self.record.asked().to_owned(), 1)];
        }
        owner.record = Some(self.record.clone());
        owner
    }
}

/// The query of the request that sends a [`RequestsWrite`].
pub fn apply_query() -> String {
    format!("fieldManager={FIELD_MANAGER}&force=true")
}

/// The lines of a manifest by which a container asks for one of a resource in place of another.
pub fn fragment(owner: &Owner, container: &GpuContainer, from: &str, to: &str) -> String {
    let name = Value::from(&*container.name);
    let mut text = format!(
        "apiVersion: apps/v1\nkind: {}\nmetadata:\n  name: {}\n  namespace: {}\nspec:\n  template:\n    \
         spec:\n      containers:\n        - name: {name}\n          resources:\n",
        owner.about.kind, owner.about.name, owner.about.namespace
    );
    let lists: &[&str] = if container.has_requests { &["limits", "requests"] } else { &["limits"] };
    for list in lists {
        text += &format!("            {list}:\n              {to}: 1 # in place of {from}\n");
    }
    text
}

//! Notices as events on owners: the one thing that is written to a cluster, and only when it is
//! named.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use anyhow::{Context, Result};
use dovetail_console::clock::now;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, Config};

use crate::noticing::{LiveOwner, OwnerNotice};

/// The server has this long.
const WITHIN: Duration = Duration::from_secs(10);
/// Longest note, and longest name, in bytes.
const NOTE_BYTES: usize = 1_024;
const NAME_BYTES: usize = 253;
/// Namespace of events on objects of the cluster.
const OF_CLUSTER: &str = "default";

/// Writes events over a connection.
pub struct OwnerEvents(Client);

impl OwnerEvents {
    /// Over a connection.
    ///
    /// # Errors
    /// Certificates or credentials that cannot be used.
    pub fn new(config: Config) -> Result<Self> {
        Ok(Self(Client::try_from(config)?))
    }

    /// Writes a notice, once: said again of the same object on the same day, it is there already.
    ///
    /// # Errors
    /// A server that does not answer or does not take it.
    pub async fn write(&self, notice: &OwnerNotice, owner: &LiveOwner) -> Result<()> {
        let namespace = match owner.object.namespace.as_str() {
            "" => OF_CLUSTER,
            namespace => namespace,
        };
        let events = Api::<Event>::namespaced(self.0.clone(), namespace);
        let event = event(notice, owner, namespace, now());
        let parameters = PostParams::default();
        let written = tokio::time::timeout(WITHIN, events.create(&parameters, &event)).await;
        match written.context("the API server does not answer")? {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => Err(error).context("the API server rejected the event"),
        }
    }
}

fn event(notice: &OwnerNotice, owner: &LiveOwner, namespace: &str, now: jiff::Timestamp) -> Event {
    let mut hasher = DefaultHasher::new();
    (&owner.uid, &notice.subject, now.as_second() / 86_400).hash(&mut hasher);
    let number = format!(".{:016x}", hasher.finish());
    let name = within(&owner.object.name, NAME_BYTES - number.len());
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{}{number}", name.trim_end_matches(['.', '-']))),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        action: text("Noticing"),
        event_time: Some(MicroTime(now)),
        note: text(within(&notice.text, NOTE_BYTES)),
        reason: text(notice.reason),
        regarding: Some(ObjectReference {
            api_version: text(&owner.api_version),
            kind: text(&owner.object.kind),
            namespace: text(&owner.object.namespace),
            name: text(&owner.object.name),
            uid: text(&owner.uid),
            ..ObjectReference::default()
        }),
        reporting_controller: text("dovetail.dev/serve"),
        reporting_instance: text("dovetail-serve"),
        type_: text("Normal"),
        ..Event::default()
    }
}

fn within(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

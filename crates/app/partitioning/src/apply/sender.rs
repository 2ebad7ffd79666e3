//! Writes to nodes with their events, and notes of them.

use anyhow::Result;
use dovetail_console::app::App;
use dovetail_console::plain::plain;
use dovetail_sharing::{Record, Write};
use serde_json::Value;

use crate::server::Server;

/// The server, and whoever reads notes.
pub(super) struct Sender<'a> {
    pub(super) app: &'a App,
    pub(super) server: &'a Server,
}

impl Sender<'_> {
    /// Sends a write to a node, its event first; `false` if the node has changed in between.
    pub(super) async fn write(&self, node: &str, write: &Write) -> Result<bool> {
        if let Some(event) = &write.event {
            self.tell(event).await;
        }
        self.server.write(node, write).await
    }

    /// Creates an event. One that is refused is only noted: nodes change all the same.
    pub(super) async fn tell(&self, event: &Value) {
        if let Err(error) = self.server.create_event(event).await {
            let object = &event["involvedObject"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (kind, name, reason) =
                (text(&object["kind"]), text(&object["name"]), text(&event["reason"]));
            let about = plain(&format!("{kind} {name}")).to_string();
            self.app.note(&format!("event {reason} about {about} was not created: {error:#}"));
        }
    }

    pub(super) fn told(&self, node: &str, record: &Record) {
        let problem = match record.problem.is_empty() {
            true => String::new(),
            false => format!(" ({})", record.problem),
        };
        self.app.note(&format!("node {node}: {}{problem}", record.step.word()));
    }
}

//! Watches: what was there, what changes, bookmarks, and an end. When to look for changes, and when
//! the time of a watch is over, is up to whoever serves it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::call::{Call, Query};
use super::failure::{ApiFailure, FieldCause, FieldFault};
use super::fault::{ApiFault, draw};
use super::kind::{CollectionName, ResourceKind};
use super::list::selection;
use super::selector::Selection;
use super::server::ApiServer;
use super::store::{StoredChange, StoredObject};

/// Changes that are sent in one piece at most.
const BATCH: usize = 512;
/// How long a watch lasts if the client does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1800);

/// One open watch.
#[derive(Debug)]
pub struct OpenWatch {
    kind: Arc<ResourceKind>,
    collection: CollectionName,
    selection: Selection,
    /// Version up to which everything was sent.
    seen: u64,
    ready: VecDeque<Bytes>,
    ending: Option<Ending>,
    /// Sent behind everything else.
    last_words: Option<Bytes>,
    bookmarks: bool,
    timeout: Duration,
    fault: Option<(ApiFault, u64)>,
    events_sent: u32,
}

/// How a watch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Behind what is ready, and [`OpenWatch::last_words`].
    Closed,
    /// The connection goes.
    Cut,
    /// The connection stays, and nothing more is sent.
    Silent,
}

impl OpenWatch {
    /// Opens a watch. What the options forbid is refused; a version that is too old is told on the
    /// stream, as the real server does.
    ///
    /// # Errors
    /// When the server refuses it.
    pub fn open(
        server: &mut ApiServer,
        call: &Call,
        fault: Option<(ApiFault, u64)>,
    ) -> Result<Self, ApiFailure> {
        let streamed = check_options(&call.query, server.state.settings.streaming_lists)?;
        let timeout = call.query.number("timeoutSeconds")?.filter(|seconds| *seconds > 0);
        let asked = call.query.number("resourceVersion")?.unwrap_or(0);
        let now = server.state.store.revision;
        let mut watch = Self {
            kind: call.kind.clone(),
            collection: call.kind.collection(),
            selection: selection(call)?,
            seen: asked,
            ready: VecDeque::new(),
            ending: None,
            last_words: None,
            bookmarks: call.query.flag("allowWatchBookmarks"),
            timeout: timeout.map_or(DEFAULT_TIMEOUT, Duration::from_secs),
            fault,
            events_sent: 0,
        };
        if streamed && asked > now {
            watch.fail(&ApiFailure::version_too_large(asked, now));
        } else if streamed || asked == 0 && !call.query.has("sendInitialEvents") {
            watch.send_initial(server, streamed);
        } else if asked == 0 {
            watch.seen = now;
        }
        Ok(watch)
    }

    /// What it shows changes of.
    pub fn collection(&self) -> &CollectionName {
        &self.collection
    }

    /// For how long it is to last.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// For how long changes are to be gathered before they are read, if they are.
    pub fn gathers_for(&self) -> Option<Duration> {
        match self.fault {
            Some((ApiFault::ReorderEvents { window_ms }, _)) => {
                Some(Duration::from_millis(window_ms))
            }
            _ => None,
        }
    }

    /// The next piece that is ready to be sent.
    pub fn next_piece(&mut self) -> Option<Bytes> {
        self.ready.pop_front()
    }

    /// How it ends behind what is ready, if it does.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// What is sent last, once.
    pub fn last_words(&mut self) -> Option<Bytes> {
        self.last_words.take()
    }

    /// It ends behind what is ready.
    pub fn close(&mut self) {
        self.ending = Some(Ending::Closed);
    }

    /// Reads what happened since. Whether there is something to do now.
    pub fn read(&mut self, server: &mut ApiServer) -> bool {
        let now = server.state.store.revision;
        let found = server.state.store.collection(&self.collection).changes_after(self.seen, BATCH);
        match found {
            Err(oldest) => {
                let message = format!("too old resource version: {} ({oldest})", self.seen);
                self.fail(&ApiFailure::expired(message));
                true
            }
            Ok(changes) if changes.is_empty() => {
                self.seen = self.seen.max(now);
                false
            }
            Ok(changes) => {
                self.send(changes);
                true
            }
        }
    }

    fn send(&mut self, mut changes: Vec<StoredChange>) {
        if let Some(last) = changes.last() {
            self.seen = last.revision;
        }
        if let Some((ApiFault::ReorderEvents { .. }, number)) = self.fault {
            reorder(&mut changes, number);
        }
        let mut piece = Vec::new();
        for change in &changes {
            let Some((kind, object)) = seen_through(&self.selection, change) else { continue };
            if self.strike_before_event() {
                break;
            }
            self.write_event(&mut piece, kind, &object);
            if let Some((ApiFault::DuplicateEvents { per_million }, number)) = self.fault
                && draw(number, &change.revision.to_string()) % 1_000_000 < u64::from(per_million)
            {
                self.write_event(&mut piece, kind, &object);
            }
        }
        if !piece.is_empty() {
            self.ready.push_back(piece.into());
        }
    }

    fn write_event(&self, out: &mut Vec<u8>, kind: &str, object: &StoredObject) {
        out.extend_from_slice(format!(r#"{{"type":"{kind}","object":"#).as_bytes());
        object.write(&self.kind, out);
        out.extend_from_slice(b"}\n");
    }

    /// Counts an event, and ends the watch in its place if that is its fault.
    fn strike_before_event(&mut self) -> bool {
        let limit = match self.fault {
            Some((ApiFault::CutWatch { after_events }, _)) => Some((after_events, Ending::Cut)),
            Some((ApiFault::SilentWatch { after_events }, _)) => {
                Some((after_events, Ending::Silent))
            }
            Some((ApiFault::ExpireWatch { after_events }, _)) => {
                Some((after_events, Ending::Closed))
            }
            _ => None,
        };
        if let Some((after_events, ending)) = limit
            && self.events_sent >= after_events
        {
            if ending == Ending::Closed {
                let message = format!("too old resource version: {0} ({0})", self.seen);
                self.last_words = Some(error_event(&ApiFailure::expired(message)));
            }
            self.ending = Some(ending);
            return true;
        }
        self.events_sent += 1;
        false
    }

    fn send_initial(&mut self, server: &ApiServer, streamed: bool) {
        let mut piece = Vec::new();
        let collection = self.collection.clone();
        for object in server.state.store.all(&collection) {
            if !self.selection.matches(&object.value) {
                continue;
            }
            if self.strike_before_event() {
                break;
            }
            self.write_event(&mut piece, "ADDED", object);
        }
        self.seen = server.state.store.revision;
        if streamed && self.bookmarks && self.ending.is_none() {
            let end = json!({"k8s.io/initial-events-end": "true"});
            piece.extend_from_slice(&bookmark_event(&self.kind, self.seen, Some(end)));
        }
        if !piece.is_empty() {
            self.ready.push_back(piece.into());
        }
    }

    /// Sends what happened, and up to which version that is.
    pub fn bookmark(&mut self, server: &mut ApiServer) {
        while self.ending.is_none() && self.read(server) {}
        if self.bookmarks && self.ending.is_none() {
            self.ready.push_back(bookmark_event(&self.kind, self.seen, None));
        }
    }

    fn fail(&mut self, failure: &ApiFailure) {
        self.ready.push_back(error_event(failure));
        self.ending = Some(Ending::Closed);
    }
}

/// Whether the watch begins with a list.
fn check_options(query: &Query, streaming_lists: bool) -> Result<bool, ApiFailure> {
    let refuse = |field: &str, fault, why: &str| {
        let cause = FieldCause::new(field, fault, why);
        Err(ApiFailure::invalid("meta.k8s.io", "ListOptions", "", &[cause]))
    };
    let matching = query.text("resourceVersionMatch");
    if !query.has("sendInitialEvents") {
        if !matching.is_empty() {
            let why =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            return refuse("resourceVersionMatch", FieldFault::Forbidden, why);
        }
        return Ok(false);
    }
    if !streaming_lists {
        let why =
            "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
        return refuse("sendInitialEvents", FieldFault::Forbidden, why);
    }
    if matching != "NotOlderThan" {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        return refuse("resourceVersionMatch", FieldFault::Forbidden, why);
    }
    Ok(query.flag("sendInitialEvents"))
}

fn error_event(failure: &ApiFailure) -> Bytes {
    Bytes::from(format!("{}\n", json!({"type": "ERROR", "object": failure.body()})))
}

fn bookmark_event(kind: &ResourceKind, revision: u64, annotations: Option<Value>) -> Bytes {
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if let Some(annotations) = annotations {
        metadata["annotations"] = annotations;
    }
    let object = json!({
        "kind": kind.kind, "apiVersion": kind.api_version(), "metadata": metadata,
    });
    Bytes::from(format!("{}\n", json!({"type": "BOOKMARK", "object": object})))
}

/// A change as one sees it who only sees a selection.
fn seen_through(
    selection: &Selection,
    change: &StoredChange,
) -> Option<(&'static str, Arc<StoredObject>)> {
    let before = change.before.as_ref().filter(|before| selection.matches(&before.value));
    let now = !change.deleted && selection.matches(&change.after.value);
    match (before, now) {
        (None, false) => None,
        (None, true) => Some(("ADDED", change.after.clone())),
        (Some(_), true) => Some(("MODIFIED", change.after.clone())),
        (Some(_), false) if change.deleted => Some(("DELETED", change.after.clone())),
        (Some(before), false) => Some(("DELETED", Arc::new(before.at_revision(change.revision)))),
    }
}

/// Another order in which the changes of one object keep theirs.
fn reorder(changes: &mut [StoredChange], number: u64) {
    for end in (1..changes.len()).rev() {
        let other = (draw(number, &end.to_string()) % (end as u64 + 1)) as usize;
        let span = &changes[other..=end];
        let (first, last) = (&span[0], &span[span.len() - 1]);
        let same = |change: &StoredChange| change.is_of(first) || change.is_of(last);
        if span[1..span.len().max(2) - 1].iter().any(same) || first.is_of(last) {
            continue;
        }
        changes.swap(other, end);
    }
}

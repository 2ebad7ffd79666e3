//! What all connections share: the model server behind a lock, and who waits for its changes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dovetail_rehearsal::api::{ApiServer, CollectionName, Faults};
use tokio::sync::watch;

use super::proxy::Backends;

/// What all connections share.
#[derive(Debug)]
pub(super) struct Shared {
    server: Mutex<ApiServer>,
    /// Tell of every write to a collection that somebody watches.
    changed: Mutex<BTreeMap<CollectionName, watch::Sender<u64>>>,
    written: watch::Sender<u64>,
    faults: Mutex<Faults>,
    pub(super) backends: Backends,
    pub(super) bookmark_orders: watch::Sender<u64>,
    /// How many requests are held.
    pub(super) held: watch::Sender<usize>,
    /// Counts the releases.
    pub(super) released: watch::Sender<u64>,
}

/// The present, in milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    jiff::Timestamp::now().as_millisecond().max(0).cast_unsigned()
}

impl Shared {
    pub(super) fn new(server: ApiServer) -> Self {
        Self {
            written: watch::Sender::new(server.revision()),
            server: Mutex::new(server),
            changed: Mutex::default(),
            faults: Mutex::default(),
            backends: Backends::default(),
            bookmark_orders: watch::Sender::new(0),
            held: watch::Sender::new(0),
            released: watch::Sender::new(0),
        }
    }

    /// Does something with the server, at the present, and tells who waits for it what was written.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut ApiServer) -> R) -> R {
        let mut server = lock(&self.server);
        server.pass(now_ms());
        let result = change(&mut server);
        let (written, revision) = (server.take_written(), server.revision());
        if !written.is_empty() {
            let changed = lock(&self.changed);
            let senders = written.iter().filter_map(|collection| changed.get(collection));
            senders.for_each(|sender| _ = sender.send_replace(revision));
            self.written.send_replace(revision);
        }
        result
    }

    /// Tells the version of every write from now on.
    pub(super) fn written(&self) -> watch::Receiver<u64> {
        self.written.subscribe()
    }

    /// Tells of every write to a collection from now on.
    pub(super) fn changes_of(&self, collection: &CollectionName) -> watch::Receiver<u64> {
        let mut changed = lock(&self.changed);
        changed.entry(collection.clone()).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    pub(super) fn faults(&self) -> MutexGuard<'_, Faults> {
        lock(&self.faults)
    }

    /// Waits for the next release.
    pub(super) async fn hold(&self) {
        let mut released = self.released.subscribe();
        self.held.send_modify(|held| *held += 1);
        // The client may hang up while it waits.
        let _held = HeldRequest(self);
        // The sender lives in `self`.
        _ = released.changed().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a held request until it goes on or goes away.
struct HeldRequest<'a>(&'a Shared);

impl Drop for HeldRequest<'_> {
    fn drop(&mut self) {
        self.0.held.send_modify(|held| *held -= 1);
    }
}

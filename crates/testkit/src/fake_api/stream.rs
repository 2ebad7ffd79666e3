//! The stream of a watch: when it looks for changes, and when its time is over.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dovetail_rehearsal::api::{ApiFailure, ApiFault, Call, Ending, OpenWatch};
use tokio::sync::watch;
use tokio::time::Instant;

use super::serve::ClosedConnection;
use super::shared::Shared;

/// One open watch.
pub(super) struct WatchStream {
    shared: Arc<Shared>,
    watch: OpenWatch,
    changed: watch::Receiver<u64>,
    /// Counts the orders to send a bookmark.
    bookmark_orders: watch::Receiver<u64>,
    next_bookmark: Instant,
    interval: Duration,
    deadline: Instant,
    is_over: bool,
}

impl WatchStream {
    pub(super) fn open(
        shared: &Arc<Shared>,
        call: &Call,
        fault: Option<(ApiFault, u64)>,
    ) -> Result<Self, ApiFailure> {
        // What is written from now on is told, or is in what the watch begins with.
        let changed = shared.changes_of(&call.kind.collection());
        let (watch, interval) = shared.change(|server| {
            let interval = server.settings().bookmark_interval;
            OpenWatch::open(server, call, fault).map(|watch| (watch, interval))
        })?;
        Ok(Self {
            bookmark_orders: shared.bookmark_orders.subscribe(),
            next_bookmark: Instant::now() + interval,
            interval,
            deadline: Instant::now() + watch.timeout(),
            shared: shared.clone(),
            watch,
            changed,
            is_over: false,
        })
    }

    /// The next piece of the stream; `None` at its end.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, ClosedConnection>> {
        loop {
            if let Some(piece) = self.watch.next_piece() {
                return Some(Ok(piece));
            }
            match self.watch.ending() {
                _ if self.is_over => return None,
                Some(Ending::Closed) => {
                    self.is_over = true;
                    return self.watch.last_words().map(Ok);
                }
                Some(Ending::Silent) => std::future::pending().await,
                Some(Ending::Cut) => {
                    self.is_over = true;
                    // Lets what was sent leave before the connection goes.
                    tokio::task::yield_now().await;
                    return Some(Err(ClosedConnection));
                }
                None => self.wait_and_read().await,
            }
        }
    }

    async fn wait_and_read(&mut self) {
        self.changed.mark_unchanged();
        if self.shared.change(|server| self.watch.read(server)) {
            return;
        }
        let pause = tokio::time::sleep_until(self.deadline.min(self.next_bookmark));
        tokio::select! {
            _ = self.changed.changed() => {
                if let Some(window) = self.watch.gathers_for() {
                    tokio::time::sleep(window).await;
                }
            }
            _ = self.bookmark_orders.changed() => self.bookmark(),
            () = pause => {
                let now = Instant::now();
                self.bookmark();
                match now >= self.deadline {
                    true => self.watch.close(),
                    false => self.next_bookmark = now + self.interval,
                }
            }
        }
    }

    fn bookmark(&mut self) {
        self.shared.change(|server| self.watch.bookmark(server));
    }
}
